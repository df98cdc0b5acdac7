"""Nodes and matrices of a nodal discontinuous Galerkin method, in numpy."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.polynomial import legendre


class Discretization:
    """The unit interval, closed to a ring and cut into equal elements.

    In each element the solution is a polynomial, given by its values at the
    Legendre-Gauss-Lobatto nodes, the first and last of which are the end points.

    :arg order: the degree of the polynomials, at least 1
    :arg num_elements: the number of elements
    """

    def __init__(self, order: int, num_elements: int) -> None:
        self.order = order
        self.num_elements = num_elements
        self.num_nodes = order + 1
        self.num_dofs = num_elements * self.num_nodes
        self.element_size = 1 / num_elements
        #: derivative of the position in an element by the reference coordinate
        self.jacobian = self.element_size / 2
        #: outward normals on the left and on the right face of every element
        self.normals = np.array([-1.0, 1.0])

    @cached_property
    def reference_nodes(self) -> np.ndarray:
        """The nodes in the reference element, which is the interval from -1 to 1."""
        extrema = legendre.Legendre.basis(self.order).deriv().roots()
        return np.concatenate([[-1.0], np.sort(extrema.real), [1.0]])

    @cached_property
    def x(self) -> np.ndarray:
        """The positions of all nodes, shape ``(num_elements, num_nodes)``."""
        left_ends = self.element_size * np.arange(self.num_elements)
        return left_ends[:, None] + self.jacobian * (1 + self.reference_nodes)

    @cached_property
    def vandermonde(self) -> np.ndarray:
        """The orthonormal Legendre polynomials at the nodes."""
        scale = np.sqrt((2 * np.arange(self.num_nodes) + 1) / 2)
        return legendre.legvander(self.reference_nodes, self.order) * scale

    @cached_property
    def mass(self) -> np.ndarray:
        """The mass matrix of the reference element."""
        return np.linalg.inv(self.vandermonde @ self.vandermonde.T)

    @cached_property
    def derivative(self) -> np.ndarray:
        """The matrix that differentiates by the reference coordinate."""
        scale = np.sqrt((2 * np.arange(self.num_nodes) + 1) / 2)
        slopes = [
            scale[k] * legendre.Legendre.basis(k).deriv()(self.reference_nodes)
            for k in range(self.num_nodes)
        ]
        return np.stack(slopes, axis=1) @ np.linalg.inv(self.vandermonde)

    @cached_property
    def weak_derivative(self) -> np.ndarray:
        """The derivative moved onto the test function, by integration by parts."""
        stiffness = self.mass @ self.derivative
        return np.linalg.solve(self.mass, stiffness.T) / self.jacobian

    @cached_property
    def lift(self) -> np.ndarray:
        """The matrix that takes values on the two faces into the element."""
        faces = np.zeros((self.num_nodes, 2))
        faces[0, 0] = faces[-1, 1] = 1
        return np.linalg.solve(self.mass, faces) / self.jacobian

    def stable_time_step(self, velocity: float) -> float:
        """Return a time step that is stable for waves that travel at *velocity*."""
        return 0.4 * self.element_size / (abs(velocity) * (2 * self.order + 1))

    def l2_norm(self, values: np.ndarray) -> float:
        """Return the L2 norm of a function given by its values at the nodes."""
        return float(
            np.sqrt(self.jacobian * np.einsum("ei,ij,ej->", values, self.mass, values))
        )
