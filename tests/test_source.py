"""The text of a line is the text that ran, or none."""

from __future__ import annotations

import linecache
import os
import sys
import threading
from typing import Any

import pytest
from looking import run_python

from pytato_provenance import source as source_module
from pytato_provenance.source import SourceFile, source_file


def written(path: Any, text: str, mtime: float | None = None) -> str:
    path.write_text(text, encoding="utf-8")
    if mtime is not None:
        os.utime(path, (mtime, mtime))
    return str(path)


LONG_AGO = 1_000_000_000.0


def test_a_file_is_read_when_somebody_asks(tmp_path):
    filename = written(tmp_path / "a.py", "one\ntwo\r\n\tthree", LONG_AGO)
    source = source_file(filename)
    assert source._lines is None
    assert [source.line(number) for number in (0, 1, 2, 3, 4, -1)] == [
        "", "one", "two", "\tthree", "", ""]
    assert source.state == "read"
    assert not source.is_in_memory
    assert source_file(filename) is source
    # What was read stays.
    written(tmp_path / "a.py", "another")
    assert source.line(1) == "one"


@pytest.mark.parametrize("text", ["one\nchanged\n", "one\ntwo\nthree\n", "eno\nowt\n"])
def test_a_file_that_was_edited_says_so(tmp_path, text):
    filename = written(tmp_path / "a.py", "one\ntwo\n", LONG_AGO)
    source = source_file(filename)
    written(tmp_path / "a.py", text)
    assert source.line(2) == ""
    assert source.state == "changed"


def test_what_linecache_remembers_is_not_asked(tmp_path):
    filename = written(tmp_path / "a.py", "old text\n", LONG_AGO)
    assert linecache.getline(filename, 1) == "old text\n"
    written(tmp_path / "a.py", "new text\n", LONG_AGO + 1)
    assert source_file(filename).line(1) == "new text"


def test_a_file_that_is_gone(tmp_path):
    filename = written(tmp_path / "a.py", "one\n", LONG_AGO)
    source = source_file(filename)
    os.remove(filename)
    assert (source.line(1), source.state) == ("", "changed")

    never = source_file(str(tmp_path / "never.py"))
    assert (never.line(1), never.state) == ("", "missing")
    later = source_file(str(tmp_path / "later.py"))
    written(tmp_path / "later.py", "not what ran\n")
    assert (later.line(1), later.state) == ("", "changed")


def test_a_name_is_not_looked_for_elsewhere(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    written(tmp_path / "some_cell.py", "not what ran\n", LONG_AGO)
    source = SourceFile("some_cell.py", None)
    assert (source.line(1), source.state) == ("", "missing")


def test_a_relative_name_after_a_change_of_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "a.py", "here\n", LONG_AGO)
    (tmp_path / "other").mkdir()
    written(tmp_path / "other" / "a.py", "elsewhere\n", LONG_AGO)
    source = SourceFile("a.py", None)
    monkeypatch.chdir(tmp_path / "other")
    assert source.line(1) == "here"


def test_encodings(tmp_path):
    latin = "# -*- coding: latin-1 -*-\né\n"
    (tmp_path / "latin.py").write_bytes(latin.encode("latin-1"))
    (tmp_path / "broken.py").write_bytes(b"one\n\xff\xfe\n")
    (tmp_path / "unknown.py").write_bytes(b"# -*- coding: klingon -*-\n")
    assert source_file(str(tmp_path / "latin.py")).line(2) == "é"
    for name in ("broken.py", "unknown.py"):
        source = source_file(str(tmp_path / name))
        assert (source.line(1), source.state) == ("", "missing")


@pytest.mark.parametrize("filename", ["\0", "half\ud800.py", "", "a" * 5000, "<", "/"])
def test_any_name(filename):
    source = source_file(filename)
    assert source.line(1) == ""
    assert source.state == "missing"


