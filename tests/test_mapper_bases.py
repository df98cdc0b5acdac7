"""Mappers of users, of every base class and shape, keep the sites."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytato as pt
import pytato.transform as tr
import pytest
from looking import nothing_fails_inside

from pytato_provenance import (
    PreserveCreatedAtMixin,
    ProvenanceCopyMapper,
    audit,
    created_at,
    disable,
    recording,
    through,
)
from pytato_provenance._host import host, nodes_in_post_order


@pytest.fixture(autouse=True)
def _switched_off():
    with nothing_fails_inside():
        yield
    disable()


# {{{ the program

def _program() -> Any:
    with recording():
        x = pt.make_placeholder(name="x", shape=(4, 4), dtype=np.float64)
        y = pt.sin(x)
        r = pt.roll(y, 1, 0)
        z = pt.cos(r)
    return z


def _expected() -> dict[str, int]:
    """The line of each name."""
    lines, first = inspect.getsourcelines(_program)
    return {line.split()[0]: first + i for i, line in enumerate(lines)
            if " = pt." in line}


def _line(ary: Any) -> int | None:
    site = created_at(ary)
    return None if site is None else site.user_frame.lineno


def _lines_of(dag: Any) -> list[int | None]:
    return [_line(node) for node in nodes_in_post_order(dag)
            if isinstance(node, host().array)]

# }}}


# {{{ the mappers, each from its base class

def _operand(expr: Any) -> Any:
    return next(iter(expr.bindings.values()))


def overriding(base: Any) -> Any:
    class Overriding(base):
        def map_index_lambda(self, expr: Any) -> Any:
            return 2 * pt.exp(self.rec(_operand(expr)))

    return Overriding


def after_rec(base: Any) -> Any:
    class AfterRec(base):
        """Makes something of what the base class's has made."""

        def map_index_lambda(self, expr: Any) -> Any:
            return pt.exp(self.rec(_operand(expr)))

        def rec(self, expr: Any) -> Any:
            result = super().rec(expr)
            return 2 * result if isinstance(expr, pt.IndexLambda) else result

    return AfterRec


def before_rec(base: Any) -> Any:
    class BeforeRec(base):
        """Does not come to the base class's for some."""

        def rec(self, expr: Any) -> Any:
            if isinstance(expr, pt.IndexLambda):
                return 2 * pt.exp(self.rec(_operand(expr)))
            return super().rec(expr)

    return BeforeRec


def before_rec_with_method(base: Any) -> Any:
    return type("BeforeRecWithMethod", (before_rec(base),), {"map_roll": _roll})


def _roll(self: Any, expr: Any) -> Any:
    return pt.roll(self.rec(expr.array), expr.shift, expr.axis)


def own_methods(base: Any) -> Any:
    class OwnMethods(base):
        """For base classes that have none."""

        map_roll = _roll

        def map_placeholder(self, expr: Any) -> Any:
            return expr

        def map_index_lambda(self, expr: Any) -> Any:
            return 2 * pt.exp(self.rec(_operand(expr)))

    return OwnMethods


def extra_args(base: Any) -> Any:
    class ExtraArgs(base):
        def get_cache_key(self, expr: Any, depth: int) -> Any:
            return expr

        def map_index_lambda(self, expr: Any, depth: int) -> Any:
            return 2 * pt.exp(self.rec(_operand(expr), depth + 1))

    return lambda: lambda dag: ExtraArgs()(dag, 0)


def combining(base: Any) -> Any:
    class Combining(base):
        def combine(self, *parts: Any) -> Any:
            return parts[0]

        map_roll = _roll

        def map_placeholder(self, expr: Any) -> Any:
            return expr

        def map_index_lambda(self, expr: Any) -> Any:
            return 2 * pt.exp(self.combine(self.rec(_operand(expr))))

    return Combining


