"""
A record as one HTML file that needs nothing else.

.. autofunction:: render_html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytato_provenance.report.by_line import FileFindings, LineFindings, files_of
from pytato_provenance.report.colour import coloured_lines, style_sheet
from pytato_provenance.report.markup import Markup, element, joined
from pytato_provenance.report.text import (
    MOST_LINES,
    contents_of,
    details_of,
    summary,
    versions,
)
from pytato_provenance.report.visible import counted


if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytato_provenance.record import ProgramRecord, Record, StatementRecord


_MOST_IN_A_HINT = 12
_MOST_TEXT = 10_000
"""Lines of a program."""

# Nothing is loaded and nothing runs, whatever may have got into the text.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em;
       padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.2em; margin-top: 2em; }
code { font: 13px/1.5 ui-monospace, monospace; white-space: pre; }
table { border-collapse: collapse; width: 100%; }
td { padding: .15em .6em; vertical-align: top; }
td.line { color: GrayText; text-align: right; width: 3em; }
td.kernel { padding-top: 0; padding-bottom: 0; }
tr:target, li:target { background: Highlight; color: HighlightText; }
p.detail { color: GrayText; margin: 0 0 .4em; }
p.warning { border-left: .3em solid #c60; padding-left: .6em; }
a { color: LinkText; text-decoration: none; } a:hover { text-decoration: underline; }
summary { cursor: pointer; font-weight: 600; }
div.text { overflow-x: auto; }
"""


class _Links:
    """Where each source line is shown."""

    def __init__(self, files: list[FileFindings]) -> None:
        self._targets: dict[tuple[str, int], str] = {}
        shown = 0
        for number, file in enumerate(files):
            for line in file.lines:
                if shown < MOST_LINES:
                    self._targets[file.name, line.line] = f"f{number}l{line.line}"
                shown += 1

    def target(self, file: str, line: int) -> str | None:
        return self._targets.get((file, line))


def render_html(record: Record) -> str:
    """
    :arg record: a :class:`~pytato_provenance.record.Record`.
    :returns: a page. Each statement of a program leads to the lines that it comes
        from, each line to the programs that it goes into.
    """
    files = files_of(record)
    links = _Links(files)
    title = f"Provenance of {record.program}"
    head = element(
        "head", Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        element("title", title),
        element("style", Markup(_STYLE + style_sheet())))
    body = element("body", *_body(record, title, files, links))
    return f'<!DOCTYPE html>\n<html lang="en">\n{head}\n{body}\n</html>\n'


def _body(record: Record, title: str, files: list[FileFindings], links: _Links
          ) -> Iterator[Markup]:
    yield element("h1", title)
    yield element("p", summary(record, files))
    yield element("p.detail", f"{record.ended}; {versions(record)}")
    for warning in record.warnings:
        yield element("p.warning", warning)
    for number, program in enumerate(record.programs):
        yield _program(record, number, program, links)
    remaining = MOST_LINES
    for number, file in enumerate(files):
        if remaining <= 0:
            break
        yield _file(number, file, remaining)
        remaining -= len(file.lines)
    if record.root:
        yield element("p.detail", f"Names of files are relative to {record.root}.")


# {{{ programs

def _program(record: Record, number: int, program: ProgramRecord, links: _Links
             ) -> Markup:
    heading = element(
        "summary", f"Program {number + 1}: {program.name}",
        f" ({program.file})" if program.file else "", f": {contents_of(program)}")
    if program.text is None:
        content = element("p.warning", program.failure or "There is no text.")
    else:
        content = element("div.text", element("table", joined(
            _rows(record, program, program.text, links), "\n")))
    return element("details", heading, content, id=f"p{number}")


def _rows(record: Record, program: ProgramRecord, text: str, links: _Links
          ) -> Iterator[Markup]:
    hints: dict[int, tuple[str, str | None]] = {}
    for statement in program.statements:
        hint = _hint(record, statement, links)
        hints.update(dict.fromkeys(range(statement.line, statement.end_line + 1), hint))
    lines = text.split("\n")
    shown_text = "\n".join(lines[:_MOST_TEXT])
    for number, line in enumerate(coloured_lines(shown_text, "c"), 1):
        shown: Markup = element("code", line)
        if number in hints:
            hint, target = hints[number]
            if target is not None:
                shown = element("a", shown, href=f"#{target}", title=hint)
        yield element("tr", element("td.line", str(number)),
                      element("td.kernel", shown))
    if len(lines) > _MOST_TEXT:
        more = counted(len(lines) - _MOST_TEXT, "more line")
        yield element("tr", element("td.line"), element("td", f"and {more}"))


def _hint(record: Record, statement: StatementRecord, links: _Links
          ) -> tuple[str, str | None]:
    names: dict[str, None] = {}
    target = None
    for number in statement.sites:
        site = record.sites[number]
        names[str(site)] = None
        frame = site.user_frame or (site.frames[0] if site.frames else None)
        if target is None and frame is not None:
            target = links.target(frame.file, frame.line)
    shown = [*names][:_MOST_IN_A_HINT]
    more = len(names) - len(shown)
    hint = "; ".join(shown) + (f" and {more} more" if more else "")
    return f"{statement.title} {hint}".strip(), target

# }}}


# {{{ source lines

def _file(number: int, file: FileFindings, most: int) -> Markup:
    made = counted(file.number_of_nodes, "array") if file.number_of_nodes else ""
    title = file.name if file.is_user or file.lines[0].line == 0 else (
        f"{file.name} (not the user's)")
    parts: list[Markup] = [element("h2", title), element("p.detail", made)]
    if file.has_changed:
        parts.append(element(
            "p.warning", "The file has changed since; its lines are not shown."))
    shown = file.lines[:most]
    texts = coloured_lines("\n".join(line.text.strip() for line in shown), "python")
    if len(texts) != len(shown):
        # A line that holds an unusual line end.
        texts = [joined([line.text.strip()]) for line in shown]
    parts.append(element("table", joined(
        (_line(number, line, text)
         for line, text in zip(shown, texts, strict=True)), "\n")))
    if len(file.lines) > len(shown):
        parts.append(element(
            "p.detail", f"and {counted(len(file.lines) - len(shown), 'more line')}"))
    return joined(parts)


def _line(file: int, line: LineFindings, text: Markup) -> Markup:
    details = joined(element("p.detail", detail) for detail in details_of(line))
    programs = joined((element("a", f"program {position + 1}", href=f"#p{position}")
                       for position in sorted({*line.stored, *line.inputs})), ", ")
    return element(
        "tr", element("td.line", str(line.line) if line.line else ""),
        element("td", element("code", text), details),
        element("td", programs), id=f"f{file}l{line.line}")

# }}}
