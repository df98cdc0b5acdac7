"""
What became of each source line.

.. autofunction:: explain
.. autoclass:: Explanation
.. autoclass:: LineFindings
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytato_provenance._host import Node, host, nodes_in_post_order
from pytato_provenance.auditing import roots
from pytato_provenance.diagnostic import NotAnArrayError
from pytato_provenance.tags import history_of, site_of


if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytato_provenance.sites import CreationSite, Frame


@dataclass
class LineFindings:
    """What one source line made, and what happened to it.

    .. attribute:: filename
    .. attribute:: lineno
    .. attribute:: function
    .. attribute:: text

        The line as it was when it ran, ``""`` where unknown.

    .. attribute:: arrays

        How many arrays of each class the line made, by class name.

    .. attribute:: regions
    .. attribute:: merged_with

        The other lines, as ``file:line``, whose equal arrays became one with the
        line's.

    .. attribute:: history

        What transforms did, with how many arrays.

    .. attribute:: statements

        The identifiers of the instructions that evaluate the line's operations.

    .. attribute:: variables

        The names of the arguments and temporaries that hold the line's arrays.
    """

    filename: str
    lineno: int
    function: str
    text: str
    arrays: Counter[str] = field(default_factory=Counter)
    regions: set[str] = field(default_factory=set)
    merged_with: set[str] = field(default_factory=set)
    history: Counter[str] = field(default_factory=Counter)
    statements: list[str] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)

    @property
    def where(self) -> str:
        """The line as ``file:line``."""
        return f"{os.path.basename(self.filename)}:{self.lineno}"

    def as_data(self) -> dict[str, Any]:
        """
        :returns: the findings as plain data.
        """
        return {"file": self.filename, "line": self.lineno, "function": self.function,
                "text": self.text, "arrays": dict(self.arrays),
                "regions": sorted(self.regions),
                "merged_with": sorted(self.merged_with), "history": dict(self.history),
                "statements": list(self.statements), "variables": list(self.variables)}

    def __str__(self) -> str:
        lines = [f"{self.where} in {self.function}"]
        if self.text.strip():
            lines[0] += f"    {self.text.strip()}"
        if self.arrays:
            lines.append("made " + _counted(self.arrays))
        if self.regions:
            lines.append("in region " + ", ".join(sorted(self.regions)))
        if self.merged_with:
            lines.append("equal to arrays of " + _capped(sorted(self.merged_with)))
        lines.extend(f"{action} ({count})" if count > 1 else action
                     for action, count in self.history.most_common(_MOST))
        if self.statements:
            lines.append("evaluated in " + _capped(self.statements))
        if self.variables:
            lines.append("held by " + _capped(self.variables))
        return "\n    ".join(lines)


_MOST = 6


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in
                     sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _capped(items: list[str]) -> str:
    more = len(items) - _MOST
    return ", ".join(items[:_MOST]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class Explanation:
    """By source line, in source order; prints readably.

    .. attribute:: lines

        A tuple of :class:`LineFindings`.

    .. attribute:: without_line

        How many arrays have no line, by reason: unknown, or synthetic with the name of
        the transform.

    .. automethod:: as_data
    """

    lines: tuple[LineFindings, ...]
    without_line: Counter[str]

    def as_data(self) -> dict[str, Any]:
        """
        :returns: the explanation as plain data.
        """
        return {"lines": [line.as_data() for line in self.lines],
                "without_line": dict(self.without_line)}

    def __str__(self) -> str:
        parts = [str(line) for line in self.lines]
        parts.extend(f"{count} array{'s' if count > 1 else ''}: {reason}"
                     for reason, count in sorted(self.without_line.items()))
        return "\n".join(parts) or "no arrays"


class _Collector:
    def __init__(self) -> None:
        self._lines: dict[tuple[str, int, str], LineFindings] = {}
        self._of_site: dict[CreationSite, list[LineFindings]] = {}
        self.without_line: Counter[str] = Counter()

    def of(self, site: CreationSite | None) -> list[LineFindings]:
        """
        :returns: the findings of the lines of *site*, one for each of its sites.
        """
        if site is None:
            return []
        found = self._of_site.get(site)
        if found is None:
            found = self._of_site[site] = [
                self._line(frame) for single in site.all_sites
                if (frame := single.user_frame or next(iter(single.frames), None))]
            for findings, single in zip(found, site.all_sites, strict=False):
                findings.regions.update(single.regions)
            found[:] = {id(findings): findings for findings in found}.values()
            places = {findings.where for findings in found}
            for findings in found:
                findings.merged_with.update(places - {findings.where})
        return found

    def _line(self, frame: Frame) -> LineFindings:
        key = (frame.filename, frame.lineno, frame.qualname)
        findings = self._lines.get(key)
        if findings is None:
            findings = self._lines[key] = LineFindings(
                frame.filename, frame.lineno, frame.qualname, frame.line)
        return findings

    def add_nodes(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if not isinstance(node, host().array):
                continue
            site = site_of(node)
            found = self.of(site)
            for findings in found:
                findings.arrays[type(node).__name__] += 1
                findings.history.update(str(step) for step in history_of(node))
            if not found:
                self.without_line[
                    "created while nothing recorded, or unknown" if site is None
                    else str(site)] += 1

    def finish(self) -> Explanation:
        order = sorted(self._lines)
        return Explanation(tuple(self._lines[key] for key in order), self.without_line)


def explain(x: Any) -> Explanation:
    """What became of the lines of the program, by line and not by node.

    :arg x: an array; a container of arrays, a traced function, or a dictionary or
        sequence of these; or a bound program of an annotated
        :func:`~pytato_provenance.generate_loopy`.
    :returns: an :class:`Explanation`: print it, or read its data.
    :raises ~pytato_provenance.diagnostic.NotAnArrayError: for anything else.
    """
    collector = _Collector()
    nodes = nodes_in_post_order(*roots(x))
    if nodes:
        collector.add_nodes(nodes)
    elif hasattr(x, "program") or hasattr(x, "callables_table"):
        _add_program(collector, x)
    elif not (isinstance(x, tuple | list | dict) and not x):
        raise NotAnArrayError("explain takes pytato arrays or a bound program, not "
                              f"'{type(x).__name__}'")
    return collector.finish()


def _add_program(collector: _Collector, program: Any) -> None:
    from pytato_provenance.lowering import contributors

    found = contributors(program)
    for statement, sites in found.statements.items():
        for findings in _distinct(collector, sites):
            findings.statements.append(statement)
    for variables in (found.arguments, found.temporaries):
        for name, sites in variables.items():
            for findings in _distinct(collector, sites):
                findings.variables.append(name)


def _distinct(collector: _Collector, sites: Iterable[CreationSite]
              ) -> list[LineFindings]:
    return list({id(findings): findings for site in sites
                 for findings in collector.of(site)}.values())
