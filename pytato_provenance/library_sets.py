"""
Ready lists of what lies between an application and its array context.

.. autofunction:: register_library_set
.. autofunction:: library_set_names
.. autodata:: LIBRARY_SETS

A set is a list of modules, not a whole package: such packages hold models and
equations, too, and those are what a user looks for.
"""

from __future__ import annotations

import importlib.util
import os
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytato_provenance.diagnostic import UsageError
from pytato_provenance.frames import register_library


if TYPE_CHECKING:
    from collections.abc import Mapping

LIBRARY_SETS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    # All but the command line and the metadata tags: it has no equations.
    "meshmode": (
        "meshmode.array_context",
        "meshmode.discretization",
        "meshmode.distributed",
        "meshmode.dof_array",
        "meshmode.interop",
        "meshmode.mesh",
    ),
    # Not grudge.models.
    "grudge": (
        "grudge.array_context",
        "grudge.discretization",
        "grudge.dof_desc",
        "grudge.dt_utils",
        "grudge.eager",
        "grudge.geometry",
        "grudge.interpolation",
        "grudge.op",
        "grudge.projection",
        "grudge.reductions",
        "grudge.shortcuts",
        "grudge.tools",
        "grudge.trace_pair",
    ),
    # Not what states physics: euler, navierstokes, inviscid, viscous, flux, boundary,
    # eos, transport, gas_model, fluid, diffusion, wave, artificial_viscosity, limiter,
    # filter, wall_model, materials, multiphysics, thermochemistry, initializers.
    "mirgecom": (
        "mirgecom.array_context",
        "mirgecom.discretization",
        "mirgecom.integrators",
        "mirgecom.io",
        "mirgecom.logging_quantities",
        "mirgecom.math",
        "mirgecom.mpi",
        "mirgecom.operators",
        "mirgecom.profiling",
        "mirgecom.restart",
        "mirgecom.simutil",
        "mirgecom.steppers",
        "mirgecom.symbolic",
        "mirgecom.utils",
    ),
})
"""The modules of each set, those that only some releases have included."""


def library_set_names() -> tuple[str, ...]:
    """
    :returns: the names that :func:`register_library_set` takes.
    """
    return tuple(LIBRARY_SETS)


def register_library_set(name: str) -> tuple[str, ...]:
    """Treat the plumbing of an installed package as a library's, as
    :func:`~pytato_provenance.register_library` does for one module.

    Nothing is imported. ``register_user()`` takes a module out again.

    :arg name: one of :func:`library_set_names`.
    :returns: the modules that were registered: those of the set that the installed
        release has.
    :raises ~pytato_provenance.diagnostic.UsageError: if there is no such set, or the
        package is not installed.
    """
    try:
        modules = LIBRARY_SETS[name]
    except (KeyError, TypeError):
        raise UsageError(f"no library set named {name!r}; choose one of "
                         f"{', '.join(LIBRARY_SETS)}, or pass each module to "
                         "register_library()") from None
    found: dict[str, str] = {}
    for module in modules:
        path = _path_of(module)
        if path is not None:
            found[module] = path
    if not found:
        raise UsageError(f"'{name}' is not installed here, or has none of the modules "
                         "of its library set")
    for path in found.values():
        register_library(path)
    return tuple(found)


def _path_of(module: str) -> str | None:
    """Where *module* lies, without importing the packages that it is in."""
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    for folder in spec.submodule_search_locations or ():
        path = os.path.join(folder, *rest)
        if os.path.isdir(path):
            return path
        if os.path.isfile(path + ".py"):
            return path + ".py"
    return None
