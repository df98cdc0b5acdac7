"""Nodes, weights and matrices of a collocated discontinuous Galerkin method."""

from __future__ import annotations

import numpy as np
from numpy.polynomial import Legendre


class Discretization:
    """A periodic square, cut into equal square elements with tensor-product nodes.

    The nodes are also the points of the quadrature (Legendre-Gauss-Lobatto), so that
    the mass matrix is diagonal.

    :arg order: the degree of the polynomials along an axis, at least 1
    :arg num_elements: the number of elements along an axis, at least 2
    :arg length: the length of a side
    """

    def __init__(self, order: int, num_elements: int, length: float) -> None:
        self.order = order
        self.num_elements = num_elements
        self.length = length
        self.element_size = length / num_elements

        legendre = Legendre.basis(order)
        inner = np.sort(legendre.deriv().roots().real)
        self.nodes = np.concatenate([[-1.0], inner, [1.0]])
        self.weights = 2 / (order * (order + 1) * legendre(self.nodes) ** 2)

    @property
    def coordinates(self) -> tuple[np.ndarray, np.ndarray]:
        """Both coordinates, each as ``[element x, element y, node x, node y]``."""
        starts = self.element_size * np.arange(self.num_elements)
        line = starts[:, None] + self.element_size / 2 * (1 + self.nodes)
        shape = (self.num_elements, self.num_elements, self.order + 1, self.order + 1)
        x = np.broadcast_to(line[:, None, :, None], shape)
        y = np.broadcast_to(line[None, :, None, :], shape)
        return x.copy(), y.copy()

    @property
    def derivative(self) -> np.ndarray:
        """The matrix that differentiates the interpolating polynomial on a line."""
        distances = self.nodes[:, None] - self.nodes
        np.fill_diagonal(distances, 1)
        barycentric = 1 / np.prod(distances, axis=1)

        matrix = barycentric / barycentric[:, None] / distances
        np.fill_diagonal(matrix, 0)
        np.fill_diagonal(matrix, -np.sum(matrix, axis=1))
        return matrix * 2 / self.element_size

    @property
    def weak_derivative(self) -> np.ndarray:
        """The derivative moved onto the test function, by integration by parts."""
        matrix = self.derivative.T * self.weights / self.weights[:, None]
        return np.ascontiguousarray(matrix)

    @property
    def face_weight(self) -> float:
        """What a flux through a face adds to the node on it, per unit of flux."""
        return float(2 / (self.element_size * self.weights[0]))

    def integral(self, values: np.ndarray) -> float:
        """Return the integral over the square of a function given at the nodes."""
        scale = (self.element_size / 2) ** 2
        return scale * float(
            np.einsum("xyij,i,j->", values, self.weights, self.weights)
        )