def idiomatic_rec(base: Any) -> Any:
    class IdiomaticRec(base):
        """Looks into the cache itself, as the host's own mappers do."""

        def rec(self, expr: Any) -> Any:
            inputs = self._make_cache_inputs(expr)
            try:
                return self._cache_retrieve(inputs)
            except KeyError:
                result = super(tr.CachedMapper, self).rec(expr)
                if isinstance(expr, pt.IndexLambda):
                    result = 2 * pt.exp(_operand(result))
                return self._cache_add(inputs, result)

    return IdiomaticRec


def mapping_a_function(base: Any) -> Any:
    def function(expr: Any) -> Any:
        if isinstance(expr, pt.IndexLambda) and "pytato" in str(expr.expr):
            return expr.copy(expr=3) * 2
        return pt.roll(expr.array, 2, 0) if isinstance(expr, pt.Roll) else expr

    return lambda: base(function)


SHAPES: dict[str, tuple[Any, Any]] = {
    "CopyMapper": (overriding, tr.CopyMapper),
    "rec, after": (after_rec, tr.CopyMapper),
    "rec, before": (before_rec, tr.CopyMapper),
    "rec, before, and a method": (before_rec_with_method, tr.CopyMapper),
    "completed CopyMapper": (overriding, ProvenanceCopyMapper),
    "Mapper": (own_methods, tr.Mapper)}

if hasattr(tr, "TransformMapper"):
    SHAPES.update({
        "CopyMapperWithExtraArgs": (extra_args, tr.CopyMapperWithExtraArgs),
        "TransformMapper": (own_methods, tr.TransformMapper),
        "CachedMapper": (own_methods, tr.CachedMapper),
        "CombineMapper": (combining, tr.CombineMapper),
        "rec, idiomatic": (idiomatic_rec, tr.CopyMapper),
        "CachedMapAndCopyMapper": (mapping_a_function, tr.CachedMapAndCopyMapper)})


def _with_mixin(base: Any) -> Any:
    if issubclass(base, PreserveCreatedAtMixin):
        return base
    return type(f"{base.__name__}WithMixin", (PreserveCreatedAtMixin, base), {})

# }}}


def _check(result: Any) -> None:
    line = _expected()
    lines = _lines_of(result)
    assert all(len(created_at(node).all_sites) == 1
               for node in nodes_in_post_order(result)
               if isinstance(node, host().array))
    # In the order of the program, each as often as it may be.
    assert set(lines) == set(line.values())
    assert lines == sorted(lines)
    assert len(lines) >= 4


@pytest.mark.parametrize("name", SHAPES)
def test_while_recording(name: str) -> None:
    shape, base = SHAPES[name]
    dag = _program()
    with recording():
        result = shape(base)()(dag)
    _check(result)


@pytest.mark.parametrize("record", [True, False])
@pytest.mark.parametrize("name", SHAPES)
def test_a_class_with_the_mixin(name: str, record: bool) -> None:
    shape, base = SHAPES[name]
    dag = _program()
    with recording(record):
        result = shape(_with_mixin(base))()(dag)
    _check(result)


@pytest.mark.parametrize("record", [True, False])
@pytest.mark.parametrize("name", [
    name for name, (shape, _) in SHAPES.items()
    if shape not in (extra_args, mapping_a_function)])
def test_the_mixin_before_a_class(name: str, record: bool) -> None:
    shape, base = SHAPES[name]
    dag = _program()
    with recording(record):
        result = _with_mixin(shape(base))()(dag)
    _check(result)


@pytest.mark.parametrize("name", SHAPES)
def test_through(name: str) -> None:
    shape, base = SHAPES[name]
    report = audit(through(shape(base)()), _program())
    assert (report.lost, report.count("created"), report.synthetic) == (0, 0, 0)
    _check(report.result)


def test_a_method_that_is_no_method() -> None:
    class Assigning(PreserveCreatedAtMixin, tr.CopyMapper):
        def __init__(self) -> None:
            super().__init__()
            self.map_index_lambda = lambda expr: 2 * pt.exp(self.rec(_operand(expr)))

        map_roll: Any = staticmethod(lambda expr: expr)

    with recording(False):
        result = Assigning()(_program())
    assert None not in _lines_of(result)
