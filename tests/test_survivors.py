"""What survives a merge knows the sites of what did not; nobody else notices."""

from __future__ import annotations

import copy
import sys
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytato as pt
import pytato.transform as tr
import pytest
from looking import nothing_fails_inside

from pytato_provenance import (
    PreserveCreatedAtMixin,
    audit,
    created_at,
    disable,
    recording,
    through,
)
from pytato_provenance._host import host, nodes_in_post_order
from pytato_provenance.merging import equal_classes
from pytato_provenance.tags import history_of, site_of


HAS_RESULT_CACHE = hasattr(tr, "TransformMapperCache")
only_with_result_cache = pytest.mark.skipif(
    not HAS_RESULT_CACHE, reason="this host's mappers keep equal results apart")


@pytest.fixture(autouse=True)
def _switched_off(request):
    with (nullcontext() if "failure_of_ours" in request.node.name
          else nothing_fails_inside()):
        yield
    disable()


def _here() -> int:
    return sys._getframe(1).f_lineno


def _x(name: str = "x") -> Any:
    return pt.make_placeholder(name=name, shape=(4,), dtype=np.float64)


def _lines(ary: Any) -> list[int]:
    return [site.user_frame.lineno for site in created_at(ary).all_sites]


def _dag(**outputs: Any) -> Any:
    return pt.make_dict_of_named_arrays(outputs)


def _names(expr: Any) -> str:
    return str(expr.expr) if isinstance(expr, pt.IndexLambda) else ""


class CosToSin(tr.CopyMapper):
    def map_index_lambda(self, expr: Any) -> Any:
        if "cos" in _names(expr):
            return pt.sin(self.rec(next(iter(expr.bindings.values()))))
        return super().map_index_lambda(expr)


class CosToSinWithMixin(PreserveCreatedAtMixin, CosToSin):
    pass


def _snapshot(dag: Any) -> list[Any]:
    return [(id(node), site_of(node), node.__dict__.get("non_equality_tags"))
            for node in nodes_in_post_order(dag)]


def _number_of_classes(*dags: Any) -> tuple[int, int]:
    """How many nodes there are, and how many that are not equal."""
    nodes = nodes_in_post_order(*dags)
    return len(nodes), len(set(equal_classes(nodes).values()))


def _sines(dag: Any) -> list[Any]:
    return [node for node in nodes_in_post_order(dag) if "sin" in _names(node)
            and isinstance(node, host().array)]


# {{{ equal results

@only_with_result_cache
@pytest.mark.parametrize("mapper", [CosToSin, CosToSinWithMixin])
@pytest.mark.parametrize("how", ["recording", "mixin only", "through"])
@pytest.mark.parametrize("passed_through_first", [True, False])
def test_equal_results(mapper: Any, how: str, passed_through_first: bool) -> None:
    if how == "mixin only" and mapper is CosToSin:
        pytest.skip("without the mixin, and not recording")
    with recording():
        x = _x()
        line = _here() + 1
        sine = pt.sin(x)
        cosine = pt.cos(x)
        pair = ((sine + 1, cosine * 2) if passed_through_first
                else (cosine * 2, sine + 1))
        dag = _dag(a=pair[0], b=pair[1])
    disable()
    plain = CosToSin()(dag)
    before = _snapshot(dag)
    if how == "mixin only":
        result = mapper()(dag)
    elif how == "through":
        result = through(mapper())(dag)
    else:
        with recording():
            result = mapper()(dag)
    survivor, = _sines(result)
    assert _lines(survivor) == [line, line + 1]
    assert result == plain
    assert _number_of_classes(result) == _number_of_classes(plain)
    assert _snapshot(dag) == before
    assert x in nodes_in_post_order(result)


