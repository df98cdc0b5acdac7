"""
Every transform of the installed host, and a DAG that it can take.

Used by the tests and by the command that writes the table of the documentation.
"""

from __future__ import annotations

import dataclasses
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytato as pt
import pytato.transform as tr
import random_dags

from pytato_provenance import ProvenanceCopyMapper
from pytato_provenance._host import nodes_in_post_order


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


HAS_DEDUPLICATE = hasattr(tr, "deduplicate")


@dataclass(frozen=True)
class HostPass:
    """
    .. attribute:: run

        The transform.

    .. attribute:: prepare

        Takes a seed and gives what to transform.

    .. attribute:: origin

        How it is found in place of what the transform makes an array.
    """

    run: Callable[[Any], Any]
    prepare: Callable[[int], Any]
    origin: str


_DISPATCHED = "the node that the mapper dispatches"
_COPIES = "copies, with the tags of what they are copies of"


def random(seed: int) -> Any:
    return random_dags.random_dag(seed, size=14)


def without_duplicates(seed: int) -> Any:
    dag = random(seed)
    return tr.deduplicate(dag) if HAS_DEDUPLICATE else dag


def without_calls(seed: int) -> Any:
    return random_dags.prepared(random(seed))


# {{{ communication

class _Partner:
    """A communicator of two ranks, of which this process is the first, and the other
    runs the same program."""

    rank = 0
    size = 2

    def allreduce(self, needed: dict[Any, Any], operation: Any) -> dict[Any, Any]:
        def swapped(identifier: Any) -> Any:
            return dataclasses.replace(identifier, src_rank=identifier.dest_rank,
                                       dest_rank=identifier.src_rank)

        united = dict(needed)
        for one, others in needed.items():
            theirs = type(others)(map(swapped, others))
            united[swapped(one)] = united.get(swapped(one), theirs) | theirs
        return united

    def bcast(self, value: Any, root: int = 0) -> Any:
        return value

    def gather(self, value: Any, root: int = 0) -> list[Any]:
        return [value, value]

    def barrier(self) -> None:
        pass


@contextmanager
def no_mpi() -> Iterator[None]:
    """The host imports mpi4py for the sake of one name."""
    from unittest import mock

    names = ("mpi4py", "mpi4py.MPI")
    with mock.patch.dict(sys.modules, dict.fromkeys(names, mock.MagicMock())):
        yield


def with_communication(seed: int, to: int = 1) -> Any:
    """A random DAG parts of which are sent and received, stored arrays in between."""
    dag = without_calls(seed)
    size = 4
    while any(isinstance(node, pt.SizeParam | pt.LoopyCall)
              for node in nodes_in_post_order(dag)):
        # The host's partitioning does not take them.
        seed += 1000
        dag = without_calls(seed)
    first = next(iter(dag.values())).expr
    total = pt.sum(first) if all(isinstance(n, int) for n in first.shape) else 1.5
    x = pt.make_placeholder(name="sent", shape=(size,), dtype=np.float64)
    sent = pt.sin(x * 2)
    stored = (x + sent).tagged(pt.tags.ImplStored())
    received = pt.make_distributed_recv(
        src_rank=to, comm_tag=("there", seed), shape=(size,), dtype=np.float64)
    halo = pt.staple_distributed_send(
        sent, dest_rank=to, comm_tag=("there", seed), stapled_to=received)
    back = pt.make_distributed_recv(
        src_rank=to, comm_tag=("back", seed), shape=(size,), dtype=np.float64)
    answer = pt.staple_distributed_send(
        halo + stored, dest_rank=to, comm_tag=("back", seed), stapled_to=back)
    named = {name: dag[name].expr for name in dag}
    named["distributed"] = 2 * answer - stored * (total if seed % 2 else 1)
    return tr.deduplicate(pt.make_dict_of_named_arrays(named))


def partition(dag: Any) -> Any:
    with no_mpi():
        return pt.find_distributed_partition(_Partner(), dag)


def number_tags(parts: Any) -> Any:
    return pt.number_distributed_tags(_Partner(), parts, 1)[0]

# }}}


def _with_two_wrappers(seed: int) -> Any:
    dag = without_duplicates(seed)
    data = np.arange(4.0)
    one, other = pt.make_data_wrapper(data), pt.make_data_wrapper(data)
    named = {name: dag[name].expr for name in dag}
    return pt.make_dict_of_named_arrays({
        **named, "one": pt.sin(one), "other": pt.sin(other) + 1})


def _with_zeros(seed: int) -> Any:
    from pymbolic import var
    dag = without_duplicates(seed)
    named = {name: dag[name].expr for name in dag}
    ary = pt.cos(pt.make_placeholder(name="dead", shape=(4,), dtype=np.float64))
    call = var("pytato.zero")(var("_in0")[var("_0")])
    return pt.make_dict_of_named_arrays(
        {**named, "zero": (2 * ary).copy(expr=call)})


