"""What an equation needs of the discretization, on arrays and containers.

Fields have the axes ``[element x, element y, node x, node y]``.  There is one face an
element and axis, the one at its upper end; values on faces lack the node axis that is
normal to the face.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from arraycontext import CommonSubexpressionTag, rec_map_array_container


if TYPE_CHECKING:
    from arraycontext import ArrayContext

    from euler.discretization import Discretization

WEAK_DERIVATIVE = ("ik,xykj->xyij", "jk,xyik->xyij")
LIFT = ("i,xyj->xyij", "j,xyi->xyij")


class Operators:
    """The operators of a discretization, in an array context.

    :arg actx: the array context
    :arg discretization: where the matrices come from
    """

    def __init__(self, actx: ArrayContext, discretization: Discretization) -> None:
        self.actx = actx
        self.num_elements = discretization.num_elements
        self.last_node = discretization.order
        self.weak_derivative_matrix = actx.from_numpy(discretization.weak_derivative)

        to_lower_end = np.zeros(discretization.order + 1)
        to_lower_end[0] = discretization.face_weight
        self.lift_to_lower_end = actx.from_numpy(to_lower_end)
        self.lift_to_upper_end = actx.from_numpy(to_lower_end[::-1].copy())

    def weak_derivative(self, field: Any, axis: int) -> Any:
        """Return the derivative along *axis*, less what happens at the faces."""
        matrix = self.weak_derivative_matrix
        return rec_map_array_container(
            lambda ary: self.actx.einsum(WEAK_DERIVATIVE[axis], matrix, ary), field
        )

    def lift(self, face_flux: Any, axis: int) -> Any:
        """Return what a flux along *axis* takes from the elements that it leaves.

        What leaves an element enters the next one.
        """

        def lift_array(ary: Any) -> Any:
            arriving = self.from_previous(ary, axis)
            lost = self.actx.einsum(LIFT[axis], self.lift_to_upper_end, ary)
            gained = self.actx.einsum(LIFT[axis], self.lift_to_lower_end, arriving)
            return lost - gained

        return rec_map_array_container(lift_array, face_flux)

    def sides(self, field: Any, axis: int) -> tuple[Any, Any]:
        """Return the values on the faces normal to *axis*, from below and above."""
        last = self.last_node

        def from_below(ary: Any) -> Any:
            return ary[:, :, last, :] if axis == 0 else ary[:, :, :, last]

        def from_above(ary: Any) -> Any:
            first = ary[:, :, 0, :] if axis == 0 else ary[:, :, :, 0]
            return self.from_next(first, axis)

        return (
            rec_map_array_container(from_below, field),
            rec_map_array_container(from_above, field),
        )

    def from_next(self, face_values: Any, axis: int) -> Any:
        """Return for each element what the next one along *axis* has."""
        if axis == 0:
            parts = [face_values[1 : self.num_elements], face_values[0:1]]
        else:
            parts = [face_values[:, 1 : self.num_elements], face_values[:, 0:1]]
        return self.actx.np.concatenate(parts, axis=axis)

    def from_previous(self, face_values: Any, axis: int) -> Any:
        """Return for each element what the previous one along *axis* has."""
        last = self.num_elements - 1
        if axis == 0:
            parts = [face_values[last : last + 1], face_values[0:last]]
        else:
            parts = [face_values[:, last : last + 1], face_values[:, 0:last]]
        return self.actx.np.concatenate(parts, axis=axis)

    def stored(self, field: Any) -> Any:
        """Return *field*, to be computed once rather than wherever it is used."""
        return rec_map_array_container(
            lambda ary: self.actx.tag(CommonSubexpressionTag(), ary), field
        )

    def scaled(self, factor: Any, field: Any) -> Any:
        """Return each array in *field* times the array *factor*."""
        return rec_map_array_container(lambda ary: factor * ary, field)