def test_text_in_memory_is_kept():
    def register(text):
        linecache.cache["/tmp/cell.py"] = (
            len(text), None, text.splitlines(True), "/tmp/cell.py")

    register("first\n")
    first = source_file("/tmp/cell.py")
    register("second\n")
    second = source_file("/tmp/cell.py")
    del linecache.cache["/tmp/cell.py"]
    assert (first.line(1), second.line(1)) == ("first", "second")
    assert first.is_in_memory


# {{{ written after the program began

def code_in(text: str, filename: str, name: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(compile(text, filename, "exec"), namespace)
    return namespace[name].__code__


TEXT = "def f():\n    return 1\n\ndef g():\n    return lambda: 2\n"


def test_a_new_file_is_believed_if_it_compiles_to_what_ran(tmp_path):
    filename = written(tmp_path / "a.py", TEXT)
    assert os.stat(filename).st_mtime_ns > source_module._STARTED
    source = source_file(filename, None, code_in(TEXT, filename, "f"))
    source_file(filename, None, code_in(TEXT, filename, "g"))
    assert source.line(2) == "    return 1"
    assert source.state == "read"


@pytest.mark.parametrize("edited", [
    "# comment\n" + TEXT, TEXT.replace("return 1", "return 7"), "def (", "",
    TEXT.replace("def g", "def h")])
def test_a_file_that_was_edited_before_the_first_look_says_so(tmp_path, edited):
    filename = written(tmp_path / "a.py", edited)
    for name in ("f", "g"):
        source_file(filename, None, code_in(TEXT, filename, name))
    source = source_file(filename)
    assert (source.line(2), source.state) == ("", "changed")


def test_other_code_of_a_file_that_was_read(tmp_path):
    edited = TEXT.replace("lambda: 2", "lambda: 3")
    filename = written(tmp_path / "a.py", edited)
    source = source_file(filename, None, code_in(TEXT, filename, "f"))
    assert source.line(2) == "    return 1"
    g = code_in(TEXT, filename, "g")
    source_file(filename, None, g)
    source_file(filename, None, next(c for c in g.co_consts if hasattr(c, "co_code")))
    assert (source.line(5), source.state) == ("", "changed")


EDITS_ITSELF = """
import pytato_provenance as pp
pp.enable()
import pytato as pt
with open(__file__) as file:
    text = file.read()
with open(__file__, "w") as file:
    file.write("# one line more\\n" + text)
x = pt.make_placeholder(name="x", shape=(), dtype=float)
frame = pp.created_at(x).user_frame
print(frame.lineno, frame.line, frame.source_state, sep="|")
"""


def test_a_program_that_is_edited_while_it_runs(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(EDITS_ITSELF)
    assert run_python(str(program)) == "9||changed\n"


def test_a_module_that_is_imported_again(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    written(tmp_path / "imported_again.py", "def f(): return 1\n")
    import imported_again  # type: ignore[import-not-found]

    source = source_file(imported_again.__file__, None, imported_again.f.__code__)
    assert source.line(1) == "def f(): return 1"

# }}}


def test_shared_names():
    text = "x = 1\ndef f(): return x\n"
    linecache.cache["<string>"] = (len(text), None, text.splitlines(True), "<string>")
    try:
        namespace: dict[str, Any] = {}
        exec(compile(text, "<string>", "exec"), namespace)
        ours = source_file("<string>", None, namespace["f"].__code__)
        assert ours.line(2) == "def f(): return x"
        exec("def f(): return 3", namespace)
        other = source_file("<string>", None, namespace["f"].__code__)
        assert (other.line(1), other.state) == ("", "missing")
    finally:
        del linecache.cache["<string>"]


def test_from_many_threads(tmp_path):
    filename = written(tmp_path / "a.py", "one\n", LONG_AGO)
    start = threading.Barrier(8)
    found = []

    def work():
        start.wait()
        found.append(source_file(filename))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1


def test_it_imports_no_host():
    program = ("import sys\n"
               "import pytato_provenance.source, pytato_provenance.sites\n"
               "assert not {'pytato', 'loopy', 'numpy', 'pytools'} & {*sys.modules}\n")
    run_python("-c", program)


