"""Equal nodes: found without the host's ``==``, told of each other's sites."""

from __future__ import annotations

import sys

import numpy as np
import pytato as pt
import pytest
import random_dags

from pytato_provenance import created_at, disable, recording
from pytato_provenance._host import children_of, host, nodes_in_post_order
from pytato_provenance.merging import (
    equal_classes,
    has_equal_nodes,
    merged_sites,
    spread_sites,
)
from pytato_provenance.tags import site_of


@pytest.fixture(autouse=True)
def _switched_off():
    yield
    disable()


def _line() -> int:
    return sys._getframe(1).f_lineno


def _lines(ary: object) -> list[int]:
    return [site.user_frame.lineno for site in created_at(ary).all_sites]


def _placeholder():
    return pt.make_placeholder(name="x", shape=(4,), dtype=np.float64)


@pytest.mark.parametrize("seed", range(12))
def test_classes_are_the_hosts_equality(seed: int) -> None:
    dag = random_dags.random_dag(seed, size=6)
    nodes = nodes_in_post_order(dag)
    classes = equal_classes(nodes)
    arrays = [node for node in nodes if isinstance(node, host().array)]
    for one in arrays:
        for other in arrays:
            same = classes[id(one)] == classes[id(other)]
            assert same == (hash(one) == hash(other) and one == other)


def test_hashes_tell_that_there_are_no_equal_nodes() -> None:
    x = _placeholder()
    once = pt.make_dict_of_named_arrays({"a": pt.sin(x) + 1, "b": pt.cos(x) + 1})
    twice = pt.make_dict_of_named_arrays({"a": pt.sin(x) + 1, "b": pt.sin(x) + 2})
    assert not has_equal_nodes(nodes_in_post_order(once))
    assert has_equal_nodes(nodes_in_post_order(twice))


def test_equal_nodes_know_the_sites_of_the_whole_sub_dag() -> None:
    with recording():
        x = _placeholder()
        inner = _line(), _line() + 2
        first = pt.sin(x) * 2 if inner else None
        second = pt.sin(x) * 2
        first_line, second_line = inner[0] + 1, inner[1]
        dag = pt.make_dict_of_named_arrays({"a": first + 1, "b": second + 2})

    before = [(id(node), site_of(node)) for node in nodes_in_post_order(dag)]
    spread = spread_sites(dag)

    a, b = (spread[name].expr for name in ("a", "b"))
    for result in (a, b):
        product, = children_of(result)[-1:]
        sine = next(child for child in children_of(product)
                    if child is not x)
        assert _lines(product) == _lines(sine) == [first_line, second_line]
        assert len(created_at(result).all_sites) == 1
    assert x in nodes_in_post_order(spread)
    # The input is not changed, and nothing is equal to fewer or more than before.
    assert before == [(id(node), site_of(node)) for node in nodes_in_post_order(dag)]
    old, new = (equal_classes(nodes_in_post_order(root)) for root in (dag, spread))
    assert list(old.values()) == list(new.values())


def test_the_order_of_outputs_changes_nothing() -> None:
    with recording():
        x = _placeholder()
        one = pt.sin(x)
        other = pt.sin(x)
    forth = spread_sites(pt.make_dict_of_named_arrays({"a": one, "b": other}))
    back = spread_sites(pt.make_dict_of_named_arrays({"a": other, "b": one}))
    assert len({created_at(dag[name].expr) for dag in (forth, back) for name in "ab"}
               ) == 1


def test_without_equal_nodes_the_dag_is_the_identical_object() -> None:
    with recording():
        dag = pt.make_dict_of_named_arrays({"a": pt.sin(_placeholder())})
    assert spread_sites(dag) is dag


def test_inputs_that_compare_by_identity_stay_the_identical_objects() -> None:
    with recording():
        data = np.arange(4.0)
        wrapper = pt.make_data_wrapper(data)
        dag = pt.make_dict_of_named_arrays(
            {"a": pt.sin(wrapper), "b": pt.sin(wrapper) + 1})
        dag = pt.make_dict_of_named_arrays(
            {"a": dag["a"].expr, "b": dag["b"].expr, "c": pt.sin(wrapper)})
    spread = spread_sites(dag)
    assert spread is not dag
    assert [node for node in nodes_in_post_order(spread)
            if type(node) is type(wrapper)] == [wrapper]


def test_equal_nodes_of_a_function_and_its_caller_are_apart() -> None:
    if not hasattr(pt, "trace_call"):
        pytest.skip("this host has no traced functions")

    with recording():
        # A traced function names its parameters by position.
        x = pt.make_placeholder(name="in__0", shape=(4,), dtype=np.float64)
        outside = pt.sin(x)
        inside = pt.trace_call(lambda ary: pt.sin(ary), x)
    dag = pt.make_dict_of_named_arrays({"a": outside, "b": inside})
    assert merged_sites(nodes_in_post_order(dag)) == {}


def test_deep_dags_need_no_recursion() -> None:
    with recording():
        ary = _placeholder()
        for i in range(20_000):
            ary = ary + 1 if i % 2 else 2 * ary
    nodes = nodes_in_post_order(ary)
    assert len(nodes) == 20_001
    assert len(set(equal_classes(nodes).values())) == 20_001
    assert not has_equal_nodes(nodes)
    assert spread_sites(ary) is ary
