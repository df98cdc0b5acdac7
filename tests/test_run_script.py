"""Programs that are run from the command line behave as under plain ``python``."""

from __future__ import annotations

import re
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest
from running import ROOT, command, python


if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


# No host is imported in most of these programs: the processes start quickly, and what
# is compared is the same for all.

def assert_same(cwd: Path, *arguments: str, flags: Sequence[str] = ()) -> bytes:
    plain = python(cwd, *arguments, flags=flags)
    watched = command(cwd, "run", "-q", *arguments, flags=flags)
    assert without_addresses(watched.stdout) == without_addresses(plain.stdout)
    assert without_addresses(watched.stderr) == without_addresses(plain.stderr)
    assert watched.returncode == plain.returncode
    assert not [*cwd.glob("provenance-*")]
    return plain.stdout + plain.stderr


def without_addresses(output: bytes) -> bytes:
    return re.sub(rb"0x[0-9a-f]+", b"0x", output)


def write(directory: Path, source: str, name: str = "script.py") -> str:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    return name


# {{{ what a program sees

SHOW = """\
import __main__, sys
print(__name__, __file__, __spec__, __package__, __doc__)
print(sys.argv, sys.path[0])
print(sys.modules["__main__"] is __main__, vars(__main__) is globals())
shown = {name: type(value).__qualname__ for name, value in globals().items()}
print([*shown.items()])
print(__loader__.name, __loader__.path, __builtins__)
print("__cached__", globals().get("__cached__"))
def function(): pass
import pickle, inspect
print(pickle.loads(pickle.dumps(function)) is function, inspect.getsource(function))
print([name for name in ("numpy", "pytato", "loopy") if name in sys.modules])
print(sys.flags, sys.warnoptions)
"""


