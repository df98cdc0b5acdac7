"""
A record as a map from the lines of kernels to lines of the program, in JSON.

.. autofunction:: render_map

An object with the entries ``"format"`` (``"pytato_provenance map"``), ``"version"`` (1;
it grows when a reader of the former version would misunderstand a file), ``"root"``
(what names of files are relative to) and ``"programs"``: a list of objects with

``"name"``, ``"file"``
    of the program; the file is ``null`` if it was printed.
``"statements"``
    in the order of the text, each with

    ``"id"``
        loopy's name for the statement,
    ``"lines"``
        its first and last line in the text, from 1,
    ``"columns"``
        its first column on the first line, and the column after its last one on the
        last line, from 0, in characters,
    ``"by_loopy"``
        whether loopy made it for the sake of others that have these sites,
    ``"sites"``
        what is evaluated in it, each with ``"file"``, ``"line"``, ``"end_line"``,
        ``"column"``, ``"end_column"`` (the innermost frame of the user; columns are
        ``null`` where the interpreter does not tell) and ``"function"``; with
        ``"made_by"`` instead, where a transform made it for itself; empty, where that
        is unknown.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytato_provenance.record import ProgramRecord, Record, SiteRecord


FORMAT = "pytato_provenance map"
VERSION = 1


def render_map(record: Record) -> str:
    """
    :arg record: a :class:`~pytato_provenance.record.Record`.
    :returns: the map, as JSON; a statement a line.
    """
    programs = ",\n".join(_program(record, program) for program in record.programs)
    return (f'{{"format": {json.dumps(FORMAT)}, "version": {VERSION}, '
            f'"root": {json.dumps(record.root)}, "programs": [\n{programs}\n]}}\n')


def _program(record: Record, program: ProgramRecord) -> str:
    statements = ",\n".join(map(json.dumps, _statements(record, program)))
    name, file = json.dumps(program.name), json.dumps(program.file)
    return f'{{"name": {name}, "file": {file}, "statements": [\n{statements}\n]}}'


def _statements(record: Record, program: ProgramRecord) -> Iterator[dict[str, Any]]:
    lines = (program.text or "").split("\n")
    for statement in program.statements:
        first, last = lines[statement.line - 1], lines[statement.end_line - 1]
        # Several calls of one line and the same columns, from different callers.
        sites = {json.dumps(site): site
                 for number in statement.sites
                 if (site := _site(record.sites[number]))}
        yield {
            "id": statement.id, "lines": [statement.line, statement.end_line],
            "columns": [len(first) - len(first.lstrip()), len(last.rstrip())],
            "by_loopy": statement.by_loopy, "sites": [*sites.values()]}


def _site(site: SiteRecord) -> dict[str, Any]:
    frame = site.user_frame or (site.frames[0] if site.frames else None)
    if frame is not None:
        return {"file": frame.file, "line": frame.line, "end_line": frame.end_line,
                "column": frame.column, "end_column": frame.end_column,
                "function": frame.function}
    return {} if site.made_by is None else {"made_by": site.made_by}
