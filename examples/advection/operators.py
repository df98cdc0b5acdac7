"""The operators of the discontinuous Galerkin method, as pytato expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytato as pt


if TYPE_CHECKING:
    from discretization import Discretization


class Operators:
    """What an equation needs from the discretization.

    Arrays of nodal values have the shape ``(num_elements, num_nodes)``, arrays of
    values on faces the shape ``(num_elements, 2)``: left face, right face.

    :arg discretization: where the matrices come from
    """

    def __init__(self, discretization: Discretization) -> None:
        self.discretization = discretization
        self.weak_derivative_matrix = pt.make_data_wrapper(
            discretization.weak_derivative
        )
        self.lift_matrix = pt.make_data_wrapper(discretization.lift)

    def to_elements(self, state: pt.Array) -> pt.Array:
        """Return the nodal values that the flat vector *state* lists."""
        shape = (self.discretization.num_elements, self.discretization.num_nodes)
        return pt.reshape(state, shape)

    def to_state(self, nodal_values: pt.Array) -> pt.Array:
        """Return the flat vector that lists *nodal_values*."""
        return pt.reshape(nodal_values, (self.discretization.num_dofs,))

    def weak_derivative(self, nodal_values: pt.Array) -> pt.Array:
        """Return the volume term of the derivative."""
        return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)

    def lift(self, face_values: pt.Array) -> pt.Array:
        """Return what *face_values* contribute to the nodes of their element."""
        return pt.einsum("if,ef->ei", self.lift_matrix, face_values)

    def face_values(self, nodal_values: pt.Array) -> tuple[pt.Array, pt.Array]:
        """Return each element's values on its left face and on its right face."""
        num_nodes = self.discretization.num_nodes
        return nodal_values[:, 0:1], nodal_values[:, num_nodes - 1 : num_nodes]

    def interior_trace(self, left: pt.Array, right: pt.Array) -> pt.Array:
        """Return the values of each element on its own faces."""
        return pt.concatenate([left, right], axis=1)

    def exterior_trace(self, left: pt.Array, right: pt.Array) -> pt.Array:
        """Return the values that the neighbours have on the same faces."""
        left_neighbour = pt.roll(right, 1, axis=0)
        right_neighbour = pt.roll(left, -1, axis=0)
        return pt.concatenate([left_neighbour, right_neighbour], axis=1)