@pytest.mark.parametrize("arguments", [
    (), ("a", "--", "-x", "--kernels", "stdout"), ("--", "b"), ("--help",), ("",),
    ("-m", "other"), ("--report=x", "-q", "--unknown"),
])
def test_namespace_and_arguments(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    write(tmp_path, SHOW)
    assert_same(tmp_path, "script.py", *arguments)


@pytest.mark.parametrize("path", [
    "./script.py", "sub/../script.py", "././script.py", "link.py", "sub/deep.py",
    "sub/link_to_link.py", "with space.py", "no_suffix",
])
def test_paths(tmp_path: Path, path: str) -> None:
    write(tmp_path, SHOW)
    write(tmp_path, SHOW, "sub/deep.py")
    write(tmp_path, SHOW, "with space.py")
    write(tmp_path, SHOW, "no_suffix")
    (tmp_path / "link.py").symlink_to("sub/deep.py")
    (tmp_path / "sub/link_to_link.py").symlink_to("../link.py")
    assert_same(tmp_path, path)
    assert_same(tmp_path, str(tmp_path / path))


def test_modules_beside_the_script(tmp_path: Path) -> None:
    # Also where the name is that of a module of the standard library, or of ours.
    for name in ("html", "record", "cli", "report"):
        write(tmp_path, f"print('mine: {name}')", f"sub/{name}.py")
    write(tmp_path, "import html, record, cli, report; print(html.__file__)",
          "sub/script.py")
    assert_same(tmp_path, "sub/script.py")


@pytest.mark.parametrize("flags", [
    ("-O",), ("-I",), ("-E",), ("-W", "error"), ("-X", "utf8"), ("-B", "-s"),
    pytest.param(("-P",), marks=pytest.mark.skipif(
        sys.version_info < (3, 11), reason="-P is from 3.11 on")),
])
def test_flags_of_the_interpreter(tmp_path: Path, flags: tuple[str, ...]) -> None:
    write(tmp_path, SHOW + "assert not print('asserts')")
    if {*flags} & {"-I", "-E"}:
        # They ignore PYTHONPATH, by which this project may be found.
        found = python(tmp_path, "-c", "import pytato_provenance", flags=flags)
        if found.returncode:
            pytest.skip("the project is not installed")
    assert_same(tmp_path, "script.py", flags=flags)


def test_module(tmp_path: Path) -> None:
    write(tmp_path, "print('package', __name__)", "pack/__init__.py")
    write(tmp_path, "value = 3", "pack/other.py")
    write(tmp_path, SHOW.replace("__spec__,", "__spec__.name,")
          + "from .other import value; print(value)", "pack/mod.py")
    write(tmp_path, "import sys; print(sys.argv); 1/0", "pack/__main__.py")
    assert_same(tmp_path, "-m", "pack.mod", "-m", "x")
    assert_same(tmp_path, "-mpack.mod", "--", "x")
    assert b"ZeroDivisionError" in assert_same(tmp_path, "-m", "pack", "x")
    assert b"No module named" in assert_same(tmp_path, "-m", "pack.missing")


def test_directory_and_zip_file(tmp_path: Path) -> None:
    source = "import sys, beside; print(sys.argv, sys.path[0], __file__); 1/0"
    write(tmp_path, source, "app/__main__.py")
    write(tmp_path, "", "app/beside.py")
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("__main__.py", source)
        archive.writestr("beside.py", "")
    assert_same(tmp_path, "app", "x")
    assert_same(tmp_path, "./app", "x")
    assert_same(tmp_path, "app.zip", "x")


def test_compiled_script(tmp_path: Path) -> None:
    write(tmp_path, SHOW.replace("inspect.getsource(function)", "0"))
    python(tmp_path, "-c",
           "import py_compile; py_compile.compile('script.py', 's.pyc')")
    assert_same(tmp_path, "s.pyc", "x")


def test_console_script(tmp_path: Path) -> None:
    """The command that an installation makes is a script in a directory of its own."""
    write(tmp_path, "import sys; from pytato_provenance.cli import main\n"
          "sys.exit(main())", "bin/pytato-provenance")
    write(tmp_path, SHOW + "1/0")
    write(tmp_path, "import sys; print(sys.path[0])", "mod.py")
    for program in (["script.py", "-x"], ["-m", "mod"]):
        plain = python(tmp_path, *program)
        watched = python(tmp_path, "bin/pytato-provenance", "run", "-q", *program)
        assert (watched.stdout, watched.stderr) == (plain.stdout, plain.stderr)
        assert watched.returncode == plain.returncode

# }}}


# {{{ how it ends

RAISE = {
    "none": "sys.exit()",
    "zero": "sys.exit(0)",
    "three": "sys.exit(3)",
    "large": "sys.exit(300)",
    "negative": "sys.exit(-1)",
    "text": "sys.exit('a message')",
    "object": "sys.exit([1, 2])",
    "error": "1/0",
    "in_function": "def f(x):\n    return g(x)\ndef g(x):\n    raise OSError(x)\nf(1)",
    "cause": "try:\n    1/0\nexcept ZeroDivisionError as e:\n"
             "    raise OSError('b') from e",
    "context": "try:\n    1/0\nexcept ZeroDivisionError:\n    {}['x']",
    "syntax": "def f(:\n    pass",
    "indentation": "if True:\nx = 1",
    "interrupt": "raise KeyboardInterrupt",
    "generator_exit": "raise GeneratorExit",
    "own_class": "class Mine(Exception):\n    pass\nraise Mine('x', 2)",
    "bad_str": "class Bad(Exception):\n    def __str__(self): 1/0\nraise Bad",
    "hook": "def hook(kind, value, tb):\n"
            "    import traceback; print(len(traceback.extract_tb(tb)), tb is "
            "value.__traceback__, sys.last_value is value, sys.last_traceback is tb)\n"
            "sys.excepthook = hook\n1/0",
    "failing_hook": "def hook(kind, value, tb):\n    {}['in the hook']\n"
                    "sys.excepthook = hook\n1/0",
    "exiting_hook": "def hook(kind, value, tb):\n    sys.exit(7)\n"
                    "sys.excepthook = hook\n1/0",
    "os_exit": "import os; sys.stdout.flush(); os._exit(5)",
    "exec": "import os; sys.stdout.flush()\n"
            "os.execv(sys.executable, [sys.executable, '-c', 'print(\"other\")'])",
    "execvp": "import os; sys.stdout.flush(); os.execvp('echo', ['echo', 'other'])",
    "abort": "import os; sys.stdout.flush(); os.abort()",
    "signal": "import os, signal; sys.stdout.flush()\n"
              "os.kill(os.getpid(), signal.SIGTERM)",
    "closed": "sys.stdout.close()",
}


@pytest.mark.parametrize("name", RAISE)
def test_exit(tmp_path: Path, name: str) -> None:
    write(tmp_path, f"import sys; print('begin')\n{RAISE[name]}\nprint('end')")
    assert_same(tmp_path, "script.py")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="groups are from 3.11 on")
