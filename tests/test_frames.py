"""Whose code is it?"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import os
import sys
from pathlib import Path
from typing import Any

import pytato as pt
import pytest
from looking import run_python, where

import pytato_provenance as pp
from pytato_provenance import frames
from pytato_provenance.diagnostic import UsageError
from pytato_provenance.frames import is_host_code, is_user_code


pytestmark = pytest.mark.usefixtures("disabled_afterwards")


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """What a test registers is forgotten after it."""
    registry = frames._Registry()
    registry.version = frames._registry.version
    registry.listeners = frames._registry.listeners
    old = frames._registry
    monkeypatch.setattr(frames, "_registry", registry)
    yield
    old.version = registry.version + 1


MAKES = "import pytato as pt\n\ndef make():\n    return pt.make_placeholder(" \
    "name='x', shape=(4,), dtype=float)\n"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A way to write a module that makes an array, and import it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def write(*parts: str, text: str = MAKES) -> Any:
        path = tmp_path.joinpath(*parts).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = path.parent
        while folder != tmp_path:
            (folder / "__init__.py").touch()
            folder = folder.parent
        path.write_text(text)
        importlib.invalidate_caches()
        return importlib.import_module(".".join(parts))

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_libraries_and_the_users_code():
    assert is_user_code(__file__, __name__)
    for module in (pt, os, contextlib, dataclasses, functools, pytest,
                   sys.modules["pytato_provenance"], sys.modules["numpy"]):
        assert not is_user_code(module.__file__, module.__name__), module
    assert is_host_code(pt.__file__)
    assert is_host_code(contextlib.__file__)
    assert not is_host_code(__file__)
    assert not is_host_code(os.__file__)
    assert not is_host_code(sys.modules["numpy"].__file__)


@pytest.mark.parametrize("parts", [
    ("mypytato",), ("pytato_mine",), ("mypytato", "pytato"),
    ("my", "pytato", "pytools"), ("my", "loopy"), ("numpy_of_mine", "numpy"),
    ("my", "distributed", "pytato")], ids="/".join)
def test_a_users_package_of_similar_name(package, parts):
    make = package(*parts).make
    with pp.recording():
        site = pp.created_at(make())
    assert where(site)[1:] == (4, "make")
    assert site.user_frame.module == ".".join(parts)


def test_a_script_in_a_folder_of_that_name(tmp_path):
    folder = tmp_path / "pytato"
    folder.mkdir()
    script = folder / "loopy.py"
    # Not from the folder itself: the names there would hide the real ones.
    script.write_text("import sys; sys.path.pop(0)\n"
                      "import pytato_provenance as pp; pp.enable()\n" + MAKES
                      + "frame = pp.created_at(make()).user_frame\n"
                      "print(frame.filename == __file__)\n")
    assert run_python(str(script)) == "True\n"


LIBRARY = "def call(function, *args):\n    return function(*args)\n"


def test_registered_libraries_are_skipped(package):
    library = package("deep", "library", text=LIBRARY)
    make = package("physics").make

    with pp.recording():
        site = pp.created_at(library.call(pt.roll, pt.zeros((4,), float), 1))
        other = pp.created_at(library.call(make))
    assert site.user_frame.module == "deep.library"
    assert other.user_frame.module == "physics"
    pp.register_library("deep")
    # Sites that were taken before are shown differently: nothing of them is lost.
    assert site.user_frame.filename == __file__
    assert "deep.library" in [frame.module for frame in site.frames]
    assert other.user_frame.module == "physics"
    pp.register_user("deep.library")
    assert "deep.library" in [frame.module for frame in site.user_frames]
    pp.register_library("physics")
    assert other.user_frame.module == "deep.library"


def test_modules_of_a_package_one_by_one(package):
    operators = package("solver", "op")
    models = package("solver", "models", "euler")
    pp.register_library("solver.op")
    with pp.recording():
        assert pp.created_at(operators.make()).user_frame.filename == __file__
        assert pp.created_at(models.make()).user_frame.module == "solver.models.euler"


@pytest.mark.parametrize("form", ["module", "name", "path", "pathlib", "folder",
                                  "folder with a slash"])
def test_what_can_be_registered(package, form, tmp_path):
    module = package("some", "lib")
    what = {"module": module, "name": "some.lib", "path": module.__file__,
            "pathlib": Path(module.__file__), "folder": str(tmp_path / "some"),
            "folder with a slash": f"{tmp_path}/some/"}[form]
    assert is_user_code(module.__file__)
    pp.register_library(what)
    assert not is_user_code(module.__file__)
    assert is_user_code(str(tmp_path / "something.py"))
    pp.register_user(what)
    assert is_user_code(module.__file__)


def test_a_package_that_is_not_imported_yet(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    for half in ("one", "two"):
        (tmp_path / half / "spread_out").mkdir(parents=True)
        (tmp_path / half / "spread_out" / f"part_{half}.py").touch()
        monkeypatch.syspath_prepend(str(tmp_path / half))
    pp.register_library("spread_out")
    assert "spread_out" not in sys.modules
    for half in ("one", "two"):
        assert not is_user_code(str(tmp_path / half / "spread_out" / f"part_{half}.py"))


def test_a_module_before_a_directory(tmp_path, monkeypatch, package):
    module = package("checkout")
    (tmp_path / "elsewhere" / "checkout").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    pp.register_library("checkout")
    assert not is_user_code(module.__file__)
    (tmp_path / "elsewhere" / "only_a_folder").mkdir()
    pp.register_library("only_a_folder")
    assert not is_user_code(str(tmp_path / "elsewhere" / "only_a_folder" / "a.py"))


@pytest.mark.parametrize("nothing", ["no_such_module", "no/such/path", "no_such.py", "",
                                     "sys.path.no", b"bytes", "..no"])
def test_what_cannot_be_registered(nothing):
    with pytest.raises(UsageError):
        pp.register_library(nothing)
    with pytest.raises(UsageError):
        pp.register_user(nothing)


def test_a_link_is_where_it_leads(package, tmp_path):
    module = package("real", "lib")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real", target_is_directory=True)
    pp.register_library(link)
    assert not is_user_code(module.__file__)
    assert not is_user_code(str(link / "lib.py"))


def test_generated_code():
    for name in ("<container arithmetic operator code>", "<frozen runpy>",
                 "<dataclass augmentation code for Array>"):
        assert not is_user_code(name, "__main__"), name
    for name in ("<string>", "<stdin>", "<ipython-input-1-abc>", "<cell>", "<>"):
        assert is_user_code(name, "__main__")
        assert is_user_code(name, None)
        assert is_user_code(name, __name__)
        assert not is_user_code(name, "numpy.core")
        assert not is_user_code(name, "collections")
        assert not is_user_code(name, "sys")
        assert is_user_code(name, "a_notebook_of_mine")


def test_a_driver_beneath_runpy_and_a_container_library(tmp_path):
    (tmp_path / "containers.py").write_text(
        "source = 'def add(a, b): return a + b'\n"
        "space = {'__name__': 'arraycontext.container.arithmetic'}\n"
        "exec(compile(source, '<container arithmetic operator code>', 'exec'), space)\n"
        "add = space['add']\n")
    (tmp_path / "driver.py").write_text(
        "import pytato_provenance as pp; pp.enable()\n"
        "from containers import add\n" + MAKES +
        "def main():\n"
        "    x = make()\n"
        "    return add(x, x)\n"
        "site = pp.created_at(main())\n"
        "print(site, [f.qualname for f in site.frames][:3], len(site.frames) > 4)\n")
    (tmp_path / "start.py").write_text(
        "import runpy, sys\nrunpy.run_module('driver', run_name='__main__')\n")
    line = 2 + MAKES.count("\n") + 3
    assert run_python(str(tmp_path / "start.py")) == (
        f"driver.py:{line} in main ['add', 'main', '<module>'] True\n")


def test_a_library_that_is_imported_from_elsewhere_later(tmp_path):
    # As where a program puts a checkout of it first on sys.path.
    for name in ("tornado", "pytato_mine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("def f(): pass\n")
    program = (
        "import sys; sys.modules.pop('tornado', None)\n"
        "from pytato_provenance.frames import is_user_frame, is_user_code\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "import tornado, pytato_mine\n"
        "for module in (tornado, pytato_mine):\n"
        "    print(is_user_code(module.__file__, module.__name__))\n")
    assert run_python("-c", program, str(tmp_path)) == "False\nTrue\n"


def test_hostile_names_are_the_users():
    for name in ("a\0b.py", "half\ud800.py", "", "*/", "new\nline.py"):
        assert is_user_code(name, "__main__")
        assert not is_host_code(name, "__main__")