def _sum_of_products(seed: int) -> Any:
    x, y, a = (pt.make_placeholder(name=name, shape=(4, 4), dtype=np.float64)
               for name in "xya")
    total = x * 2 + pt.sin(y)
    product = pt.einsum("ij,jk->ik", total, a)
    return pt.make_dict_of_named_arrays({
        "out": product + 1, "other": pt.einsum("ij,jk->ik", a, x - y / 3)})


def host_passes() -> dict[str, HostPass]:
    from pytato.codegen import preprocess

    target = pt.LoopyPyOpenCLTarget()
    if not HAS_DEDUPLICATE:
        return {
            "CopyMapper, completed": HostPass(
                lambda dag: ProvenanceCopyMapper()(dag), random, _DISPATCHED),
            "preprocess": HostPass(lambda dag: preprocess(dag, target), random,
                                   _DISPATCHED)}

    from pytato.transform.einsum_distributive_law import (
        DoDistribute,
        DoNotDistribute,
        apply_distributive_property_to_einsums,
    )
    from pytato.transform.lower_to_index_lambda import to_index_lambda
    from pytato.transform.materialize import materialize_with_mpms

    lowered = {"map_roll", "map_einsum", "map_stack", "map_concatenate", "map_reshape",
               "map_axis_permutation", "map_basic_index",
               "map_contiguous_advanced_index", "map_non_contiguous_advanced_index",
               "map_csr_matmul"}

    def lower(expr: Any) -> Any:
        return to_index_lambda(expr) if expr._mapper_method in lowered else expr

    def distribute(expr: Any) -> Any:
        other = next(iter(expr.args))
        return (DoDistribute(0) if isinstance(other, pt.IndexLambda)
                else DoDistribute(1) if isinstance(expr.args[-1], pt.IndexLambda)
                else DoNotDistribute())

    class WithExtraArgs(tr.CopyMapperWithExtraArgs):
        def get_cache_key(self, expr: Any, depth: Any) -> Any:
            return expr

        def get_function_definition_cache_key(self, expr: Any, depth: Any) -> Any:
            return expr

        def map_function_definition(self, expr: Any, depth: Any) -> Any:
            return expr

    passes = {
        "CopyMapper": HostPass(lambda dag: tr.CopyMapper()(dag), without_duplicates,
                               _COPIES),
        "CopyMapperWithExtraArgs": HostPass(lambda dag: WithExtraArgs()(dag, 1),
                                            without_duplicates, _COPIES),
        "deduplicate": HostPass(tr.deduplicate, random, _COPIES),
        "deduplicate_data_wrappers": HostPass(tr.deduplicate_data_wrappers,
                                              _with_two_wrappers, _COPIES),
        "map_and_copy": HostPass(
            lambda dag: tr.map_and_copy(dag, lower), without_duplicates,
            "the node that the mapper gives to the function"),
        "to_index_lambda": HostPass(
            lambda dag: [to_index_lambda(node.expr) for node in dag.values()
                         if lower(node.expr) is not node.expr], without_calls,
            "the node that its mapper dispatches"),
        "materialize_with_mpms": HostPass(
            materialize_with_mpms, without_calls,
            "copies, with one more tag"),
        "unify_axes_tags": HostPass(
            pt.unify_axes_tags, _with_axis_tags,
            "copies, with more tags of axes"),
        "rewrite_einsums_with_no_broadcasts": HostPass(
            pt.rewrite_einsums_with_no_broadcasts, without_calls,
            "copies of einsums; for the slices, the operand that the mapper's rec is "
            "called for"),
        "apply_distributive_property_to_einsums": HostPass(
            lambda dag: apply_distributive_property_to_einsums(dag, distribute),
            _sum_of_products, _DISPATCHED),
        "eliminate_dead_code": HostPass(pt.eliminate_dead_code, _with_zeros, _COPIES),
        "tag_all_calls_to_be_inlined": HostPass(
            pt.tag_all_calls_to_be_inlined, without_duplicates,
            "results of the copied calls, which are the functions' results"),
        "inline_calls": HostPass(
            pt.inline_calls,
            lambda seed: pt.tag_all_calls_to_be_inlined(without_duplicates(seed)),
            "copies of the arrays of the functions' bodies"),
        "preprocess": HostPass(lambda dag: preprocess(dag, target), without_calls,
                               _DISPATCHED),
    }
    passes["find_distributed_partition"] = HostPass(
        partition, with_communication,
        "for a placeholder, the array that the mapper's rec is called for: what is "
        "received, or stored by one part for another")
    passes["number_distributed_tags"] = HostPass(
        number_tags, lambda seed: partition(with_communication(seed)), _COPIES)
    return passes


def _with_axis_tags(seed: int) -> Any:
    from pytools.tag import Tag

    dag = without_calls(seed)
    named = {name: dag[name].expr for name in dag}
    x = pt.make_placeholder(name="tagged", shape=(4, 4), dtype=np.float64)
    x = x.with_tagged_axis(0, Tag())
    named["tagged"] = pt.sin(x) @ pt.cos(x)
    return pt.make_dict_of_named_arrays(named)
