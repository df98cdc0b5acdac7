"""
Notes on the errors of hosts: which statement, and which line of the program, they are
about.

.. autofunction:: note_on_error
.. autofunction:: noting_compilation
.. autofunction:: note_on_node
.. autofunction:: note_on_preprocessing

They are added by :meth:`BaseException.add_note`, which Python 3.10 does not have: there
the report has them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import loopy

from pytato_provenance import scope as _scope
from pytato_provenance._host import host
from pytato_provenance.compilation.stages import paused
from pytato_provenance.lowering import ledger
from pytato_provenance.lowering.comments import statement_lines
from pytato_provenance.lowering.instruction_tags import has_sites, without_sites
from pytato_provenance.lowering.origins import Origin, Origins
from pytato_provenance.lowering.places import Places, frame_of
from pytato_provenance.lowering.tables import ProgramSites
from pytato_provenance.tags import site_of


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytato_provenance.lowering.source import AnnotatedSource


NAME = "pytato_provenance"

_MOST_STATEMENTS = 3

# As Clang and GCC, and as NVIDIA's and Intel's compilers put it.
_POSITIONS = (
    re.compile(r"(?P<file>[^\s:][^\n:]*):(?P<line>\d+)(?::\d+)?: (?:fatal )?error\b"),
    re.compile(r"error: (?P<file>[^\s:][^\n:]*):(?P<line>\d+):\d+:"),
    re.compile(r"(?P<file>[^\s:(][^\n:(]*)\((?P<line>\d+)\): error\b"),
)


def _add(error: BaseException, note: str) -> None:
    add_note = getattr(error, "add_note", None)
    if add_note is not None:
        add_note(note)


def _has_note(error: BaseException) -> bool:
    return any(note.startswith(NAME) for note in getattr(error, "__notes__", ()))


# {{{ which statements

def _positions(message: str) -> Iterator[tuple[str, int]]:
    found = {match.start(): (match["file"].strip(), int(match["line"]))
             for pattern in _POSITIONS for match in pattern.finditer(message)}
    yield from dict.fromkeys(found[start] for start in sorted(found))


def _at_lines(message: str, source: AnnotatedSource, embedded: bool, places: Places
              ) -> Iterator[tuple[str, Origin]]:
    """What compilers complain about."""
    for file, lineno in _positions(message):
        for statement in source.statements:
            if statement.origin is None:
                continue
            if places.options.line_directives and embedded:
                is_meant = any(
                    frame.lineno == lineno and places.path(frame.filename) == file
                    for site in statement.origin.stored
                    if (frame := frame_of(site)) is not None)
                where = ""
            else:
                first, last = (statement.lines if embedded else statement.plain_lines)
                is_meant = first <= lineno <= last
                where = f" (line {lineno} of the generated code)"
            if is_meant:
                yield f"statement '{statement.insn_id}'{where}", statement.origin


def _by_name(message: str, sites: ProgramSites, tagged: Any
             ) -> Iterator[tuple[str, Origin]]:
    """What loopy complains about."""
    words = {*re.findall(r"\w+", message)}
    kernels = _kernels(tagged)
    if not any(words & kernel.id_to_insn.keys() for kernel in kernels.values()):
        # Perhaps one that loopy made by itself.
        kernels = _kernels(_preprocessed(tagged))
    origins = Origins(sites, kernels)
    for kernel in kernels.values():
        for insn in kernel.instructions:
            origin = origins.of(kernel.name, insn.id) if insn.id in words else None
            if origin is not None:
                yield f"statement '{insn.id}'", origin


def _kernels(t_unit: Any) -> dict[str, Any]:
    return {str(name): item.subkernel for name, item in t_unit.callables_table.items()
            if isinstance(item, loopy.CallableKernel)}


def _preprocessed(tagged: Any) -> Any:
    try:
        with paused():
            return loopy.preprocess_program(without_sites(tagged))
    except Exception:
        # It may be this that failed.
        return tagged


def _by_variable(message: str, sites: ProgramSites, places: Places
                 ) -> Iterator[tuple[str, list[str]]]:
    words = {*re.findall(r"\w+", message)}
    for kernel in sites.kernels.values():
        for name, variable in kernel.variables.items():
            if name in words:
                yield (f"'{name}'", [
                    f"{place.file}:{place.lineno} in {place.where} | {place.text}"
                    if place.lineno else place.where
                    for place in places.of(variable.sites)[:_MOST_STATEMENTS]])

# }}}


def note_on_error(error: BaseException, tagged: Any) -> str:
    """
    :arg error: what :mod:`loopy` or a compiler said of *tagged*, a translation unit
        with tags of ours.
    :returns: which statements it means and what they evaluate; ``""``, if that is not
        known.
    """
    from pytato_provenance.lowering.source import annotated_source

    message = str(error)
    sites = ProgramSites.of(tagged)
    program = ledger.program_of(tagged)
    options = replace(sites.options, stacks=False)
    places = Places(sites.all_sites(), options)
    found: list[tuple[str, Origin]] = []
    if any(_positions(message)):
        source = annotated_source(tagged)
        found = [*_at_lines(message, source, program is not None and program.embed,
                            places)]
    found = found or [*_by_name(message, sites, tagged)]
    parts = [(title, statement_lines(origin, places)) for title, origin in found]
    parts = parts or [*_by_variable(message, sites, places)]
    # Statements of one origin, such as those of a loop of the program, in one go.
    groups: dict[tuple[str, ...], list[str]] = {}
    for title, comments in parts:
        groups.setdefault(tuple(comments), []).append(title)
    lines: list[str] = []
    for comments, titles in [*groups.items()][:_MOST_STATEMENTS]:
        more = len(titles) - _MOST_STATEMENTS
        lines += [", ".join(titles[:_MOST_STATEMENTS])
                  + (f" and {more} more" if more > 0 else "")
                  + (" comes from" if len(titles) == 1 else " come from"),
                  *(f"    {comment}" for comment in comments)]
    if len(groups) > _MOST_STATEMENTS:
        lines.append(f"and {len(groups) - _MOST_STATEMENTS} more statements")
    return f"{NAME}: " + "\n".join(lines) if lines else ""


def add_note_on_error(error: BaseException, tagged: Any) -> None:
    """Add a note to *error*, and tell whoever collects programs."""
    try:
        if _has_note(error) or not has_sites(tagged):
            return
        note = note_on_error(error, tagged)
        if note:
            _add(error, note)
        ledger.announce_failed(tagged, _in_brief(error), note)
    except Exception as own_error:
        _scope.warn_once(own_error)


def _in_brief(error: BaseException) -> str:
    lines = [line for line in map(str.strip, str(error).splitlines()) if line] or [""]
    said = next((line for line in lines if any(_positions(line))), lines[0])
    # The compiler's own temporary files are of no use afterwards.
    return f"{type(error).__name__}: " + re.sub(r"(?<!\S)/\S*/(?=\S)", "", said)


def noting_compilation(original: Callable[..., Any]) -> Callable[..., Any]:
    """How an executor compiles its program."""
    def translation_unit_info(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        except Exception as error:
            add_note_on_error(error, self.t_unit)
            raise

    return translation_unit_info


def note_on_node(error: BaseException, node: Any) -> None:
    """Add a note to *error*, which was raised while code was generated for *node*."""
    try:
        if _has_note(error):
            return
        site = site_of(node)
        if site is not None:
            _add(error, f"{NAME}: while code was generated for the "
                        f"{type(node).__name__} created at {site}")
    except Exception as own_error:
        _scope.warn_once(own_error)


def note_on_preprocessing(error: BaseException) -> None:
    """Add a note to *error*, which was raised while programs were prepared: about the
    innermost node that a mapper of the host was at, which the traceback has."""
    node: Any = None
    traceback = error.__traceback__
    while traceback is not None:
        found = traceback.tb_frame.f_locals.get("expr")
        if isinstance(found, host().node_types) and site_of(found) is not None:
            node = found
        traceback = traceback.tb_next
    if node is not None:
        note_on_node(error, node)
