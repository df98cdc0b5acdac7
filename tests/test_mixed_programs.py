"""Some of the arrays are recorded, others are not, or come from elsewhere."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytato as pt
import pytato.transform as tr
import pytest
import random_dags
from looking import nothing_fails_inside, run_python
from non_interference import Rewriting, RewritingWithMixin, _seen

from pytato_provenance import (
    PreserveCreatedAtMixin,
    audit,
    created_at,
    disable,
    enable,
    explain,
    recording,
    through,
)
from pytato_provenance._host import host, nodes_in_post_order
from pytato_provenance.tags import site_of


HAS_DEDUPLICATE = hasattr(tr, "deduplicate")


@pytest.fixture(autouse=True)
def _switched_off():
    with nothing_fails_inside():
        yield
    disable()


def _arrays(dag: Any) -> list[Any]:
    return [node for node in nodes_in_post_order(dag) if isinstance(node, host().array)]


def _everything(dag: Any) -> list[Any]:
    """What is seen of a DAG and of what transforms make of it."""
    transforms = [Rewriting(), RewritingWithMixin(), through(Rewriting())]
    if HAS_DEDUPLICATE:
        dag = tr.deduplicate(dag)
        transforms.append(tr.deduplicate)
    results = [transform(dag) for transform in transforms]
    for result in (dag, *results):
        audit(lambda same: same, result)
        str(explain(result))
    return [_seen(result) for result in (dag, *results)]


def test_switched_on_and_off_between_any_two_operations() -> None:
    seed, size = 3, 8
    expected = _everything(random_dags.random_dag(seed, size))
    for first in range(size + 2):
        for last in range(first + 1, size + 2, 3):
            def switch(step: int, first: int = first, last: int = last) -> None:
                if step == first:
                    enable(history=bool(first % 2))
                elif step == last:
                    disable()

            dag = random_dags.random_dag(seed, size, switch)
            known = sum(site_of(node) is not None for node in _arrays(dag))
            assert known or last - first == 1
            assert _everything(dag) == expected
            disable()


@pytest.mark.parametrize("recorded", [True, False])
def test_unpickled(recorded: bool) -> None:
    with recording(recorded):
        dag = random_dags.random_dag(5)
    sites = [site_of(node) for node in _arrays(dag)]
    loaded = pickle.loads(pickle.dumps(dag))
    assert [site_of(node) for node in _arrays(loaded)] == sites
    with recording():
        named = {name: 2 * ary.expr for name, ary in loaded.items()
                 if ary.dtype.kind == "f"}
        mixed = pt.make_dict_of_named_arrays({**named, **{
            name: ary.expr for name, ary in dag.items() if name not in named}})
        _everything(mixed)
    assert [site_of(node) for node in _arrays(loaded)] == sites


def test_pickled_where_this_package_is_not() -> None:
    text = run_python("-W", "ignore", "-c", """
import base64, pickle, sys
import numpy as np
import pytato as pt
x = pt.make_placeholder(name="x", shape=(4,), dtype=np.float64)
data = pickle.dumps(2 * x + 1)
assert "pytato_provenance" not in sys.modules
print(base64.b64encode(data).decode())
""")
    import base64
    loaded = pickle.loads(base64.b64decode(text))
    assert created_at(loaded) is None
    with recording():
        result = Rewriting()(pt.make_dict_of_named_arrays({"a": pt.sin(loaded)}))
    known = [created_at(node) is not None for node in _arrays(result)]
    assert known == [False, False, False, True, True][:len(known)]


def test_a_recorded_pickle_where_nothing_records() -> None:
    with recording():
        ary = pt.sin(pt.make_placeholder(name="x", shape=(4,), dtype=np.float64))
    text = pickle.dumps(ary).hex()
    out = run_python("-W", "ignore", "-c", f"""
import pickle
from pytato_provenance import created_at, is_enabled, mend_released_pytato
mend_released_pytato()
ary = pickle.loads(bytes.fromhex("{text}"))
print(created_at(2 * ary), is_enabled(), created_at(ary))
""")
    none, off, site = out.strip().split(maxsplit=2)
    assert (none, off) == ("None", "False")
    assert site.startswith("test_mixed_programs.py:")


def test_arrays_of_another_thread() -> None:
    made: list[Any] = []

    def build(record: bool) -> None:
        with recording(record):
            made.append(random_dags.random_dag(11))

    for record in (True, False):
        thread = threading.Thread(target=build, args=(record,))
        thread.start()
        thread.join()
    expected = _everything(random_dags.random_dag(11))
    with recording():
        assert [_everything(dag) for dag in made] == [expected, expected]


def test_mappers_in_threads() -> None:
    with recording():
        dag = random_dags.prepared(random_dags.random_dag(12, size=12))
    disable()
    expected = _seen(Rewriting()(dag))
    found: list[Any] = []

    def run(record: bool) -> None:
        with recording(record, history=record):
            for mapper in (Rewriting, RewritingWithMixin) * 10:
                found.append(_seen(mapper()(dag)) == expected)

    threads = [threading.Thread(target=run, args=(i % 2 == 0,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 80


@pytest.mark.parametrize("mixin", [False, True])
@pytest.mark.parametrize("before", [False, True])
def test_switched_within_a_mapper(before: bool, mixin: bool) -> None:
    class Switching(Rewriting):
        def map_index_lambda(self, expr: Any) -> Any:
            (disable if before else enable)()
            result = super().map_index_lambda(expr)
            (enable if before else disable)()
            return result

    with recording():
        dag = random_dags.prepared(random_dags.random_dag(13, size=10))
    disable()
    expected = _seen(Rewriting()(dag))
    cls = type("WithMixin", (PreserveCreatedAtMixin, Switching), {}) if mixin \
        else Switching
    if before:
        enable()
    assert _seen(cls()(dag)) == expected
    disable()
    assert _seen(Rewriting()(dag)) == expected


def test_copies_of_nodes() -> None:
    with recording():
        # The host's own mappers refuse deep copies of calls.
        dag = random_dags.prepared(random_dags.random_dag(14))
        for ary in _arrays(dag):
            assert created_at(copy.copy(ary)) is created_at(ary)
        deep = copy.deepcopy(dag)
        _everything(deep)
    assert [site_of(node) for node in _arrays(deep)] == [
        site_of(node) for node in _arrays(dag)]


@pytest.mark.skipif(not hasattr(pt, "set_traceback_tag_enabled"),
                    reason="the host has no tags of its own")
def test_the_hosts_own_tags() -> None:
    x = pt.make_placeholder(name="x", shape=(4, 4), dtype=np.float64)
    try:
        pt.set_traceback_tag_enabled(True)
        host_line = pt.sin(pt.make_placeholder(name="y", shape=(4, 4),
                                               dtype=np.float64))
        with recording():
            ours = pt.cos(host_line)
            mapped = Rewriting()(pt.make_dict_of_named_arrays({"a": ours}))
    finally:
        pt.set_traceback_tag_enabled(False)
    with recording():
        result = Rewriting()(pt.make_dict_of_named_arrays({"a": x + ours}))
    for dag in (mapped, result):
        for node in _arrays(dag):
            kinds = [tag for tag in node.non_equality_tags
                     if "CreatedAt" in type(tag).__name__]
            assert len(kinds) <= 1
    assert "host_line" in created_at(host_line).user_frame.line
    assert all(created_at(node) is not None for node in _arrays(mapped))