@only_with_result_cache
def test_both_made_anew() -> None:
    class BothToSin(tr.CopyMapper):
        def map_index_lambda(self, expr: Any) -> Any:
            if any(name in _names(expr) for name in ("cos", "exp")):
                return pt.sin(2 * self.rec(next(iter(expr.bindings.values()))))
            return super().map_index_lambda(expr)

    with recording():
        x = _x()
        line = _here() + 1
        exponential = pt.exp(x)
        cosine = pt.cos(x)
        dag = _dag(a=exponential, b=cosine)
        result = BothToSin()(dag)
    survivor, = _sines(result)
    product = survivor.bindings["in_0"]
    # What was made beneath the one that was dropped counts as well.
    for node in (survivor, product):
        assert _lines(node) == [line, line + 1]


@only_with_result_cache
def test_results_of_several_calls_of_a_mapper_stay_one() -> None:
    with recording():
        x = _x()
        line = _here() + 1
        sine = pt.sin(x)
        cosine = pt.cos(x)
        first, second = sine * 2, cosine + 3
        dag = _dag(a=sine + 1, b=cosine * 2)
        mapper = CosToSin()
        # What is returned now has to be the same object later on.
        a = mapper(dag)
        b = mapper(first)
        c = mapper(second)
    nodes, classes = _number_of_classes(a, b, c)
    assert nodes == classes
    assert {id(node) for node in _sines(_dag(a=a["a"].expr, b=b, c=c))} == {
        id(_sines(a)[0])}
    assert line in _lines(_sines(a)[0])


@only_with_result_cache
def test_what_was_returned_is_not_touched_and_the_audit_says_so() -> None:
    with recording():
        x = _x()
        line = _here() + 1
        sine = pt.sin(x)
        cosine = pt.cos(x)
        mapper = CosToSin()
        assert mapper(sine) is sine
        report = audit(mapper, cosine)
        assert report.result is sine
    assert _lines(sine) == [line]
    assert report.count("gone") == 1
    assert report.count("lost") == 0


@only_with_result_cache
def test_wrappers_of_the_same_data() -> None:
    data = np.arange(4.0)
    with recording():
        line = _here() + 1
        one = pt.make_data_wrapper(data)
        other = pt.make_data_wrapper(data)
        sine_line = _here() + 1
        dag = _dag(a=pt.sin(one),
                   b=pt.sin(other) + 1)
        report = audit(tr.deduplicate_data_wrappers, dag)
    survivor, = _sines(report.result)
    assert _lines(survivor) == [sine_line, sine_line + 1]
    wrapper, = survivor.bindings.values()
    # A copy of it would be another input: it stays, and what became one with it is
    # reported.
    assert wrapper is one
    assert _lines(wrapper) == [line]
    assert report.count("gone") == 1
    assert (report.merged, report.lost) == (1, 0)


@only_with_result_cache
def test_materialisation() -> None:
    from pytato.transform.materialize import materialize_with_mpms

    with recording():
        x, y = _x("x"), _x("y")
        line = _here() + 1
        stored = (x + y).tagged(pt.tags.ImplStored())
        found = x + y
        dag = _dag(a=stored * 2 + found * 3 + (found - 1) + pt.sin(found + stored))
        plain = materialize_with_mpms(dag)
        report = audit(materialize_with_mpms, dag)
    assert report.result == plain
    sums = [node for node in nodes_in_post_order(report.result)
            if pt.tags.ImplStored() in getattr(node, "tags", ())]
    assert [_lines(node) for node in sums] == [[line, line + 1]]
    assert (report.lost, report.count("created")) == (0, 0)

# }}}


# {{{ equal inputs

def _merging_mapper() -> Any:
    return tr.Deduplicator if HAS_RESULT_CACHE else tr.CopyMapper


def test_the_mapper_sees_the_nodes_of_its_input() -> None:
    seen: list[Any] = []

    class Looking(_merging_mapper()):
        def map_index_lambda(self, expr: Any) -> Any:
            seen.append(expr)
            return super().map_index_lambda(expr)

    with recording():
        x = _x()
        one = pt.sin(x)
        other = pt.sin(x)
        dag = _dag(a=one, b=other + 1)
        Looking()(dag)
    assert any(node is one for node in seen)
    inputs = {id(node) for node in nodes_in_post_order(dag)}
    assert all(id(node) in inputs for node in seen)


