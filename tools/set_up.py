"""Make the virtual environment that ``make`` runs everything in.

    python3 tools/set_up.py [--keep] .venv pocl,test,doc

Installs the project, with the extras, from ``constraints.txt``, and sees to it that
OpenCL can build a kernel. Does nothing where that is done already. An environment of
another Python is made anew, unless ``--keep`` is given.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any


ROOT = Path(__file__).resolve().parent.parent
# What decides what is installed, the compiled part included.
INPUTS = (
    "pyproject.toml",
    "constraints.txt",
    "hatch_build.py",
    "pytato_provenance/capture/_walk.c",
    "tools/pocl_cpu.py",
)


class SetUpError(Exception):
    """Says in one line what is missing."""


def fingerprint() -> str:
    digest = hashlib.sha256(str(ROOT).encode())
    for name in INPUTS:
        path = ROOT / name
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.hexdigest()


def run(what: str, *command: str) -> None:
    """Run *command*; print what it says only if it fails."""
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        print(done.stdout, file=sys.stderr)
        raise SetUpError(f"{what} failed; what it said is above")


def works(python: Path) -> bool:
    try:
        done = subprocess.run([str(python), "-c", "import pip"], capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def set_up(folder: Path, extras: set[str], *, keep: bool) -> None:
    python = folder / "bin" / "python"
    stamp = folder / "set-up.json"
    version = platform.python_version()
    here = [platform.python_implementation(), version, sys.base_prefix]
    state: dict[str, Any] = {"python": here, "extras": [], "fingerprint": ""}
    if stamp.exists() and works(python):
        found = json.loads(stamp.read_text())
        if keep or found["python"] == here:
            state = found
    if state["fingerprint"] == fingerprint() and extras <= {*state["extras"]}:
        return

    if not state["fingerprint"]:
        for module in ("venv", "ensurepip"):
            if importlib.util.find_spec(module) is None:
                raise SetUpError(
                    f"Python's {module} module is missing for {sys.executable}. "
                    "Debian, Ubuntu: apt install python3-venv"
                )
        print(f"Making {folder.name} with Python {version}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        run("making the environment", sys.executable, "-m", "venv", str(folder))

    extras = extras | {*state["extras"]}
    wanted = f".[{','.join(sorted(extras))}]"
    print(f"Installing into {folder.name} (a minute or two)", flush=True)
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    pip += ["--disable-pip-version-check", "--constraint", "constraints.txt"]
    run("pip install", *pip, "--editable", wanted)
    if "pocl" in extras:
        done = subprocess.run([str(python), str(ROOT / "tools" / "pocl_cpu.py")])
        if done.returncode != 0:
            raise SetUpError("no OpenCL device works; see above")
    state.update(extras=sorted(extras), fingerprint=fingerprint())
    stamp.write_text(json.dumps(state))


def main() -> int:
    arguments = [argument for argument in sys.argv[1:] if argument != "--keep"]
    if sys.version_info < (3, 10) or len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder, extras = arguments
    try:
        set_up(ROOT / folder, {*extras.split(",")}, keep="--keep" in sys.argv)
    except SetUpError as error:
        print(f"Set-up: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
