"""``explain``: what became of each line."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytato as pt
import pytest
import random_dags

from pytato_provenance import created_at, disable, explain, recording, through
from pytato_provenance.diagnostic import NotAnArrayError, ProvenanceWarning
from pytato_provenance.merging import spread_sites


@pytest.fixture(autouse=True)
def _switched_off():
    yield
    disable()


def _here() -> int:
    return sys._getframe(1).f_lineno


def _x() -> Any:
    return pt.make_placeholder(name="x", shape=(4,), dtype=np.float64)


def test_lines_with_what_they_made() -> None:
    with recording():
        x = _x()
        line = _here() + 1
        ary = pt.sin(x) + pt.cos(x)
    findings, = (found for found in explain(ary).lines if found.lineno == line)
    assert findings.arrays == {"IndexLambda": 3}
    assert findings.function.endswith("test_lines_with_what_they_made")
    assert findings.text.strip() == "ary = pt.sin(x) + pt.cos(x)"
    assert "made 3 IndexLambda" in str(findings)
    assert explain(ary).as_data()["lines"][-1]["line"] == line


def test_merged_lines_name_each_other() -> None:
    with recording():
        x = _x()
        line = _here()
        one = pt.sin(x)
        other = pt.sin(x)
        dag = spread_sites(pt.make_dict_of_named_arrays({"a": one + 1, "b": other}))
    findings = {found.lineno: found for found in explain(dag).lines}
    assert findings[line + 1].merged_with == {f"test_explanation.py:{line + 2}"}
    assert findings[line + 2].merged_with == {f"test_explanation.py:{line + 1}"}


def test_unknown_and_synthetic_are_counted() -> None:
    x = _x()

    def shifted(ary: Any) -> Any:
        return ary + 1

    result = through(shifted)(pt.sin(x))
    counts = explain(result).without_line
    assert sum(counts.values()) == 3
    assert any("shifted" in reason for reason in counts)
    assert "shifted" in str(explain(result))


def test_what_was_lost_names_the_transform() -> None:
    from pytato.transform import CopyMapper

    class Losing(CopyMapper):
        def map_index_lambda(self, expr: Any) -> Any:
            with recording(False):
                return 5 * self.rec(next(iter(expr.bindings.values())))

    with recording(audit="warn"), pytest.warns(ProvenanceWarning):
        ary = Losing()(pt.sin(_x()))
    name = Losing.__qualname__
    assert explain(ary).without_line == {f"unknown (lost by {name})": 1}
    with recording():
        assert created_at(CopyMapper()(ary)).pass_name == name


def test_history_is_summed_up() -> None:
    from pytato.transform import CopyMapper

    class Doubling(CopyMapper):
        def map_index_lambda(self, expr: Any) -> Any:
            return 2 * self.rec(next(iter(expr.bindings.values())))

    with recording(history=True):
        ary = Doubling()(pt.sin(pt.cos(_x())))
    assert any("Doubling: IndexLambda rewritten" in action
               for found in explain(ary).lines for action in found.history)


def test_a_program() -> None:
    from pytato_provenance.lowering import generate_loopy
    with recording():
        x = _x()
        line = _here() + 1
        y = pt.sin(x)
        program = generate_loopy({"out": y + 1})
    findings, = (found for found in explain(program).lines if found.lineno == line)
    assert len(findings.statements) == 1
    assert "evaluated in" in str(explain(program))


def test_a_large_dag_is_readable() -> None:
    with recording():
        ary = _x()
        for i in range(10_000):
            ary = ary + 1 if i % 2 else 2 * ary
    text = str(explain(ary))
    assert "5000 IndexLambda" in text or "10000 IndexLambda" in text
    assert len(text.splitlines()) < 20


@pytest.mark.parametrize("seed", range(5))
def test_every_array_is_counted(seed: int) -> None:
    with recording():
        dag = random_dags.random_dag(seed)
    from pytato_provenance._host import host, nodes_in_post_order
    arrays = [node for node in nodes_in_post_order(dag)
              if isinstance(node, host().array)]
    assert sum(sum(found.arrays.values()) for found in explain(dag).lines) == sum(
        len({(site.user_frame.filename, site.user_frame.lineno)
             for site in created_at(node).all_sites}) for node in arrays)


def test_neither_arrays_nor_program() -> None:
    with pytest.raises(NotAnArrayError, match="explain"):
        explain(3)
