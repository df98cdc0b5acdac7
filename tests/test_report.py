"""A record as text and as HTML."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from records import HOSTILE, large_record, records, small_record

from pytato_provenance.record import ProgramRecord, Record
from pytato_provenance.report.by_line import files_of
from pytato_provenance.report.html import render_html
from pytato_provenance.report.text import render_text
from pytato_provenance.report.visible import shortened, some_of, visible


TEXT = """\
main.py: 2 programs, 1,207 arrays, 3 source lines
exit status 0; Python 3.13.0, pytato 2021.2
warning: something went wrong

Programs

    1  _pt_kernel (01_pt_kernel.cl): 3 statements, 1 input, 1 output, 1 temporary, \
from 1,207 arrays
    2  broken: 0 statements
       its text could not be generated: E: x

lib/helper.py: 1 line, 3 arrays
       The file has changed since; its lines are not shown.

    3  return 2*a
       in f; called from main.py:10, main.py:12
       made 3 IndexLambda
       evaluated in program 1: out, tmp

main.py: 2 lines, 1,201 arrays

   10  y = f(x) + f(2)
       region rhs
       made 1 Placeholder
       input of program 1: x
       evaluated in program 1: out
   12  z = f(y)
       made 1,200 Roll
       evaluated in program 1: tmp

<site-packages>/numpy/core.py (not the user's): 1 line, 1 array

    7  return op(a)
       in outer
       made 1 Einsum
       not in any statement

Made by materialize, 1 array

       made 1 Stack
       not in any statement

Of unknown origin, 1 array

       made 1 Stack
       not in any statement

Names of files are relative to the current directory of the run.
"""


def test_text() -> None:
    assert render_text(small_record()) == TEXT


def test_stacks() -> None:
    text = render_text(small_record(), stacks=True)
    assert """\
       stack:
         lib/helper.py:3 in f
         main.py:10 in <module>
       stack:
         lib/helper.py:3 in f
         main.py:12 in <module>
""" in text


def test_by_line() -> None:
    files = files_of(small_record())
    assert [(file.name, file.is_user, len(file.lines)) for file in files] == [
        ("lib/helper.py", True, 1), ("main.py", True, 2),
        ("<site-packages>/numpy/core.py", False, 1), ("made by materialize", False, 1),
        ("unknown", False, 1)]
    line, = files[0].lines
    # A merged node is counted once, though both of its sites are on the line.
    assert line.nodes == Counter(IndexLambda=3)
    assert line.callers == Counter({"main.py:10": 1, "main.py:12": 1})


def test_empty() -> None:
    assert render_text(Record("x.py")).startswith("x.py: 0 programs, 0 source lines\n")
    Page(render_html(Record("x.py")))


# {{{ HTML

class Page(HTMLParser):
    """What a browser would make of a page; fails on what is not well formed."""

    VOID = frozenset({"meta"})
    ALLOWED = frozenset({
        "html", "head", "title", "style", "meta", "body", "h1", "h2", "p", "details",
        "summary", "div", "table", "tr", "td", "code", "a", "span"})
    ATTRIBUTES = frozenset({
        "id", "class", "href", "title", "lang", "charset", "name", "content",
        "http-equiv"})

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self.hints: list[str] = []
        page.encode()
        self.feed(page)
        self.close()
        assert self.open == []
        assert len({*self.ids}) == len(self.ids)
        assert {*self.links} <= {"#" + identifier for identifier in self.ids}

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.ALLOWED
        assert {name for name, _ in attrs} <= self.ATTRIBUTES
        if tag not in self.VOID:
            self.open.append(tag)
        found = dict(attrs)
        if found.get("id") is not None:
            self.ids.append(found["id"])
        if "href" in found:
            self.links.append(found["href"])
        if "title" in found:
            self.hints.append(found["title"])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError("a declaration")


def test_html() -> None:
    page = Page(render_html(small_record()))
    for part in ("Provenance of main.py", "1,207 arrays", "out[i] = 2*x[i];",
                 "return 2*a", "called from main.py:10, main.py:12", "region rhs",
                 "its text could not be generated", "something went wrong",
                 "<site-packages>/numpy/core.py"):
        assert part in page.text
    # From the statement to the line, and from the line to the program.
    assert "lib/helper.py:3 in f; main.py:10 in <module>" in page.hints
    assert {"#f0l3", "#p0"} <= {*page.links}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text(hostile: str) -> None:
    record = small_record()
    record = replace(
        record, program=hostile, ended=hostile, root=hostile, python=hostile,
        packages={hostile: hostile}, warnings=(hostile,),
        changed_files=(hostile,),
        sites=tuple(
            replace(site, region=hostile, made_by=hostile, frames=tuple(
                replace(frame, file=hostile, function=hostile, text=hostile)
                for frame in site.frames))
            for site in record.sites),
        programs=tuple(
            replace(program, name=hostile, file=hostile, failure=hostile,
                    text=None if program.text is None else f"{hostile}\n" * 3)
            for program in record.programs))
    check_harmless(record)
    assert visible(hostile) in Page(render_html(record)).text


@given(records())
def test_anything(record: Record) -> None:
    check_harmless(record)


def check_harmless(record: Record) -> None:
    Page(render_html(record))
    text = render_text(record)
    text.encode()
    assert all(char == "\n" or visible(char) == char for char in text)


def test_html_without_pygments(monkeypatch: pytest.MonkeyPatch) -> None:
    with_colours = Page(render_html(small_record()))
    monkeypatch.setitem(sys.modules, "pygments", None)
    without = render_html(small_record())
    assert Page(without).text == with_colours.text
    assert "<span" not in without

# }}}


# {{{ large

def test_large() -> None:
    """10^5 nodes; targets: `doc/`, performance."""
    record = large_record(100_000, 2_000, 50)
    text, page = render_text(record), render_html(record)
    assert "100,000 arrays" in text
    assert len(text) < 5_000_000
    assert len(page) < 5_000_000
    Page(page)


def test_more_lines_than_are_shown() -> None:
    record = large_record(20_000, 20_000, 1)
    record = replace(record, programs=(replace(record.programs[0], text=None,
                                               statements=()),))
    text = render_text(record)
    assert "20,000 source lines" in text
    assert "more lines" in text
    assert len(text.splitlines()) < 30_000
    assert len(render_html(record)) < 5_000_000


def test_many_programs_of_a_line() -> None:
    record = small_record()
    record = replace(record, programs=record.programs[:1] * 500)
    assert "programs 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 490 more: out" in (
        render_text(record))

# }}}


def test_visible() -> None:
    assert visible("a\tb") == "a b"
    assert visible("é\u202e\x00\ud800\U000e0001") == r"é\u202e\x00\ud800\U000e0001"
    assert shortened("abcdef", 5) == "ab..."
    assert some_of(["a"], 1) == "a"
    assert some_of(["a", "b", "c"], 1) == "a and 2 more"
    assert ProgramRecord("x").text is None
