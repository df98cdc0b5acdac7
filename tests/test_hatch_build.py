"""The optional compiled part is built where it can be, and never required."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest


ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "hatch_build.py"

pytestmark = pytest.mark.skipif(not BUILD.exists(), reason="not in a source tree")


@pytest.fixture
def hatch_build(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("PYTATO_PROVENANCE_NO_EXTENSION", raising=False)
    spec = importlib.util.spec_from_file_location("hatch_build", BUILD)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_built_loads(hatch_build: Any, tmp_path: Path) -> None:
    directory = tmp_path / "a folder"
    directory.mkdir()
    try:
        made = hatch_build.build(directory)
    except hatch_build.NotBuiltError as error:
        pytest.skip(f"cannot be built here: {error}")
    assert list(directory.iterdir()) == [made]
    assert made.name == "_walk" + sysconfig.get_config_var("EXT_SUFFIX")
    code = "import _walk; print(len(_walk.PathTable()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=directory, text=True,
                          capture_output=True, check=True, timeout=60)
    assert done.stdout == "0\n"


def test_switched_off(
        hatch_build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTATO_PROVENANCE_NO_EXTENSION", "1")
    with pytest.raises(hatch_build.NotBuiltError, match="NO_EXTENSION is set"):
        hatch_build.build(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="compilers are found otherwise here")
def test_without_a_compiler(
        hatch_build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "there-is-no-such-compiler")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(hatch_build.NotBuiltError, match="no C compiler"):
        hatch_build.build(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="needs a shell script")
def test_a_compiler_that_fails(
        hatch_build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'error: no such thing' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(hatch_build.NotBuiltError, match="error: no such thing"):
        hatch_build.build(tmp_path)
    assert list(tmp_path.iterdir()) == [compiler]
    # One that makes something that does not load.
    compiler.write_text(
        '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho nothing > "$2"\n')
    with pytest.raises(hatch_build.NotBuiltError):
        hatch_build.build(tmp_path)
    assert list(tmp_path.iterdir()) == [compiler]


class App:
    """Hatchling's, as far as the hook uses it."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def display_warning(self, text: str) -> None:
        self.warnings.append(text)


def hook_of(hatch_build: Any, target_name: str) -> Any:
    class Hook(hatch_build.ExtensionBuildHook):
        app = App()

        def __init__(self) -> None:
            pass

    Hook.target_name = target_name
    return Hook()


def test_the_hook(hatch_build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pure = {"pure_python": True, "force_include": {}}

    sdist = hook_of(hatch_build, "sdist")
    data = {**pure, "force_include": {}}
    sdist.initialize("standard", data)
    sdist.finalize("standard", data, "")
    assert data == pure

    monkeypatch.setenv("PYTATO_PROVENANCE_NO_EXTENSION", "1")
    wheel = hook_of(hatch_build, "wheel")
    data = {**pure, "force_include": {}}
    wheel.initialize("standard", data)
    wheel.finalize("standard", data, "")
    assert data == pure
    note, = wheel.app.warnings
    assert "pure Python" in note
    assert "NO_EXTENSION" in note

    monkeypatch.delenv("PYTATO_PROVENANCE_NO_EXTENSION")
    wheel = hook_of(hatch_build, "wheel")
    wheel.app = App()
    data = {**pure, "force_include": {}}
    wheel.initialize("standard", data)
    if wheel.app.warnings:
        pytest.skip(wheel.app.warnings[0])
    (source, place), = data["force_include"].items()
    assert data["pure_python"] is False
    assert data["infer_tag"] is True
    assert Path(source).exists()
    assert place == f"pytato_provenance/capture/{Path(source).name}"
    wheel.finalize("standard", data, "")
    assert not Path(source).exists()
