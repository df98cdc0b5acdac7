"""What is cached on disk, and under which keys, is as without us."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPT = """\
import sys, warnings
warnings.simplefilter("ignore")
mode, by_hand = sys.argv[1], sys.argv[2] == "by hand"
from pytato_provenance._released_pytato import mend_released_pytato
mend_released_pytato()
import loopy as lp
import numpy as np
import pyopencl as cl
import pytato as pt
if mode != "plain":
    import pytato_provenance as pp
    from pytato_provenance.diagnostic import ProvenanceWarning
    from pytato_provenance.lowering import contributors, kernel_source
    warnings.simplefilter("error", ProvenanceWarning)
    pp.enable(annotate=mode)
x = pt.make_placeholder(name="x", shape=(6, 6), dtype=np.float64)
@PADDING@
y = pt.sum(x + 1, axis=0)
bound = pt.generate_loopy({"y": y})
@ADDITION@
if by_hand:
    program = lp.linearize(lp.preprocess_program(bound.program))
    lp.generate_code_v2(program)
    print(lp.generate_code_v2(bound.program).device_code())
else:
    queue = cl.CommandQueue(cl.create_some_context(interactive=False))
    compiled = []
    original = cl.Program.__init__
    def init(self, context, source=None, *args, **kwargs):
        compiled.append(source)
        original(self, context, source, *args, **kwargs)
    cl.Program.__init__ = init
    _, result = bound(queue, x=np.ones((6, 6)))
    assert (result["y"] == 12).all()
    print("".join(source for source in compiled if isinstance(source, str)))
if mode != "plain":
    print("=====")
    print(kernel_source(program if by_hand else bound))
    assert contributors(program if by_hand else bound).statements
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[str, str]]:
    environment = dict(os.environ)
    environment.update(XDG_CACHE_HOME=str(tmp_path / "cache"),
                       POCL_CACHE_DIR=str(tmp_path / "pocl"),
                       PYTHONPATH=str(Path(__file__).parents[1]))

    def run(mode: str, *, line: int = 0, by_hand: bool = False,
            addition: str = "", **more: str
            ) -> tuple[str, str]:
        script = tmp_path / "script.py"
        script.write_text(SCRIPT.replace("@PADDING@", "\n"*line)
                          .replace("@ADDITION@", addition))
        output = subprocess.run(
            [sys.executable, str(script), mode, "by hand" if by_hand else "-"],
            env={**environment, **more}, check=True, timeout=300,
            stdout=subprocess.PIPE, text=True).stdout
        compiled, _, annotated = output.partition("=====")
        return compiled.strip(), annotated.strip()

    return run


def entries(tmp_path: Path) -> set[tuple[str, str]]:
    """The keys of all entries; nothing of ours is among the values."""
    found: set[tuple[str, str]] = set()
    for file in (tmp_path / "cache" / "pytools").rglob("*.sqlite"):
        connection = sqlite3.connect(file)
        for key, value in connection.execute("SELECT keyhash, key_value FROM dict"):
            assert b"pytato_provenance" not in value
            found.add((file.name, key))
        connection.close()
    return found


def test_beside(run: Callable[..., tuple[str, str]], tmp_path: Path) -> None:
    plain, _ = run("plain")
    keys = entries(tmp_path)
    assert keys
    first, at_first = run("beside")
    second, at_second = run("beside", line=1)
    assert first == second == plain
    assert entries(tmp_path) == keys
    # Never a stale comment: each has the lines of its own run.
    lineno = SCRIPT.splitlines().index("y = pt.sum(x + 1, axis=0)") + 1
    assert f"script.py:{lineno} in <module>" in at_first
    assert f"script.py:{lineno + 1} in <module>" in at_second
    assert f"script.py:{lineno} in <module>" not in at_second


def test_plain_after_annotated(run: Callable[..., tuple[str, str]], tmp_path: Path
                               ) -> None:
    beside, _ = run("beside")
    keys = entries(tmp_path)
    assert keys
    plain, _ = run("plain")
    assert plain == beside
    assert entries(tmp_path) == keys


def test_embedded(run: Callable[..., tuple[str, str]], tmp_path: Path) -> None:
    plain, _ = run("plain")
    keys = entries(tmp_path)
    for line in (0, 1):
        compiled, annotated = run("embed", line=line)
        assert compiled == annotated
        lineno = SCRIPT.splitlines().index("y = pt.sum(x + 1, axis=0)") + 1 + line
        assert f"script.py:{lineno} in <module>" in compiled
    assert run("plain")[0] == plain
    # loopy's caches have no part in it.
    assert entries(tmp_path) == keys


def test_by_hand(run: Callable[..., tuple[str, str]], tmp_path: Path) -> None:
    beside, annotated = run("beside", by_hand=True)
    keys = entries(tmp_path)
    again, annotated_again = run("beside", line=1, by_hand=True)
    plain, _ = run("plain", by_hand=True)
    assert beside == again == plain
    assert annotated != annotated_again
    assert entries(tmp_path) == keys


def test_without_caches(run: Callable[..., tuple[str, str]], tmp_path: Path) -> None:
    plain, _ = run("plain", LOOPY_NO_CACHE="1")
    beside, annotated = run("beside", LOOPY_NO_CACHE="1")
    embedded, same = run("embed", LOOPY_NO_CACHE="1")
    assert beside == plain
    assert embedded == same == annotated
    assert not any("loopy" in file for file, _ in entries(tmp_path))


def test_written_code(run: Callable[..., tuple[str, str]], tmp_path: Path) -> None:
    """loopy writes what is compiled, whatever that is."""
    for mode in ("beside", "embed"):
        file = tmp_path / f"{mode}.cl"
        options = ("bound.program = lp.set_options(bound.program, "
                   f"write_code={str(file)!r}, allow_terminal_colors=False)")
        compiled, _ = run(mode, addition=options)
        assert file.read_text().strip() == compiled
    assert "//<-" not in (tmp_path / "beside.cl").read_text()
    assert "//<-" in (tmp_path / "embed.cl").read_text()
