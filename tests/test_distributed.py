"""Distributed programs: sends, receives, and what they are partitioned into."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytato as pt
import pytest
from looking import nothing_fails_inside
from running import ROOT

from pytato_provenance import created_at, disable, recording
from pytato_provenance._host import nodes_in_post_order
from pytato_provenance.auditing import roots


pytestmark = pytest.mark.skipif(not hasattr(pt, "find_distributed_partition"),
                                reason="this host does not communicate")


@pytest.fixture(autouse=True)
def _switched_off():
    with nothing_fails_inside():
        yield
    disable()


def _text(node: Any) -> str:
    return created_at(node).user_frame.line.strip()


def test_each_placeholder_of_a_part_is_what_it_stands_for() -> None:
    from host_passes import partition, with_communication
    lines, _ = inspect.getsourcelines(with_communication)
    with recording():
        parts = partition(with_communication(0))
    assert len(parts.parts) == 3
    found = {_text(node) for part in parts.parts.values()
             for name in part.partition_input_names
             for node in nodes_in_post_order(*roots(parts.name_to_output))
             if isinstance(node, pt.Placeholder) and node.name == name}
    for text in ("received = pt.make_distributed_recv(",
                 "back = pt.make_distributed_recv(",
                 "stored = (x + sent).tagged(pt.tags.ImplStored())"):
        assert any(text in line for line in lines)
        assert text in found
    for part in parts.parts.values():
        for receive in part.name_to_recv_node.values():
            assert "make_distributed_recv" in _text(receive)


def _mpi() -> str | None:
    command = shutil.which("mpiexec")
    if command is None:
        return None
    done = subprocess.run([sys.executable, "-c", "from mpi4py import MPI"],
                          capture_output=True, timeout=60)
    return None if done.returncode else command


def _ranks(how: str) -> list[dict[str, Any]]:
    mpiexec = _mpi()
    if mpiexec is None:
        pytest.skip("no MPI is installed")
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(path),
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    done = subprocess.run(
        [mpiexec, "-n", "2", sys.executable, "-W", "ignore",
         str(ROOT / "tests" / "two_ranks.py"), how],
        capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()
             if line.startswith("{")]
    return sorted(found, key=lambda each: each["rank"])


def test_two_ranks() -> None:
    recorded = _ranks("record")
    assert [each["rank"] for each in recorded] == [0, 1]
    assert [each["lost"] for each in recorded] == [0, 0]
    for each in recorded:
        assert each["parts"] == 3
        # What is received, and what one part leaves for another.
        assert sorted(each["placeholders"].values()) == [
            'back = pt.make_distributed_recv(other, "back", (4,), np.float64)',
            'received = pt.make_distributed_recv(other, "there", (4,), np.float64)',
            "x = pt.make_data_wrapper(np.arange(4.0) + rank)"]
    plain = _ranks("plain")
    assert [each["out"] for each in plain] == [each["out"] for each in recorded]
