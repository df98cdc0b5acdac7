"""A distributed program, for ``mpiexec -n 2 python two_ranks.py record|plain``.

Each rank prints one line of JSON.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pyopencl as cl
import pytato as pt
from mpi4py import MPI

import pytato_provenance as prov
from pytato_provenance._host import host, nodes_in_post_order
from pytato_provenance.auditing import roots
from pytato_provenance.tags import site_of


def program(rank: int, other: int) -> pt.DictOfNamedArrays:
    x = pt.make_data_wrapper(np.arange(4.0) + rank)
    stored = (2 * x).tagged(pt.tags.ImplStored())
    received = pt.make_distributed_recv(other, "there", (4,), np.float64)
    halo = pt.staple_distributed_send(stored, other, "there", received)
    both = stored + halo
    back = pt.make_distributed_recv(other, "back", (4,), np.float64)
    answer = pt.staple_distributed_send(both, other, "back", back)
    return pt.make_dict_of_named_arrays({"out": answer - 3 * stored})


def main(record: bool) -> None:
    comm = MPI.COMM_WORLD
    if record:
        prov.enable(history=True, audit="raise")
    dag = program(comm.rank, 1 - comm.rank)
    parts = pt.find_distributed_partition(comm, dag)
    parts, _ = pt.number_distributed_tags(comm, parts, base_tag=4)
    programs = pt.generate_code_for_partition(parts)
    queue = cl.CommandQueue(cl.create_some_context(interactive=False))
    out = pt.execute_distributed_partition(parts, programs, queue, comm)["out"]
    placeholders, lost = {}, 0
    for node in nodes_in_post_order(*roots(parts)):
        site = site_of(node)
        lost += site is None and isinstance(node, host().array)
        if isinstance(node, pt.Placeholder) and site is not None:
            placeholders[node.name] = site.user_frame.line.strip()
    print(json.dumps({"rank": comm.rank, "out": out.get(queue).tolist(), "lost": lost,
                      "parts": len(parts.parts), "placeholders": placeholders}))
    if record:
        prov.disable()


if __name__ == "__main__":
    main(sys.argv[1] == "record")
