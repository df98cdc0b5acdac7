"""The command line: what it writes, where, and what it says about bad input."""

from __future__ import annotations

import inspect
import json
import re
import shutil
import sys
from typing import TYPE_CHECKING

import pytest
from running import ROOT, command, python

from pytato_provenance.record_json import read_record
from pytato_provenance.report.text import render_text


if TYPE_CHECKING:
    from pathlib import Path

    from running import Done


# {{{ bad input

BAD = {
    "no script": (["run"], "name a script"),
    "missing": (["run", "missing.py"], "cannot open the script 'missing.py'"),
    "directory": (["run", "empty"], "'empty' is a directory without a __main__.py"),
    "missing module": (["run", "-m", "no_such_module"],
                       "no module named 'no_such_module'"),
    "no module": (["run", "-m"], "expected one argument"),
    "unknown option": (["run", "--unknown", "script.py"], "--unknown"),
    "abbreviated": (["run", "--kern", "stdout", "script.py"], "--kern"),
    "no value": (["run", "--kernels"], "expected one argument"),
    "capture": (["run", "--capture", "magic", "script.py"],
                "unknown capture strategy 'magic'; choose one of"),
    "frames": (["run", "--max-frames", "0", "script.py"], "'0' is not a number from 1"),
    "kernels are a file": (["run", "--kernels", "script.py", "script.py"],
                           "cannot be a directory"),
    "beneath a file": (["run", "--kernels", "script.py/x", "script.py"],
                       "cannot be a directory"),
    "report beneath a file": (["run", "--report", "script.py/x.txt", "script.py"],
                              "cannot be a directory"),
    "command": (["fly"], "fly"),
    "no run": (["script.py"], "did you mean 'run script.py'?"),
    "record": (["report", "missing.json"], "cannot read 'missing.json'"),
    "no record": (["report", "empty"], "cannot read"),
    "not a record": (["report", "script.py"], "is not JSON"),
    "map is a directory": (["run", "--map", "empty", "script.py"],
                           "it is a directory"),
    "comments": (["run", "--comments", "pretty", "script.py"],
                 "'pretty' is not one of"),
    "region": (["run", "--region", "x", "script.py"], "add --compile-log"),
    "nowhere": (["report", "good.json", "--html", "missing/x.html"], "cannot write"),
    "strip": (["strip", "missing.cl"], "cannot read 'missing.cl': No such file"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(tmp_path: Path, name: str) -> None:
    """One clear line, exit status 2, nothing run and nothing written."""
    (tmp_path / "script.py").write_text("print('it ran')")
    (tmp_path / "empty").mkdir()
    (tmp_path / "good.json").write_text(render_json())
    before = {*tmp_path.iterdir()}
    arguments, message = BAD[name]
    done = command(tmp_path, *arguments)
    assert_refused(done, message)
    assert {*tmp_path.iterdir()} == before


def assert_refused(done: Done, message: str) -> None:
    assert done.returncode == 2
    assert done.stdout == b""
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("pytato-provenance: ")
    assert message in lines[0]


def render_json() -> str:
    from pytato_provenance.record import Record
    from pytato_provenance.record_json import record_to_json
    return record_to_json(Record("script.py"))


def test_hostile_names(tmp_path: Path) -> None:
    for name in ("new\nline.py", "esc\x1b[31m.py", "\u202eyp.x", "nul\0"):
        if "\0" not in name:
            assert_refused(command(tmp_path, "run", name), "cannot open the script")
    (tmp_path / "new\nline.py").write_text("print(__file__)")
    assert command(tmp_path, "run", "new\nline.py").returncode == 0


def test_host_is_missing(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print('it ran')")
    hide = ("import sys, importlib.abc\n"
            "class Hide(importlib.abc.MetaPathFinder):\n"
            "    def find_spec(self, name, path, target=None):\n"
            "        if name.partition('.')[0] == 'pytato':\n"
            "            raise ModuleNotFoundError(name)\n"
            "sys.meta_path.insert(0, Hide())\n"
            "from pytato_provenance.cli import main\n"
            "sys.exit(main())\n")
    (tmp_path / "hide.py").write_text(hide)
    done = python(tmp_path, "hide.py", "run", "script.py")
    assert_refused(done, "pytato is not installed for")
    # What needs no host works.
    (tmp_path / "good.json").write_text(render_json())
    done = python(tmp_path, "hide.py", "report", "good.json")
    assert done.returncode == 0
    assert done.stdout.startswith(b"script.py: 0 programs")


def test_host_is_too_old(tmp_path: Path) -> None:
    package = tmp_path / "pytato"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "array.py").write_text("class Array: pass\n")
    (tmp_path / "script.py").write_text("import pytato\nprint('it ran')")
    assert_refused(command(tmp_path, "run", "script.py"), "2021.2 or later")


def test_no_device(tmp_path: Path) -> None:
    """pyopencl's own error, with the program's own traceback."""
    (tmp_path / "script.py").write_text("""\
import pyopencl as cl
def get_platforms():
    raise cl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")
cl.get_platforms = get_platforms
import pytato as pt
x = pt.make_placeholder(name="x", shape=(10,), dtype=float)
pt.generate_loopy({"out": 2*x})
cl.create_some_context(interactive=False)
""")
    done = command(tmp_path, "run", "script.py")
    assert done.returncode == 1
    assert b"PLATFORM_NOT_FOUND_KHR" in done.stderr
    assert (tmp_path / "provenance-script/01_pt_kernel.cl").exists()


def test_help_and_version(tmp_path: Path) -> None:
    done = command(tmp_path, "--help")
    assert done.returncode == 0
    assert b"run" in done.stdout
    done = command(tmp_path, "run", "--help")
    assert done.returncode == 0
    assert b"--kernels" in done.stdout
    assert command(tmp_path, "--version").stdout.startswith(b"pytato-provenance ")
    done = command(tmp_path)
    assert done.returncode == 2
    assert done.stdout == b""

# }}}


# {{{ what is written

def program() -> None:
    """Not called: its lines are those of the program that is run."""
    import sys

    import numpy as np
    import pytato as pt

    def helper(a):
        return 3*a

    x = pt.make_placeholder(name="x", shape=(10, 4), dtype=np.float64)
    y = helper(x) + 1
    print("begin")
    pt.generate_loopy({"out": helper(y)})
    if "fail" in sys.argv:
        raise ValueError("on purpose")
    print("end", sys.argv[1:])


def write_program(directory: Path, addition: str = "") -> list[str]:
    lines, _ = inspect.getsourcelines(program)
    body = inspect.cleandoc("\n" + "".join(lines[2:]))
    (directory / "script.py").write_text(body + "\n" + addition)
    return body.splitlines()


def line_of(lines: list[str], text: str) -> int:
    number, = (number for number, line in enumerate(lines, 1) if text in line)
    return number


PLACES = ("return 3*a", "y = helper(x) + 1", "x = pt.make_placeholder")


def places_in(kernel: str) -> set[int]:
    # The name of the file is left out where it is that of the line above.
    return {int(number)
            for number in re.findall(r"//<-.*?(?:script\.py|\s):(\d+) in", kernel)}


def test_default_places(tmp_path: Path) -> None:
    lines = write_program(tmp_path)
    done = command(tmp_path, "run", "script.py", "--", "-x")
    assert done.returncode == 0
    assert done.stdout == b"begin\nend ['--', '-x']\n"
    assert done.stderr.decode().splitlines()[-1] == (
        "pytato-provenance: 1 program in provenance-script/, report in "
        "provenance-script/report.txt")
    directory = tmp_path / "provenance-script"
    assert sorted(path.name for path in directory.iterdir()) == [
        "01_pt_kernel.cl", "record.json", "report.txt"]
    kernel = (directory / "01_pt_kernel.cl").read_text()
    assert places_in(kernel) == {line_of(lines, place) for place in PLACES}

    record = read_record(str(directory / "record.json"))
    assert (directory / "report.txt").read_text() == render_text(record)
    assert record.program == "script.py"
    assert record.ended == "exit status 0"
    found, = record.programs
    assert found.text is not None
    assert found.text + "\n" == kernel
    assert found.file == "01_pt_kernel.cl"
    statement, = found.statements
    assert "out[" in "\n".join(
        kernel.split("\n")[statement.line - 1:statement.end_line])
    assert statement.variable == "out"
    sites = [record.sites[number] for number in statement.sites]
    # The helper was called from two places.
    helper, sum_ = line_of(lines, PLACES[0]), line_of(lines, PLACES[1])
    assert sorted((site.user_frame.line, len(site.frames)) for site in sites) == [
        (helper, 2), (helper, 2), (sum_, 1)]
    assert sum(nodes.count for nodes in found.nodes) == 4
    assert {variable.name: variable.kind for variable in found.variables} == {
        "x": "input", "out": "output"}
    assert str(tmp_path) not in (directory / "record.json").read_text()


def test_kernels_on_standard_output(tmp_path: Path) -> None:
    """After all output of the program, and nothing else is printed there."""
    write_program(tmp_path, "import atexit, threading\n"
                  "atexit.register(print, 'at exit')\n"
                  "threading.Timer(0.2, print, ['thread']).start()\n"
                  "pt.generate_loopy({'other': y})\n")
    done = command(tmp_path, "run", "--kernels", "stdout", "script.py")
    assert done.returncode == 0
    text = done.stdout.decode()
    begin = "begin\nend []\nthread\nat exit\n//<- pytato_provenance: "
    assert text.startswith(begin)
    assert text.count("__kernel void") == 2
    assert text.count("======== program") == 2
    kernels = text[len(begin):]
    assert kernels.index("program 1 of 2") < kernels.index("program 2 of 2")
    assert not [*tmp_path.glob("**/*.cl")]
    assert (tmp_path / "provenance-script/report.txt").exists()

    # What is left without our lines is what loopy wrote.
    (tmp_path / "all.cl").write_text(kernels)
    stripped = command(tmp_path, "strip", "all.cl").stdout.decode()
    assert "//<-" not in stripped
    plain = command(tmp_path, "run", "--kernels", "plain", "--no-annotate", "script.py")
    assert plain.returncode == 0
    texts = [path.read_text() for path in sorted((tmp_path / "plain").glob("*.cl"))]
    assert stripped[stripped.index("#define"):] == "".join(texts)


@pytest.mark.parametrize(("addition", "status"), [
    ("sys.exit(3)", 3), ("1/0", 1), ("import os; os._exit(5)", 5),
    ("raise KeyboardInterrupt", -2),
    ("import os; os.execvp('true', ['true'])", 0),
    ("import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(9)", -2),
])
def test_written_also_when_the_program_fails(tmp_path: Path, addition: str, status: int
                                             ) -> None:
    write_program(tmp_path, addition)
    done = command(tmp_path, "run", "script.py")
    assert done.returncode == status
    directory = tmp_path / "provenance-script"
    assert (directory / "01_pt_kernel.cl").exists()
    record = read_record(str(directory / "record.json"))
    assert len(record.programs) == 1
    assert record.ended != "exit status 0"


def test_children_write_nothing(tmp_path: Path) -> None:
    write_program(tmp_path, "import os\nchild = os.fork()\nif child == 0:\n"
                  "    pt.generate_loopy({'other': y})\n    sys.exit(0)\n"
                  "os.waitpid(child, 0)")
    assert command(tmp_path, "run", "script.py").stdout.count(b"end") <= 2
    assert len([*(tmp_path / "provenance-script").glob("*.cl")]) == 1


def test_late_programs(tmp_path: Path) -> None:
    """In threads that outlive the program, and in functions that are called at exit."""
    write_program(tmp_path, """
import atexit, threading, time
def late(name):
    time.sleep(0.2)
    pt.generate_loopy({name: 2*y})
threading.Thread(target=late, args=("in_thread",)).start()
atexit.register(late, "at_exit")
import os; os.chdir("/")
sys.stdout = sys.stderr = None
""")
    done = command(tmp_path, "run", "script.py")
    assert done.returncode == 0, done.stderr
    text = "".join(path.read_text()
                   for path in (tmp_path / "provenance-script").glob("*.cl"))
    assert text.count("__kernel void") == 3
    assert "in_thread" in text
    assert "at_exit" in text
    assert b"3 programs in" in done.stderr


def test_former_run_is_replaced(tmp_path: Path) -> None:
    write_program(tmp_path, "pt.generate_loopy({'other': y})")
    command(tmp_path, "run", "script.py")
    directory = tmp_path / "provenance-script"
    (directory / "02_mine.cl").write_text("")
    (directory / "notes.txt").write_text("")
    assert len([*directory.glob("*.cl")]) == 3
    write_program(tmp_path)
    command(tmp_path, "run", "script.py")
    assert sorted(path.name for path in directory.iterdir()) == [
        "01_pt_kernel.cl", "02_mine.cl", "notes.txt", "record.json", "report.txt"]


def test_nothing_is_written_where_nothing_was_generated(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print(1)")
    done = command(tmp_path, "run", "script.py")
    assert done.stdout == b"1\n"
    assert done.stderr == (
        b"pytato-provenance: no kernel was generated, nothing was written\n")
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


@pytest.mark.parametrize(("report", "kind"), [
    ("out.txt", "text"), ("new/out.html", "html"), ("out.json", "record"),
    ("directory", "both"),
])
def test_places_of_the_report(tmp_path: Path, report: str, kind: str) -> None:
    write_program(tmp_path)
    done = command(tmp_path, "run", "--kernels", "kernels", "--report", report,
                   "script.py")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "kernels").iterdir()] == [
        "01_pt_kernel.cl"]
    path = tmp_path / report
    if kind == "both":
        assert sorted(item.name for item in path.iterdir()) == [
            "record.json", "report.txt"]
    elif kind == "html":
        assert path.read_text().startswith("<!DOCTYPE html>")
    elif kind == "record":
        assert json.loads(path.read_text())["version"] == 1
    else:
        assert path.read_text().startswith("script.py: 1 program, 4 arrays")


def test_processes_of_an_mpi_program(tmp_path: Path) -> None:
    """They do not write over each other's results."""
    write_program(tmp_path)
    for rank in "01":
        done = command(tmp_path, "run", "--map", "map.json", "script.py",
                       OMPI_COMM_WORLD_RANK=rank, OMPI_COMM_WORLD_SIZE="2")
        assert done.returncode == 0, done.stderr
    for rank in "01":
        names = {path.name for path in (
            tmp_path / "provenance-script" / f"rank{rank}").iterdir()}
        assert names == {"01_pt_kernel.cl", "record.json", "report.txt"}
        assert (tmp_path / f"map-rank{rank}.json").exists()
    command(tmp_path, "run", "script.py", PMI_RANK="0", PMI_SIZE="1")
    assert (tmp_path / "provenance-script/report.txt").exists()


def test_current_directory_is_gone(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "script.py").write_text("print('it ran')")
    (tmp_path / "remove.py").write_text(
        "import os, sys; from pytato_provenance.cli import main\n"
        "os.chdir('gone'); os.rmdir('../gone'); sys.exit(main())")
    assert_refused(python(tmp_path, "remove.py", "run", "../script.py"), "")


@pytest.mark.parametrize("annotate", [(), ("--no-annotate",)])
def test_map(tmp_path: Path, annotate: tuple[str, ...]) -> None:
    lines = write_program(tmp_path)
    done = command(tmp_path, "run", "--map", "new/map.json", *annotate, "script.py")
    assert done.returncode == 0, done.stderr
    data = json.loads((tmp_path / "new/map.json").read_text())
    assert (data["format"], data["version"]) == ("pytato_provenance map", 1)
    program, = data["programs"]
    kernel = (tmp_path / "provenance-script" / program["file"]).read_text().split("\n")
    statement, = program["statements"]
    first, last = statement["lines"]
    begin, end = statement["columns"]
    assert first == last
    assert kernel[first - 1][begin:end] == kernel[first - 1].strip()
    assert kernel[first - 1][begin:].startswith("out[")
    # One of the helper: its two calls are of the same place.
    assert [site["line"] for site in statement["sites"]] == [
        line_of(lines, place) for place in PLACES[:2]]
    for site, text in zip(statement["sites"], ("3*a", "helper(x) + 1"), strict=True):
        assert site["file"] == "script.py"
        if site["column"] is not None:
            assert lines[site["line"] - 1][site["column"]:site["end_column"]] == text
        else:
            assert sys.version_info < (3, 11)

    saved = command(tmp_path, "report", "provenance-script", "--map", "again.json")
    assert saved.returncode == 0
    assert json.loads((tmp_path / "again.json").read_text()) == data


REGIONS = """
import pytato_provenance as pp
with pp.region("inside"):
    z = pt.roll(x, 3, axis=0)
pt.generate_loopy({"z": z})
"""


def test_compile_log(tmp_path: Path) -> None:
    lines = write_program(tmp_path, REGIONS)
    done = command(tmp_path, "run", "--compile-log", "script.py")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "provenance-script/compile_log.txt").read_text()
    assert "pytato's generation" in text
    assert f"script.py:{line_of(lines, PLACES[0])}" in text

    done = command(tmp_path, "run", "-q", "--compile-log=log.jsonl", "--region",
                   "in*", "script.py")
    assert done.returncode == 0, done.stderr
    every = [json.loads(line)
             for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert every
    assert "inside" in (tmp_path / "log.jsonl").read_text()
    assert f'script.py:{line_of(lines, PLACES[0])}"' not in (
        tmp_path / "log.jsonl").read_text()

    command(tmp_path, "run", "-q", "--compile-log=log.json", "script.py")
    assert "traceEvents" in json.loads((tmp_path / "log.json").read_text())


@pytest.mark.parametrize("log", ["log.txt", "log.jsonl", "log.json"])
def test_files_in_the_log_are_named_as_in_the_report(tmp_path: Path, log: str) -> None:
    """Wherever the program is run from, and wherever it goes."""
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    lines = write_program(tmp_path / "there", "import os; os.chdir('/')")
    where = f"script.py:{line_of(lines, PLACES[0])}"
    for directory, script, shown in (
            (tmp_path, "there/script.py", "there/" + where),
            (tmp_path / "here", "../there/script.py", where)):
        done = command(directory, "run", f"--compile-log={log}", script)
        assert done.returncode == 0, done.stderr
        file, _, lineno = shown.partition(":")
        text = (directory / log).read_text()
        expected = (f"\n{shown} " if log.endswith("txt")
                    else f'{{"file": "{file}", "line": {lineno}, ')
        assert expected in text
        report = (directory / "provenance-script/report.txt").read_text()
        assert f"\n{file}: 2 lines" in report or f"\n{file}: 3 lines" in report


def test_stacks_in_comments(tmp_path: Path) -> None:
    lines = write_program(tmp_path)
    done = command(tmp_path, "run", "--stacks", "--kernels", "stdout", "script.py")
    text = done.stdout.decode()
    for place in (PLACES[1], "pt.generate_loopy"):
        assert f"//<-   from script.py:{line_of(lines, place)} in <module>\n" in text
    assert "run_script" not in text
    assert "runpy" not in text


def test_look_of_comments(tmp_path: Path) -> None:
    lines = write_program(tmp_path)
    done = command(tmp_path, "run", "-q", "--comments", "no-text,no-header,columns",
                   "--kernels", "stdout", "script.py")
    assert done.returncode == 0
    text = done.stdout.decode()
    assert "helper(x) + 1" not in text
    assert "strip_annotations" not in text
    assert f"script.py:{line_of(lines, PLACES[0])}" in text


def test_options(tmp_path: Path) -> None:
    lines = write_program(tmp_path)
    done = command(tmp_path, "run", "-q", "--stacks", "--max-frames", "1",
                   "--absolute-paths", "script.py")
    assert done.returncode == 0
    assert b"pytato-provenance:" not in done.stderr
    record = read_record(str(tmp_path / "provenance-script/record.json"))
    assert {len(site.frames) for site in record.sites} == {1}
    assert {frame.file for site in record.sites for frame in site.frames} == {
        str(tmp_path / "script.py")}
    report = (tmp_path / "provenance-script/report.txt").read_text()
    assert "stack:" in report
    assert f"script.py:{line_of(lines, PLACES[0])} in helper" in report


def test_results_that_cannot_be_written(tmp_path: Path) -> None:
    """Said in a line; the exit status is the program's."""
    write_program(tmp_path, "open('provenance-script', 'w').close(); sys.exit(4)")
    done = command(tmp_path, "run", "script.py")
    assert done.returncode == 4
    assert done.stderr.decode().splitlines()[-1].startswith(
        "pytato-provenance: the results could not be written: FileExistsError")


def test_standard_output_is_closed(tmp_path: Path) -> None:
    """The files are written nevertheless."""
    write_program(tmp_path, "sys.stdout.close()")
    done = command(tmp_path, "run", "--kernels", "stdout", "--compile-log", "script.py")
    assert done.returncode == 0
    assert b"could not be written: ValueError" in done.stderr
    assert sorted(path.name for path in (tmp_path / "provenance-script").iterdir()) == [
        "compile_log.txt", "record.json", "report.txt"]


def test_program_that_changes_meanwhile(tmp_path: Path) -> None:
    """Never the text of another line."""
    write_program(tmp_path, "open(__file__, 'w').write('# another text\\n' * 30)")
    done = command(tmp_path, "run", "script.py")
    assert done.returncode == 0
    directory = tmp_path / "provenance-script"
    for path in directory.iterdir():
        assert "another text" not in path.read_text()
    assert read_record(str(directory / "record.json")).changed_files == ("script.py",)
    assert "The file has changed since" in (directory / "report.txt").read_text()


@pytest.mark.parametrize("beginning", [
    "pp.enable()", "pp.disable(); pp.enable()", "pp.enable(annotate=True)",
    "pp.recording().__enter__()", "pp.enable(capture='site', annotate=False)"])
def test_program_that_switches_recording_on(tmp_path: Path, beginning: str) -> None:
    write_program(tmp_path)
    script = tmp_path / "script.py"
    script.write_text(f"import pytato_provenance as pp\n{beginning}\n"
                      + script.read_text() + "\npp.disable()\n")
    done = command(tmp_path, "run", "script.py")
    assert done.returncode == 0
    kernel = (tmp_path / "provenance-script/01_pt_kernel.cl").read_text()
    text = script.read_text().splitlines()
    assert places_in(kernel) == {line_of(text, place) for place in PLACES}


@pytest.mark.parametrize("module", [
    "array_context", "auditing", "compilation.log", "instrument", "lowering", "record",
    "tags", "transform"])
def test_program_that_imports_the_package_first(tmp_path: Path, module: str) -> None:
    write_program(tmp_path)
    script = tmp_path / "script.py"
    script.write_text(f"import pytato_provenance.{module}\n" + script.read_text())
    done = command(tmp_path, "run", "script.py")
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "provenance-script/01_pt_kernel.cl").exists()


