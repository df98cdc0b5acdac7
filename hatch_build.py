"""
Builds the optional compiled part of the capture, where a C compiler is.

Hatchling runs this on installation. It is never required: without a compiler,
without Python's headers, or with ``PYTATO_PROVENANCE_NO_EXTENSION=1`` in the
environment the package is the same in pure Python, and a note says so.

``python hatch_build.py`` builds it beside its source, for the Python that runs.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:
    BuildHookInterface = object  # run by hand

ROOT = Path(__file__).resolve().parent
SOURCE = ROOT / "pytato_provenance" / "capture" / "_walk.c"
OFF_SWITCH = "PYTATO_PROVENANCE_NO_EXTENSION"


class NotBuiltError(Exception):
    """Says why there is no compiled part."""


def _run(command: list[str], **kwargs: Any) -> None:
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=300, **kwargs
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotBuiltError(f"{command[0]}: {error}") from error
    except subprocess.CalledProcessError as error:
        lines = (error.stderr or error.stdout or "").strip().splitlines()
        reason = next(
            (line for line in lines if "error" in line.lower()),
            lines[-1] if lines else f"exit status {error.returncode}",
        )
        raise NotBuiltError(f"{command[0]}: {reason.strip()}") from error


def _compile_posix(target: Path) -> None:
    def words(name: str) -> list[str]:
        return shlex.split(os.environ.get(name) or sysconfig.get_config_var(name) or "")

    # The compiler that Python was built with need not be on this machine.
    compilers = [words("CC"), ["cc"], ["gcc"], ["clang"]]
    compiler = next((cc for cc in compilers if cc and shutil.which(cc[0])), None)
    if compiler is None:
        raise NotBuiltError("no C compiler")
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        raise NotBuiltError("Python's C headers are not installed")
    link = words("LDSHARED")[1:] or ["-shared"]
    if "-bundle" not in link and "-shared" not in link:
        link = ["-shared"]
    _run(
        [
            *compiler,
            "-O2",
            "-DNDEBUG",
            "-fPIC",
            "-fvisibility=hidden",
            f"-I{sysconfig.get_path('include')}",
            f"-I{sysconfig.get_path('platinclude')}",
            *shlex.split(os.environ.get("CFLAGS", "")),
            str(SOURCE),
            *link,
            "-o",
            str(target),
        ]
    )


def _compile_elsewhere(target: Path, scratch: Path) -> None:
    """Windows: what finds its compiler comes with setuptools, if at all."""
    script = (
        "import sys\n"
        "from setuptools import Distribution, Extension\n"
        "from setuptools.command.build_ext import build_ext\n"
        "command = build_ext(Distribution({'name': 'walk', 'ext_modules': ["
        "Extension('_walk', [sys.argv[1]])]}))\n"
        "command.build_lib = command.build_temp = sys.argv[2]\n"
        "command.ensure_finalized()\n"
        "command.run()\n"
    )
    _run([sys.executable, "-c", script, str(SOURCE), str(scratch)])
    built = next(scratch.glob(f"_walk*{target.suffix}"), None)
    if built is None:
        raise NotBuiltError("the compiler left no file")
    shutil.move(str(built), str(target))


def build(directory: Path) -> Path:
    """
    Compile the extension module into *directory*.

    :returns: the file.
    :raises NotBuiltError: saying why it cannot be.
    """
    if os.environ.get(OFF_SWITCH, "") not in {"", "0"}:
        raise NotBuiltError(f"{OFF_SWITCH} is set")
    if sys.implementation.name != "cpython":
        raise NotBuiltError(f"{sys.implementation.name} is not CPython")
    target = directory / f"_walk{sysconfig.get_config_var('EXT_SUFFIX')}"
    with tempfile.TemporaryDirectory() as name:
        made = Path(name) / target.name
        if os.name == "posix":
            _compile_posix(made)
        else:
            _compile_elsewhere(made, Path(name) / "build")
        # A file that does not load is worse than none.
        _run([sys.executable, "-c", "import _walk; _walk.PathTable()"], cwd=name)
        # Another process may have the old file mapped: replace, do not write.
        staged = target.with_name(f".{target.name}.{os.getpid()}")
        shutil.copy2(made, staged)
        os.replace(staged, target)
    return target


class ExtensionBuildHook(BuildHookInterface):  # pyright: ignore
    """Puts the extension module into the wheel, which is then for one platform."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        self.scratch = tempfile.mkdtemp()
        editable = version == "editable"
        try:
            made = build(SOURCE.parent if editable else Path(self.scratch))
        except NotBuiltError as error:
            self.app.display_warning(
                f"without the compiled part of the capture, in pure Python: {error}"
            )
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        if not editable:
            build_data["force_include"][str(made)] = (
                f"pytato_provenance/capture/{made.name}"
            )

    def finalize(
        self, version: str, build_data: dict[str, Any], artifact_path: str
    ) -> None:
        if self.target_name == "wheel":
            shutil.rmtree(self.scratch, ignore_errors=True)


if __name__ == "__main__":
    try:
        print(build(SOURCE.parent).relative_to(ROOT))
    except NotBuiltError as reason:
        print(f"not built: {reason}", file=sys.stderr)
