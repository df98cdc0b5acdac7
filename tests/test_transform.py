"""What transforms make inherits; what they merge knows all its sites."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytato as pt
import pytato.transform as tr
import pytest
import random_dags

from pytato_provenance import (
    PreserveCreatedAtMixin,
    ProvenanceCopyMapper,
    audit,
    created_at,
    disable,
    enable,
    recording,
    through,
)
from pytato_provenance._host import host, nodes_in_post_order
from pytato_provenance.diagnostic import (
    NotAnArrayError,
    ProvenanceLostError,
    ProvenanceWarning,
)
from pytato_provenance.merging import equal_classes
from pytato_provenance.tags import has_site, history_of, site_of


HAS_DEDUPLICATE = hasattr(tr, "deduplicate")


@pytest.fixture(autouse=True)
def _switched_off():
    yield
    disable()


def _placeholder(name: str = "x") -> Any:
    return pt.make_placeholder(name=name, shape=(4, 4), dtype=np.float64)


def _arrays(dag: Any) -> list[Any]:
    return [node for node in nodes_in_post_order(dag) if isinstance(node, host().array)]


def _sites(dag: Any) -> Counter[Any]:
    return Counter(site for node in _arrays(dag) for site in site_of(node).all_sites)


def _lines(ary: Any) -> list[int]:
    return [site.user_frame.lineno for site in created_at(ary).all_sites]


class Bare(tr.CopyMapper):
    """Makes every index lambda afresh, without tags, and one more beneath it."""

    def map_index_lambda(self, expr: Any) -> Any:
        bindings = {name: self.rec(ary) for name, ary in expr.bindings.items()}
        name = next(iter(bindings))
        bindings[name] = _bare_index_lambda(
            expr=_identity_of(bindings[name]), bindings={"_in0": bindings[name]},
            shape=bindings[name].shape, dtype=bindings[name].dtype)
        return _bare_index_lambda(expr=expr.expr, bindings=bindings, shape=expr.shape,
                                  dtype=expr.dtype)


def _identity_of(ary: Any) -> Any:
    from pymbolic import var
    return var("_in0")[tuple(var(f"_{i}") for i in range(ary.ndim))]


def _bare_index_lambda(*, bindings: dict[str, Any], shape: Any, **fields: Any) -> Any:
    if host().has_non_equality_tags:
        from constantdict import constantdict
        fields.update(axes=pt.array._get_default_axes(len(shape)), tags=frozenset(),
                      var_to_reduction_descr=constantdict())
        bindings = constantdict(bindings)
    return pt.IndexLambda(bindings=bindings, shape=shape, **fields)


class BareWithMixin(PreserveCreatedAtMixin, Bare):
    pass


class Doubling(tr.CopyMapper):
    """Rewrites by user-facing functions."""

    def map_index_lambda(self, expr: Any) -> Any:
        return 2 * self.rec(next(iter(expr.bindings.values())))


class Scaling(tr.CopyMapper):
    """Rewrites to something else each time."""

    def __init__(self, factor: int) -> None:
        super().__init__()
        self.factor = factor

    def map_index_lambda(self, expr: Any) -> Any:
        return self.factor * self.rec(next(iter(expr.bindings.values())))


class Losing(tr.CopyMapper):
    """Hides from the recording what it makes."""

    def map_index_lambda(self, expr: Any) -> Any:
        with recording(False):
            return 5 * self.rec(next(iter(expr.bindings.values())))


class DoublingWithMixin(PreserveCreatedAtMixin, Doubling):
    pass


def _chain() -> tuple[Any, list[int]]:
    with recording():
        lines = [sys._getframe().f_lineno + i for i in (1, 2, 3)]
        x = pt.make_placeholder(name="x", shape=(4, 4), dtype=np.float64)
        y = pt.sin(x)
        z = pt.cos(y)
    return z, lines


def _lines_from_inputs(ary: Any) -> list[list[int]]:
    return [_lines(node) for node in _arrays(ary)]


# {{{ inheritance

@pytest.mark.parametrize("record", [False, True])
def test_mixin_with_what_is_rebuilt_without_tags(record: bool) -> None:
    dag, (x_line, y_line, z_line) = _chain()
    with recording(record):
        result = BareWithMixin()(dag)
    assert _lines_from_inputs(result) == [
        [x_line], [y_line], [y_line], [z_line], [z_line]]


@pytest.mark.parametrize("mapper", [Bare, Doubling])
def test_plain_mappers_while_recording(mapper: Any) -> None:
    dag, (x_line, y_line, z_line) = _chain()
    with recording():
        result = mapper()(dag)
    each = 2 if mapper is Bare else 1
    assert _lines_from_inputs(result) == [
        [x_line], *[[y_line]] * each, *[[z_line]] * each]


def test_mixin_with_user_facing_functions() -> None:
    dag, lines = _chain()
    with recording():
        assert _lines_from_inputs(DoublingWithMixin()(dag)) == [[i] for i in lines]


def test_without_the_mixin_sites_are_lost_and_the_audit_says_so() -> None:
    dag, _ = _chain()
    disable()
    report = audit(Bare(), dag)
    assert report.lost == 4
    assert report.pass_name == "Bare"
    assert "4 IndexLambda" in str(report)
    assert report.as_data()["pass"] == "Bare"
    assert audit(BareWithMixin(), dag).lost == 0


def test_through_a_function_that_rebuilds_by_hand() -> None:
    dag, lines = _chain()

    def rebuild(expr: Any) -> Any:
        if not hasattr(expr, "bindings"):
            return expr
        return _bare_index_lambda(
            expr=expr.expr, shape=expr.shape, dtype=expr.dtype,
            bindings={name: rebuild(ary) for name, ary in expr.bindings.items()})

    assert _lines_from_inputs(through(rebuild)(dag)) == [[i] for i in lines]


def test_through_marks_what_a_function_makes_for_itself() -> None:
    dag, lines = _chain()

    def shift(ary: Any) -> Any:
        return ary + 1

    result = through(shift)(dag)
    assert created_at(result).kind == "synthetic"
    assert "shift" in str(created_at(result))
    assert [_lines(node) for node in _arrays(result)[:-1]] == [[i] for i in lines]


def test_through_takes_a_dag_only() -> None:
    with pytest.raises(NotAnArrayError, match="through"):
        through(Bare())(3)


def test_through_passes_the_hosts_error() -> None:
    class Failing(tr.CopyMapper):
        def map_placeholder(self, expr: Any) -> Any:
            raise ZeroDivisionError("the mapper's own")

    with pytest.raises(ZeroDivisionError, match="the mapper's own"):
        through(Failing())(_chain()[0])


def test_an_unknown_node_stays_unknown() -> None:
    x = _placeholder()
    y = pt.sin(x)
    with recording():
        z = pt.cos(y)
        result = Bare()(z)
    known = [site_of(node) is not None for node in _arrays(result)]
    assert known == [False, False, False, True, True]
    assert not has_site(y)


def test_a_mapper_with_a_rec_of_its_own() -> None:
    class Counting(Bare):
        count = 0

        def rec(self, expr: Any) -> Any:
            self.count += 1
            return super().rec(expr)

    class CountingWithMixin(PreserveCreatedAtMixin, Counting):
        pass

    dag, (x_line, y_line, z_line) = _chain()
    disable()
    mapper = CountingWithMixin()
    result = mapper(dag)
    assert mapper.count == 3
    assert _lines_from_inputs(result) == [
        [x_line], [y_line], [y_line], [z_line], [z_line]]


def test_mappers_call_each_other() -> None:
    class Outer(tr.CopyMapper):
        def map_index_lambda(self, expr: Any) -> Any:
            return Doubling()(expr)

    dag, (x_line, y_line, z_line) = _chain()
    with recording():
        result = Outer()(dag)
    assert _lines_from_inputs(result) == [[x_line], [y_line], [z_line]]


def test_a_failing_transform_leaves_nothing_behind() -> None:
    class Failing(tr.CopyMapper):
        def map_placeholder(self, expr: Any) -> Any:
            raise ZeroDivisionError

    dag, _ = _chain()
    with recording():
        with pytest.raises(ZeroDivisionError):
            Failing()(dag)
        here = pt.sin(_placeholder())
    line = inspect.currentframe().f_lineno - 1
    assert _lines(here) == [line]

# }}}


# {{{ one node in place of several

class Fusing(tr.CopyMapper):
    """Makes one product of three."""

    def map_index_lambda(self, expr: Any) -> Any:
        if "exp" not in str(expr.expr):
            return super().map_index_lambda(expr)
        middle, = expr.bindings.values()
        inner, = middle.bindings.values()
        operand, = inner.bindings.values()
        return 7 * (self.rec(operand) + 1)


class FusingWithMixin(PreserveCreatedAtMixin, Fusing):
    pass


class Folding(tr.CopyMapper):
    """Makes a constant of whatever there is."""

    def map_index_lambda(self, expr: Any) -> Any:
        return pt.zeros(expr.shape, expr.dtype)


@pytest.mark.parametrize("mapper", [Fusing, FusingWithMixin])
@pytest.mark.parametrize("record", [True, False])
def test_fused_nodes(mapper: Any, record: bool) -> None:
    with recording():
        lines = [sys._getframe().f_lineno + i for i in range(1, 7)]
        x = pt.make_placeholder(name="x", shape=(4, 4), dtype=np.float64)
        operand = pt.cos(x)
        inner = 2 * operand
        middle = 3 * inner
        outer = pt.exp(middle)
        dag = outer + 5
    if not record:
        disable()
    transform = (mapper() if record or mapper is FusingWithMixin
                 else through(mapper()))
    with recording(record):
        result = transform(dag)
    fused = [lines[4], lines[2], lines[3]]
    assert _lines_from_inputs(result) == [
        [lines[0]], [lines[1]], sorted(fused), sorted(fused), [lines[5]]]
    # The input is left alone.
    assert _lines_from_inputs(dag) == [[line] for line in lines]


def test_what_is_dropped_is_not_fused() -> None:
    with recording():
        inner = pt.cos(_placeholder())
        line = sys._getframe().f_lineno + 1
        outer = pt.exp(2 * inner)
        assert _lines(Folding()(outer)) == [line]

# }}}


# {{{ copies

@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_the_copy_mapper_is_complete(seed: int, record: bool) -> None:
    with recording():
        dag = random_dags.random_dag(seed)
    if HAS_DEDUPLICATE:
        dag = tr.deduplicate(dag)
    with recording(record):
        copy = ProvenanceCopyMapper()(dag)
    assert all(has_site(node) for node in _arrays(copy))
    assert set(_sites(copy)) == set(_sites(dag))
    assert [type(node) for node in nodes_in_post_order(copy)] == (
        [type(node) for node in nodes_in_post_order(dag)]
        if HAS_DEDUPLICATE else [type(node) for node in nodes_in_post_order(copy)])
    if HAS_DEDUPLICATE:
        assert copy == dag


def test_the_copy_mapper_keeps_tags() -> None:
    from pytools.tag import Tag

    class Marked(Tag):
        pass

    x = _placeholder()
    ary = pt.einsum("ij,jk->ik", x, x)
    if host().has_non_equality_tags:
        ary = ary.tagged(Marked())
    else:
        ary.tags = frozenset({Marked()})
    copy = ProvenanceCopyMapper()(pt.make_dict_of_named_arrays({"a": ary}))
    assert {type(tag) for tag in copy["a"].expr.tags} == {Marked}


def test_mixin_reaches_no_less_depth() -> None:
    class WithMixin(PreserveCreatedAtMixin, tr.CopyMapper):
        pass

    def reached(mapper: Any) -> int:
        low, high = 10, 2000
        while high - low > 1:
            middle = (low + high) // 2
            ary = _placeholder()
            for i in range(middle):
                ary = 2 * ary if i % 2 else ary + 1
            try:
                mapper()(ary)
                low = middle
            except RecursionError:
                high = middle
        return low

    disable()
    plain = reached(tr.CopyMapper)
    assert reached(WithMixin) >= plain
    with recording():
        # One frame for the outermost call.
        assert reached(tr.CopyMapper) >= plain - 2
        assert reached(WithMixin) >= plain

# }}}


# {{{ merging

def _with_equal_nodes() -> tuple[Any, list[int]]:
    with recording():
        x = _placeholder()
        lines = [sys._getframe().f_lineno + i for i in (1, 2)]
        one = pt.sin(x)
        other = pt.sin(x)
        dag = pt.make_dict_of_named_arrays({"a": one + 1, "b": other * 2})
    return dag, lines


def _merging_mappers() -> list[Any]:
    if HAS_DEDUPLICATE:
        class Merging(PreserveCreatedAtMixin, tr.Deduplicator):
            pass

        return [lambda: tr.deduplicate, Merging]

    class Copying(PreserveCreatedAtMixin, tr.CopyMapper):
        pass

    return [tr.CopyMapper, Copying, ProvenanceCopyMapper]


@pytest.mark.parametrize("make", _merging_mappers())
@pytest.mark.parametrize("how", ["recording", "through"])
def test_the_survivor_knows_all_sites(make: Any, how: str) -> None:
    dag, lines = _with_equal_nodes()
    swapped = pt.make_dict_of_named_arrays({"a": dag["b"].expr, "b": dag["a"].expr})
    for each in (dag, swapped):
        if how == "recording":
            with recording():
                result = make()(each)
        else:
            result = through(make())(each)
        sines = {id(node): node for node in _arrays(result)
                 if "sin" in str(getattr(node, "expr", ""))}
        survivor, = sines.values()
        assert _lines(survivor) == lines

# }}}


# {{{ history and audit

def test_history_names_pass_and_code() -> None:
    dag, _ = _chain()
    with recording(history=True):
        result = Scaling(3)(Doubling()(dag))
    steps = list(history_of(result))
    assert [step.pass_name for step in steps] == ["Doubling", "Scaling"]
    assert all(step.action == "IndexLambda rewritten" for step in steps)
    for step, mapper in zip(steps, (Doubling, Scaling), strict=True):
        _, line = inspect.getsourcelines(mapper.map_index_lambda)
        assert step.site.user_frame.lineno == line
    assert "Doubling" in str(history_of(result))


def test_history_is_off_by_default_and_copies_add_nothing() -> None:
    dag, _ = _chain()
    with recording():
        assert not history_of(Doubling()(dag))
    with recording(history=True):
        assert not history_of(tr.CopyMapper()(dag))


def test_a_thousand_passes() -> None:
    dag, lines = _chain()
    with recording(history=True):
        for i in range(1000):
            dag = Scaling(i + 2)(dag)
    history = history_of(dag)
    assert len(history) == 1000
    assert len(list(history)) <= 32
    assert f"{history.dropped} more" in str(history)
    assert _lines(dag) == lines[-1:]


def test_audit_while_recording() -> None:
    dag, _ = _chain()
    with recording():
        report = audit(Bare(), dag)
    # The released host copies the placeholder; its copy is not equal to it.
    assert (report.lost, report.inherited + report.kept) == (0, 5)


def test_audit_of_a_merge() -> None:
    dag, _ = _with_equal_nodes()
    with recording():
        report = audit(_merging_mappers()[0](), dag)
    assert (report.merged, report.lost) == (1, 0)


@pytest.mark.parametrize(("how", "kind"), [
    ("warn", ProvenanceWarning), ("raise", ProvenanceLostError)])
def test_audit_of_all_that_runs_through_us(how: str, kind: type[Exception]) -> None:
    dag, _ = _chain()
    enable(audit=how)
    Bare()(dag)
    if how == "warn":
        with pytest.warns(kind, match="'Losing' made 2 arrays"):
            assert _lost(Losing()(dag)) == 2
    else:
        with pytest.raises(kind, match="'Losing' made 2 arrays"):
            Losing()(dag)


def _lost(dag: Any) -> int:
    # What is lost is marked so, with the pass that lost it.
    return sum(str(created_at(node)) == "unknown (lost by Losing)"
               for node in _arrays(dag))


def test_audit_takes_a_dag_only() -> None:
    with pytest.raises(NotAnArrayError, match="audit"):
        audit(Bare(), "no dag")

# }}}


def test_classes_are_the_same_with_and_without_recording() -> None:
    for seed in range(10):
        plain = nodes_in_post_order(random_dags.random_dag(seed))
        with recording():
            recorded = nodes_in_post_order(random_dags.random_dag(seed))
        assert (list(equal_classes(plain).values())
                == list(equal_classes(recorded).values()))



# {{{ through

def test_through_leaves_alone_what_the_function_fetches() -> None:
    dag, _ = _chain()
    disable()
    kept = _placeholder("kept")
    recorded = through(lambda ary: kept + ary)(dag)
    assert not has_site(kept)
    assert created_at(recorded).kind == "synthetic"


def test_through_takes_dictionaries_and_sequences() -> None:
    with recording():
        x = _placeholder()
        lines = [sys._getframe().f_lineno + i for i in (1, 2)]
        one = pt.sin(x)
        other = pt.sin(x)
    result = through(lambda arys: dict(arys.items()))(
        {"a": one, "b": other})
    assert [_lines(ary) for ary in result.values()] == [lines, lines]
    result = through(lambda arys: arys[0])([one, (other,)])
    assert _lines(result) == lines
    assert _lines(one) == lines[:1]

# }}}