def test_program_that_switches_recording_off(tmp_path: Path) -> None:
    write_program(tmp_path)
    script = tmp_path / "script.py"
    script.write_text("import pytato_provenance as pp, pytato\npp.disable()\n"
                      + script.read_text())
    done = command(tmp_path, "run", "script.py")
    assert done.returncode == 0
    assert done.stderr.decode() == (
        "pytato-provenance: no kernel was generated before the program switched "
        "recording off, nothing was written\n")


def test_program_that_uses_the_package(tmp_path: Path) -> None:
    """Its own switching off, and its own errors, are its own."""
    write_program(tmp_path, "import pytato_provenance as pp\n"
                  "print(pp.is_enabled(), pp.created_at(y))\npp.disable()\n"
                  "pp.created_at(1)")
    done = command(tmp_path, "run", "script.py")
    assert done.returncode == 1
    assert b"True script.py:" in done.stdout
    assert b"NotAnArrayError: created_at takes a pytato array" in done.stderr
    assert (tmp_path / "provenance-script/01_pt_kernel.cl").exists()

# }}}


# {{{ saved records

def test_report_without_a_host(tmp_path: Path) -> None:
    write_program(tmp_path)
    command(tmp_path, "run", "script.py")
    saved = tmp_path / "provenance-script"
    shown = command(tmp_path, "report", str(saved))
    assert shown.returncode == 0
    assert shown.stdout.decode() == (saved / "report.txt").read_text()
    (tmp_path / "bare.py").write_text("""\
import sys
for name in ("pytato", "loopy", "pytools", "numpy", "pyopencl", "islpy"):
    sys.modules[name] = None
from pytato_provenance.cli import main
status = main()
assert not [name for name in sys.modules if name.startswith("pytato.")]
sys.exit(status)
""")
    bare = python(tmp_path, "bare.py", "report", str(saved / "record.json"))
    assert bare.stdout == shown.stdout, bare.stderr
    page = python(tmp_path, "bare.py", "report", str(saved), "--html", "page.html")
    assert page.returncode == 0
    assert "return 3*a" in re.sub("<[^>]*>", "", (tmp_path / "page.html").read_text())


