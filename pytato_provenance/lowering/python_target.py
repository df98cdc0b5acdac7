"""
Programs in Python: what the development host generates for JAX.

.. autofunction:: naming_mapper
.. autofunction:: recording_generation
.. autofunction:: python_source
.. autofunction:: contributors_of_python

Each array is a variable there, and each statement makes one.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pytato_provenance import scope as _scope
from pytato_provenance._host import host, nodes_in_post_order
from pytato_provenance.annotation_options import DEFAULT, AnnotationOptions
from pytato_provenance.lowering.comments import statement_lines
from pytato_provenance.lowering.modes import current_mode
from pytato_provenance.lowering.origins import Origin
from pytato_provenance.lowering.places import Places
from pytato_provenance.lowering.text import HEADER, PYTHON_MARKER, one_line
from pytato_provenance.merging import has_equal_nodes, merged_sites
from pytato_provenance.sites import UNKNOWN, CreationSite
from pytato_provenance.tags import site_of
from pytato_provenance.weak_identity import WeakIdentityMap


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytato_provenance.lowering.instruction_tags import Sites


_mappers: ContextVar[list[Any] | None] = ContextVar(
    "pytato_provenance_python_mappers", default=None)
_known: WeakIdentityMap[tuple[Mapping[str, Sites], AnnotationOptions]] = (
    WeakIdentityMap())


# {{{ while code is generated

def naming_mapper(original: type) -> type:
    """The mapper that gives each array a variable."""
    class NumpyCodegenMapper(original):  # type: ignore[valid-type,misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            mappers = _mappers.get()
            if mappers is not None:
                mappers.append(self)

    NumpyCodegenMapper.__qualname__ = original.__qualname__
    NumpyCodegenMapper.__module__ = original.__module__
    NumpyCodegenMapper.__doc__ = original.__doc__
    return NumpyCodegenMapper


def recording_generation(original: Callable[..., Any]) -> Callable[..., Any]:
    """How a program in Python is generated."""
    def generate_numpy_like(expr: Any, *args: Any, **kwargs: Any) -> Any:
        mode = current_mode()
        if mode is None:
            return original(expr, *args, **kwargs)
        mappers: list[Any] = []
        token = _mappers.set(mappers)
        try:
            program = original(expr, *args, **kwargs)
        finally:
            _mappers.reset(token)
        try:
            for mapper in mappers[:1]:
                _known.put(program, (_sites_of_variables(expr, mapper), mode.options))
        except Exception as error:
            _scope.warn_once(error)
        return program

    return generate_numpy_like


def _sites_of_variables(expr: Any, mapper: Any) -> dict[str, Sites]:
    outputs = (expr,) if isinstance(expr, host().node_types) else expr.values()
    nodes = [*{id(node): node for output in outputs
               for node in nodes_in_post_order(output)}.values()]
    merged = merged_sites(nodes) if has_equal_nodes(nodes) else {}
    found: dict[str, Sites] = {}
    done = len(mapper.lines)
    for node in nodes:
        if not isinstance(node, host().array):
            continue
        try:
            # The mapper remembers what it gave each array that it has seen.
            name = mapper.rec(node)
        except Exception:
            continue
        if len(mapper.lines) > done or not isinstance(name, str):
            del mapper.lines[done:]
            continue
        site = merged.get(id(node)) or site_of(node) or UNKNOWN
        found[name] = found.get(name, frozenset()) | {*site.all_sites}
    return found

# }}}


# {{{ afterwards

def is_python_program(program: Any) -> bool:
    """
    :returns: whether *program* is what the host generates in Python.
    """
    return isinstance(getattr(program, "program", None), str) and hasattr(
        program, "entrypoint")


def _assigned(line: str) -> str:
    match = re.match(r"\s+(\w+) = ", line)
    return match.group(1) if match else ""


def python_source(program: Any, options: AnnotationOptions | None) -> str:
    """
    :returns: the text of a program in Python, with the line that each statement comes
        from above it.
    """
    sites, own_options = _known.get(program) or ({}, DEFAULT)
    places = Places((site for found in sites.values() for site in found),
                    options or own_options)
    lines: list[str] = []
    if places.options.header:
        title = one_line(program.entrypoint)
        lines.append(
            f"{PYTHON_MARKER} {HEADER} {title}, made in {', '.join(places.files)}"
            if sites else f"{PYTHON_MARKER} {HEADER} {title}: no creation sites are "
            "known (it was generated while annotating was off)")
    for line in program.program.split("\n"):
        found = sites.get(_assigned(line))
        if found:
            indent = line[:len(line) - len(line.lstrip())]
            lines += [f"{indent}{PYTHON_MARKER} {comment}" for comment in
                      statement_lines(Origin("", found, stored=found), places)]
        lines.append(line)
    return "\n".join(lines)


def contributors_of_python(program: Any) -> dict[str, tuple[CreationSite, ...]]:
    """
    :returns: the sites of each variable of a program in Python.
    """
    sites, _ = _known.get(program) or ({}, DEFAULT)
    return {name: tuple(sorted(found, key=CreationSite.sort_key))
            for name, found in sites.items()}

# }}}
