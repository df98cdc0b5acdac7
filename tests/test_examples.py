"""Each example runs, in a process of its own, and finds its result right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"

# As ``python script.py``, on a host that is mended where it has to be.
RUN = """
import runpy, sys
from pathlib import Path
from pytato_provenance._released_pytato import mend_released_pytato
mend_released_pytato()
del sys.argv[0]
sys.path[0] = str(Path(sys.argv[0]).parent)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run_example(context: Any, name: str, *arguments: str, check: bool = True):
    """Run an example of that *name*, on the device of *context*."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
        ),
        "PYOPENCL_CTX": context.devices[0].platform.name,
    }
    result = subprocess.run(
        [sys.executable, "-c", RUN, str(EXAMPLES / name), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if check:
        assert result.returncode == 0, result.stdout + result.stderr
    return result


def test_heat(cl_ctx: Any):
    result = run_example(cl_ctx, "heat.py", "--calls", "10")
    assert "40 steps" in result.stdout


@pytest.mark.parametrize("order", [1, 3])
def test_advection(cl_ctx: Any, order: int):
    result = run_example(
        cl_ctx, "advection/main.py", "--order", str(order), "--elements", "12", "24"
    )
    last_line = result.stdout.splitlines()[-1]
    assert last_line.startswith("observed order of convergence:")
    assert float(last_line.split()[-1]) > order + 0.75


def test_loopy_call(cl_ctx: Any):
    result = run_example(cl_ctx, "loopy_call.py")
    assert "difference from numpy" in result.stdout


def test_wrong_result_is_a_failure(cl_ctx: Any):
    result = run_example(cl_ctx, "loopy_call.py", "--tolerance", "0", check=False)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "the iteration does not converge"
