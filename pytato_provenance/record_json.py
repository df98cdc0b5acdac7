"""
A record as versioned JSON, in both directions.

.. autofunction:: record_to_json
.. autofunction:: record_from_json
.. autofunction:: read_record
.. autodata:: FORMAT
.. autodata:: VERSION
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from pytato_provenance.diagnostic import RecordError
from pytato_provenance.json_reader import Reader
from pytato_provenance.record import (
    FrameRecord,
    NodesRecord,
    ProgramRecord,
    Record,
    SiteRecord,
    StatementRecord,
    VariableRecord,
)


FORMAT = "pytato_provenance record"
"""What the entry ``"format"`` of a file says."""

VERSION = 1
"""Grows when a reader of the former version would misunderstand a file."""


# {{{ writing

class _Table:
    """Numbers for equal things, in the order of their coming."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, row: Any) -> int:
        number = self._numbers.setdefault(row, len(self.rows))
        if number == len(self.rows):
            self.rows.append(row)
        return number


def record_to_json(record: Record) -> str:
    """
    :arg record: a :class:`Record`.
    :returns: ASCII text, one entry a line. Stacks that begin alike share their calls:
        ``calls[n]`` is the number of the calling call, or -1, and of a frame.
    """
    files, frames, calls = _Table(), _Table(), _Table()

    def number_of_call(site: SiteRecord) -> int:
        call = -1
        for frame in reversed(site.frames):
            row = (files.number(frame.file), frame.line, frame.end_line, frame.column,
                   frame.end_column, frame.function, frame.text, frame.is_user)
            call = calls.number((call, frames.number(row)))
        return call

    sites = [_without_none(kind=None if site.kind == "known" else site.kind,
                           call=number_of_call(site) if site.frames else None,
                           region=site.region, made_by=site.made_by)
             for site in record.sites]
    return _lines({
        "format": FORMAT, "version": VERSION,
        "program": record.program, "ended": record.ended, "root": record.root,
        "python": record.python, "packages": record.packages,
        "changed_files": record.changed_files, "warnings": record.warnings,
        "files": files.rows, "frames": frames.rows, "calls": calls.rows,
        "sites": sites,
        "programs": [asdict(program) for program in record.programs],
    })


def _without_none(**entries: Any) -> dict[str, Any]:
    return {name: value for name, value in entries.items() if value is not None}


def _compact(value: Any) -> str:
    # Lone surrogates, as in names of files that are not text, survive as escapes.
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _lines(data: dict[str, Any]) -> str:
    entries: list[str] = []
    for name, value in data.items():
        text = _compact(value)
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join(map(_compact, value)) + "\n]"
        entries.append(f"{_compact(name)}: {text}")
    return "{\n" + ",\n".join(entries) + "\n}\n"

# }}}


# {{{ reading

def _read_frame(row: Reader, files: list[str]) -> FrameRecord:
    file, line, end_line, column, end_column, function, text, is_user = row.row(8)
    return FrameRecord(
        files[file.index(len(files))], line.integer(1), end_line.optional_integer(1),
        column.optional_integer(), end_column.optional_integer(), function.text(),
        text.text(), is_user.truth())


class _Calls:
    """Stacks, put together when they are needed: each may be thousands deep."""

    def __init__(self, data: Reader) -> None:
        files = [item.text() for item in data["files"].items()]
        frames = [_read_frame(item, files) for item in data["frames"].items()]
        self._calls: list[tuple[int, FrameRecord]] = []
        for item in data["calls"].items():
            caller, frame = item.row(2)
            # A caller comes before what it calls, so that stacks end.
            self._calls.append((
                -1 if caller.value == -1 else caller.index(len(self._calls)),
                frames[frame.index(len(frames))]))

    def stack(self, call: Reader) -> tuple[FrameRecord, ...]:
        stack: list[FrameRecord] = []
        number = call.index(len(self._calls))
        while number != -1:
            number, frame = self._calls[number]
            stack.append(frame)
        return tuple(stack)


def _read_site(item: Reader, calls: _Calls) -> SiteRecord:
    kind = item.get("kind")
    call = item.get("call")
    return SiteRecord(
        "known" if kind is None else kind.one_of("known", "synthetic", "unknown"),
        () if call is None else calls.stack(call),
        None if (region := item.get("region")) is None else region.text(),
        None if (made_by := item.get("made_by")) is None else made_by.text())


def _read_program(item: Reader, number_of_sites: int) -> ProgramRecord:
    def sites(owner: Reader) -> tuple[int, ...]:
        return tuple(site.index(number_of_sites) for site in owner["sites"].items())

    def statement(item: Reader) -> StatementRecord:
        return StatementRecord(
            item["id"].text(), item["variable"].text(), item["line"].integer(1),
            item["end_line"].integer(1, number_of_lines), sites(item),
            item["title"].text(), item["by_loopy"].truth())

    text = item["text"].optional_text()
    number_of_lines = 0 if text is None else text.count("\n") + 1
    return ProgramRecord(
        item["name"].text(), item["file"].optional_text(), text,
        tuple(map(statement, item["statements"].items())),
        tuple(VariableRecord(
                variable["name"].text(),
                variable["kind"].one_of("input", "output", "temporary"),
                sites(variable))
              for variable in item["variables"].items()),
        tuple(NodesRecord(nodes["type"].text(), nodes["count"].integer(1), sites(nodes))
              for nodes in item["nodes"].items()),
        item["failure"].optional_text())


def record_from_json(text: str | bytes, origin: str = "record") -> Record:
    """
    :arg text: what :func:`record_to_json` gave.
    :arg origin: how messages call it: the name of the file.
    :raises ~pytato_provenance.diagnostic.RecordError: if it is not a record, is
        damaged, or was written by a later version.
    """
    try:
        data = Reader(json.loads(text), origin)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{origin} is not JSON: {error}") from None
    if data.get("format", None) is None or data["format"].value != FORMAT:
        raise RecordError(f"{origin} is not a record of pytato_provenance; pass the "
                          "record.json of a run")
    version = data["version"].integer(1)
    if version > VERSION:
        raise RecordError(
            f"{origin} has version {version} of the format, and this release reads up "
            f"to {VERSION}; install a later pytato_provenance")
    calls = _Calls(data)
    sites = tuple(_read_site(item, calls) for item in data["sites"].items())
    return Record(
        data["program"].text(), data["ended"].text(), data["root"].text(),
        data["python"].text(),
        {name: item.text() for name, item in data["packages"].entries()},
        tuple(item.text() for item in data["changed_files"].items()), sites,
        tuple(_read_program(item, len(sites)) for item in data["programs"].items()),
        tuple(item.text() for item in data["warnings"].items()))


def read_record(path: str) -> Record:
    """
    :arg path: of a ``record.json``.
    :raises ~pytato_provenance.diagnostic.RecordError: as :func:`record_from_json`, and
        if the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            text = file.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RecordError(f"cannot read '{path}': {reason}") from None
    return record_from_json(text, path)

# }}}
