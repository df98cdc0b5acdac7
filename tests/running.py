"""Running programs in processes of their own, plainly and through the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from collections.abc import Sequence


ROOT = Path(__file__).resolve().parent.parent

Done = subprocess.CompletedProcess[bytes]


def python(cwd: Path, *arguments: str, flags: Sequence[str] = (),
           **environment: str) -> Done:
    """Run ``python ARGUMENTS`` in *cwd*, with this project importable."""
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, *flags, *arguments], cwd=cwd, capture_output=True,
        stdin=subprocess.DEVNULL, timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), **environment})


def command(cwd: Path, *arguments: str, flags: Sequence[str] = (),
            **environment: str) -> Done:
    """Run ``python -m pytato_provenance ARGUMENTS`` in *cwd*."""
    return python(cwd, "-m", "pytato_provenance", *arguments, flags=flags,
                  **environment)