def test_broken_pipe(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not there")
    (tmp_path / "good.json").write_text(render_json())
    (tmp_path / "pipe.py").write_text(
        "import subprocess, sys\nprocess = subprocess.Popen([sys.executable, '-m', "
        "'pytato_provenance', 'report', 'good.json'], stdout=subprocess.PIPE, "
        "stderr=subprocess.PIPE)\nprocess.stdout.close()\n"
        "print(process.stderr.read())\nprint(process.wait())")
    assert python(tmp_path, "pipe.py").stdout == b"b''\n1\n"

# }}}


@pytest.mark.parametrize("example", ["heat.py", "advection/main.py"])
def test_examples(tmp_path: Path, example: str) -> None:
    arguments = ["--calls", "1"] if example == "heat.py" else ["--elements", "8"]
    path = str(ROOT / "examples" / example)
    watched = command(tmp_path, "run", path, *arguments)
    assert watched.returncode == 0, watched.stderr
    directory, = tmp_path.glob("provenance-*")
    record = read_record(str(directory / "record.json"))
    assert record.programs
    for program in record.programs:
        assert program.failure is None
        assert all(statement.sites for statement in program.statements)
        assert {record.sites[number].kind for nodes in program.nodes
                for number in nodes.sites} == {"known"}
    assert str(ROOT) not in (directory / "record.json").read_text()


@pytest.mark.parametrize("how", ["script", "module"])
def test_stacks_end_where_the_program_begins(tmp_path: Path, how: str) -> None:
    text = f"""\
        import sys, traceback
        sys.path.insert(0, {str(ROOT)!r})
        import numpy as np
        import pytato as pt
        from pytato_provenance import created_at, recording

        def make():
            return (pt.make_placeholder(name="x", shape=(4,), dtype=np.float64),
                    len(traceback.extract_stack()))

        with recording():
            ary, depth = make()
        frames = created_at(ary).frames
        print(depth - len(frames), [frame.qualname for frame in frames][:2])
        """
    (tmp_path / "prog.py").write_text(inspect.cleandoc(text))
    program = ("prog.py",) if how == "script" else ("-m", "prog")
    # Plainly, the site has the whole stack; so it has none of ours here.
    plain = python(tmp_path, *program)
    assert plain.stdout.decode().split()[0] == "0", plain.stderr
    run = command(tmp_path, "run", "-q", *program)
    assert run.stdout.split(maxsplit=1)[1] == plain.stdout.split(maxsplit=1)[1]
    assert int(run.stdout.split()[0]) > 0