@pytest.mark.parametrize("record", [True, False])
def test_what_is_made_in_place_of_equal_nodes(record: bool) -> None:
    class Doubling(PreserveCreatedAtMixin, _merging_mapper()):
        def map_index_lambda(self, expr: Any) -> Any:
            if "sin" in _names(expr):
                return 2 * pt.cos(self.rec(next(iter(expr.bindings.values()))))
            return super().map_index_lambda(expr)

    with recording():
        x = _x()
        line = _here() + 1
        one = pt.sin(x)
        other = pt.sin(x)
        dag = _dag(a=one, b=other + 1)
    disable()
    with recording(record):
        result = Doubling()(dag)
    cosine, = (node for node in nodes_in_post_order(result) if "cos" in _names(node))
    product, = (node for node in nodes_in_post_order(result)
                if cosine in getattr(node, "bindings", {}).values())
    assert _lines(cosine) == _lines(product) == [line, line + 1]


def test_a_copy_of_a_dictionary_is_one_transform() -> None:
    with recording():
        x = _x()
        line = _here() + 1
        one = pt.sin(x)
        other = pt.sin(x)
        dag = _dag(a=one, b=other)
        result = tr.copy_dict_of_named_arrays(dag, _merging_mapper()())
    assert result["a"].expr is result["b"].expr
    assert _lines(result["a"].expr) == [line, line + 1]
    assert _lines(one) == [line]


@pytest.mark.skipif(not hasattr(pt, "trace_call"), reason="no traced functions")
def test_bodies_of_functions() -> None:
    def function(ary: Any) -> dict[str, Any]:
        one = pt.sin(ary)
        other = pt.sin(ary)
        return {"a": one + 1, "b": other * 2}

    with recording():
        result = pt.trace_call(function, _x())
        dag = _dag(a=result["a"], b=result["b"])
        deduplicated = tr.deduplicate(dag)
        again = tr.CopyMapper()(deduplicated)
    first_line = function.__code__.co_firstlineno
    survivor, = _sines(deduplicated)
    assert _lines(survivor) == [first_line + 1, first_line + 2]
    assert again is deduplicated


@pytest.mark.skipif(not hasattr(pt, "trace_call"), reason="no traced functions")
def test_equal_calls() -> None:
    def function(ary: Any) -> Any:
        return pt.sin(ary)

    with recording():
        x = _x()
        dag = _dag(a=pt.trace_call(function, x) + 1,
                   b=pt.trace_call(function, x) * 2)
        before = _snapshot(dag)
        deduplicated = tr.deduplicate(dag)
        # The host relies on there being one object for a call and a name.
        assert tr.CopyMapper()(deduplicated) is deduplicated
    assert _snapshot(dag) == before
    call, = (node for node in nodes_in_post_order(deduplicated)
             if isinstance(node, pt.function.Call))
    assert len(site_of(call).all_sites) == 2


@pytest.mark.skipif(not hasattr(pt, "trace_call"), reason="no traced functions")
def test_operands_that_are_equal_after_inlining() -> None:
    def function(one: Any, other: Any) -> Any:
        return (pt.sin(one)
                + pt.sin(other))

    with recording():
        x = _x()
        dag = pt.tag_all_calls_to_be_inlined(_dag(a=pt.trace_call(function, x, x)))
        report = audit(pt.inline_calls, dag)
    first_line = function.__code__.co_firstlineno
    survivor, = _sines(report.result)
    assert _lines(survivor) == [first_line + 1, first_line + 2]
    assert report.lost == report.count("created") == 0

# }}}


# {{{ nobody else notices