def test_exception_group(tmp_path: Path) -> None:
    write(tmp_path, """\
def f(x):
    raise ValueError(x)
errors = []
for x in range(2):
    try:
        f(x)
    except ValueError as error:
        error.add_note("a note")
        errors.append(error)
raise ExceptionGroup("several", errors)
""")
    assert_same(tmp_path, "script.py")


def test_encodings(tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(
        b"# -*- coding: latin-1 -*-\nprint(ascii('\xe9'))\n1/0 # \xe9\n")
    assert_same(tmp_path, "latin.py")
    (tmp_path / "mark.py").write_bytes(b"\xef\xbb\xbfprint(1)\r\n1/0\r\n")
    assert_same(tmp_path, "mark.py")
    (tmp_path / "unicode.py").write_text("print('ü')\nname_ü = 1/0\n", "utf-8")
    assert_same(tmp_path, "unicode.py")


def test_threads_and_exit_functions(tmp_path: Path) -> None:
    write(tmp_path, """\
import atexit, sys, threading, time
def late(name):
    time.sleep(0.2)
    print("thread", name, flush=True)
for name in "ab":
    atexit.register(print, "at exit", name)
threading.Thread(target=late, args=("c",)).start()
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
class Last:
    def __del__(self):
        print("deleted")
last = Last()
sys.exit("the message")
""")
    assert_same(tmp_path, "script.py")


def test_error_in_thread_and_exit_function(tmp_path: Path) -> None:
    write(tmp_path, """\
import atexit, threading
def fail():
    raise ValueError("here")
atexit.register(fail)
thread = threading.Thread(target=fail, name="one")
thread.start()
thread.join()
""")
    assert_same(tmp_path, "script.py")


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_processes(tmp_path: Path, method: str) -> None:
    write(tmp_path, f"""\
import multiprocessing, os, sys
def work(x):
    return x + 1, __name__, sys.argv, sys.path[0]
assert __name__ in ("__main__", "__mp_main__")
if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    with context.Pool(2) as pool:
        print(pool.map(work, [1, 2]))
    process = context.Process(target=work, args=(1,))
    process.start()
    process.join()
    print(process.exitcode)
""")
    write(tmp_path, (tmp_path / "script.py").read_text(), "pack/mod.py")
    assert_same(tmp_path, "script.py", "x")
    assert_same(tmp_path, "-m", "pack.mod", "x")


def test_fork_that_ends_as_the_script_does(tmp_path: Path) -> None:
    write(tmp_path, """\
import os, sys
child = os.fork()
if child:
    os.waitpid(child, 0)
    print("parent")
else:
    print("child")
""")
    assert_same(tmp_path, "script.py")

# }}}


# {{{ when the host is there

def test_import_of_the_host_is_the_program_s(tmp_path: Path) -> None:
    """What is set before the import counts, and the module looks as it always does."""
    write(tmp_path, """\
import sys
print([name for name in ("pytato", "loopy", "numpy") if name in sys.modules])
import pytato, inspect, importlib.util
print(type(pytato.__loader__), vars(pytato.__loader__), pytato.__spec__)
print(inspect.getsource(pytato)[:100], importlib.util.find_spec("pytato").loader)
try:
    import pytato.missing
except ImportError as error:
    print(error)
""")
    plain = python(tmp_path, "script.py")
    if plain.returncode:
        pytest.skip("pytato cannot be imported as it is")
    watched = command(tmp_path, "run", "-q", "script.py")
    assert without_addresses(watched.stdout) == without_addresses(plain.stdout)
    assert watched.returncode == 0


def test_failing_import_of_the_host(tmp_path: Path) -> None:
    """The program's own business, and its traceback."""
    write(tmp_path, "import sys\nraise ImportError('it is broken')\n",
          "pytato/__init__.py")
    write(tmp_path, "try:\n    import pytato\nexcept ImportError as e:\n    print(e)\n"
          "import pytato")
    output = assert_same(tmp_path, "script.py")
    assert b"it is broken" in output


def test_error_of_the_host(tmp_path: Path) -> None:
    """Our frames are not in the traceback."""
    write(tmp_path, """\
import pytato as pt
def f():
    return pt.make_placeholder(name="x", shape=(10,), dtype=float).reshape(3)
f()
""")
    watched = command(tmp_path, "run", "-q", "script.py")
    assert watched.returncode == 1
    text = watched.stderr.decode()
    assert text.startswith("Traceback (most recent call last):\n")
    assert f'File "{tmp_path}/script.py", line 4, in <module>' in text
    assert str(ROOT / "pytato_provenance") not in text
    assert "runpy" not in text

# }}}
