"""The conserved quantities, as an array container."""
# The released arraycontext reads the fields' types, and needs them as classes rather
# than as the text that ``from __future__ import annotations`` makes of them.
# ruff: noqa: I002

from dataclasses import dataclass
from typing import Any, TypeVar

from arraycontext import (
    ArrayContainer,
    dataclass_array_container,
    with_container_arithmetic,
)


ClassT = TypeVar("ClassT", bound=type)


def array_container(cls: ClassT) -> ClassT:
    """Make a dataclass an array container that has arithmetic."""
    add_arithmetic: Any = with_container_arithmetic(
        # Called bcasts_across_obj_array since 2025.
        bcast_obj_array=False,
        eq_comparison=False,
        rel_comparison=False,
    )
    return add_arithmetic(dataclass_array_container(cls))


@array_container
@dataclass(frozen=True, eq=False)
class ConservedVars:
    """What the Euler equations conserve, each per volume.

    It also holds a flux or a rate of change of these quantities.
    """

    mass: ArrayContainer
    energy: ArrayContainer
    #: an object array of one entry an axis
    momentum: ArrayContainer

    # Numbers times a container are for the container to handle, not for numpy.
    __array_ufunc__ = None