def test_a_mapper_that_is_copied_while_it_maps() -> None:
    class Copying(_merging_mapper()):
        def map_index_lambda(self, expr: Any) -> Any:
            other = copy.copy(self)
            for name in ("_cache", "cache"):
                if hasattr(other, name):
                    setattr(other, name, getattr(type(self)(), name))
            inner = next(iter(expr.bindings.values()))
            return pt.exp(other(inner)) if "sin" in _names(expr) else (
                super().map_index_lambda(expr))

    with recording():
        x = _x()
        dag = _dag(a=pt.sin(pt.cos(x)), b=pt.sin(pt.cos(x)) + 1)
        recorded = Copying()(dag)
    disable()
    plain = Copying()(dag)
    assert _number_of_classes(recorded) == _number_of_classes(plain)
    if HAS_RESULT_CACHE:
        assert recorded == plain


def test_nothing_is_left_on_a_mapper_and_no_circle() -> None:
    import gc
    import weakref

    mapper = _merging_mapper()()
    with recording():
        x = _x()
        mapper(_dag(a=pt.sin(x), b=pt.sin(x) + 1))
    for name in ("_cache", "_function_cache"):
        assert not {"add", "retrieve"} & set(vars(getattr(mapper, name, tr)).keys())\
            or not hasattr(mapper, name)
    reference = weakref.ref(mapper)
    gc.collect()
    gc.disable()
    try:
        del mapper
        assert reference() is None
    finally:
        gc.enable()


def test_history_of_a_merge() -> None:
    with recording(history=True):
        x = _x()
        one = pt.sin(x)
        other = pt.sin(x)
        result = _merging_mapper()()(_dag(a=one, b=other + 1))
    survivor, = _sines(result)
    assert [step.action for step in history_of(survivor)] == ["merged 2 sites"]
    assert not history_of(one)
    assert not history_of(other)


@pytest.mark.skipif(not hasattr(pt, "trace_call"), reason="no traced functions")
def test_history_leaves_what_is_substituted_alone() -> None:
    def function(ary: Any) -> Any:
        return pt.sin(ary)

    with recording(history=True):
        operand = pt.cos(_x())
        before = site_of(operand), history_of(operand)
        pt.inline_calls(pt.tag_all_calls_to_be_inlined(
            _dag(a=pt.trace_call(function, operand))))
    assert (site_of(operand), history_of(operand)) == before


def test_a_failure_of_ours_is_not_the_programs(monkeypatch) -> None:
    from pytato_provenance import survivors
    from pytato_provenance.diagnostic import ProvenanceWarning

    def failing(*args: Any) -> Any:
        raise LookupError("ours")

    monkeypatch.setattr(survivors, "settled", failing)
    with recording():
        x = _x()
        dag = _dag(a=pt.sin(x), b=pt.sin(x) + 1)
        with pytest.warns(ProvenanceWarning, match="ours"):
            result = _merging_mapper()()(dag)
    assert len(_sines(result)) == 1

# }}}


# {{{ a program that goes on with nodes of the input and of the result

@only_with_result_cache
@pytest.mark.parametrize("again", [False, True])
def test_the_input_and_the_result_are_one_program(again: bool) -> None:
    def program() -> Any:
        x = _x()
        one = pt.sin(x)
        other = pt.sin(_x())
        survivor = tr.deduplicate(_dag(a=one, b=other + 1))["a"].expr
        return _dag(a=survivor * 2, b=one + 3, c=x)

    plain = tr.CopyMapper()(program())
    with recording():
        dag = program()
    if again:
        disable()
    with recording():
        assert any(a == b and a is not b for a in nodes_in_post_order(dag)
                   for b in nodes_in_post_order(dag))
        # The host refuses equal nodes that are not one object. These are one.
        mapped = tr.CopyMapper()(dag)
        pt.generate_loopy(dag)
        stranger = _dag(a=pt.sin(_x()) + one_of(dag), b=dag["b"].expr)
        with pytest.raises(ValueError, match="collision"):
            tr.CopyMapper()(stranger)
    assert _number_of_classes(mapped) == _number_of_classes(plain)


def one_of(dag: Any) -> Any:
    return next(node for node in nodes_in_post_order(dag) if "sin" in _names(node))

# }}}
