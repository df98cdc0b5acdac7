"""One suite for every capture strategy: not one wrong line."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import functools
import gc
import linecache
import operator
import os
import random
import sys
import sysconfig
import threading
import traceback
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import hypothesis
import numpy as np
import pytato as pt
import pytest
from call_shapes import Shapes

import pytato_provenance as pp
from pytato_provenance import call_tree
from pytato_provenance._host import nodes_in_post_order
from pytato_provenance.capture import make_strategy, strategy_names
from pytato_provenance.capture.paths import compiled_path_table
from pytato_provenance.diagnostic import CaptureUnavailableError


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytato_provenance import CreationSite


class Variant(NamedTuple):
    capture: str
    options: dict[str, Any]

    def __str__(self) -> str:
        return "-".join([self.capture, *map("{0[0]}={0[1]}".format,
                                            self.options.items())])


DEFAULT = Variant("stack", {"compiled": compiled_path_table() is not None})
VARIANTS = [
    Variant("stack", {"compiled": not DEFAULT.options["compiled"]}),
    DEFAULT,
    Variant("stack", {"compiled": False, "max_frames": 4}),
    Variant("stack", {"compiled": True, "max_frames": 4}),
    Variant("site", {"compiled": False}),
    Variant("site", {"compiled": True}),
    Variant("profile", {}),
    Variant("profile", {"max_frames": None}),
    Variant("monitoring", {}),
    Variant("monitoring", {"max_frames": None}),
]


def test_suite_covers_the_registry() -> None:
    assert {variant.capture for variant in VARIANTS} == set(strategy_names())


def switch_on(variant: Variant) -> None:
    if variant.options.get("compiled") and compiled_path_table() is None:
        pytest.skip("the compiled part was not built")
    if variant.capture == "monitoring" and not hasattr(sys, "monitoring"):
        pytest.skip("this Python has no sys.monitoring")
    pp.enable(capture=variant.capture, **variant.options)


@pytest.fixture(params=VARIANTS, ids=str)
def variant(request: pytest.FixtureRequest) -> Iterator[Variant]:
    switch_on(request.param)
    yield request.param
    pp.disable()


def placeholder(name: str = "x") -> Any:
    return pt.make_placeholder(name=name, shape=(4, 4), dtype=np.float64)


HAS_METHODS = hasattr(pt.Array, "reshape")
X = placeholder("x")
Y = placeholder("y")


# {{{ the oracle: the interpreter's own walk, at the call

HERE = __file__
LIBRARIES = tuple(
    os.path.realpath(path) + os.sep for path in sysconfig.get_paths().values())

Line = tuple[str, int, str]


def stack_here() -> list[Line]:
    """The stack of the caller, innermost first."""
    frames = traceback.walk_stack(sys._getframe(1))
    return [(frame.f_code.co_filename, lineno, frame.f_code.co_name)
            for frame, lineno in frames]


def is_library(line: Line) -> bool:
    filename = line[0]
    return (filename.startswith("<frozen")
            or os.path.realpath(filename).startswith(LIBRARIES))


def as_lines(site: CreationSite | None) -> list[Line]:
    assert site is not None
    return [(frame.filename, frame.lineno, frame.qualname.rpartition(".")[2])
            for frame in site.frames]


def kept(variant: Variant, stack: list[Line]) -> list[Line]:
    """What *variant* keeps of *stack*."""
    default = {"site": 1, "profile": 4, "monitoring": 4}.get(variant.capture)
    most = variant.options.get("max_frames", default)
    if most is None:
        return stack
    first = next(i for i, line in enumerate(stack) if not is_library(line))
    return stack[first:first + most]


def check(variant: Variant, array_and_stack: tuple[Any, list[Line]]) -> None:
    array, stack = array_and_stack
    assert as_lines(pp.created_at(array)) == kept(variant, stack)

# }}}


# {{{ kinds of calls: each gives arrays with the stack of their making

def operators() -> Any:
    yield X + Y, stack_here()
    yield 2 * X, stack_here()
    yield pt.less(X, Y), stack_here()
    yield abs(X), stack_here()
    yield -X, stack_here()
    yield X ** 2, stack_here()
    yield X @ Y, stack_here()


def augmented() -> Any:
    x = X
    x += Y; yield x, stack_here()  # noqa: E702


def subscripts() -> Any:
    yield X[0], stack_here()
    yield X[1:3], stack_here()
    yield X[:, 1], stack_here()


def methods_and_properties() -> Any:
    if HAS_METHODS:
        yield X.reshape((16,)), stack_here()
        yield X.astype(np.float32), stack_here()
    yield X.T, stack_here()
    yield (X + 1j).imag, stack_here()


def functions() -> Any:
    yield pt.make_placeholder(name="p", shape=(), dtype=float), stack_here()
    yield pt.sin(X), stack_here()
    yield pt.stack([X, Y]), stack_here()
    yield pt.einsum("ij,jk->ik", X, Y), stack_here()
    yield pt.sum(X), stack_here()
    yield pt.maximum(X, Y), stack_here()
    yield pt.roll(X, 1, 1), stack_here()
    yield pt.concatenate([X, Y]), stack_here()
    yield pt.zeros((4,)), stack_here()


BEFORE_3_11 = sys.version_info < (3, 11)


def after_a_return_on_the_same_line() -> Any:
    def helper() -> Any:
        return X + Y

    yield helper() + X, stack_here()
    yield X + helper(), stack_here()
    yield helper()[0], stack_here()


def lambdas_and_comprehensions() -> Any:
    yield (lambda: (X + Y, stack_here()))()
    yield from [(X + Y, stack_here()) for _ in range(2)]
    yield next((X[i], stack_here()) for i in range(2))
    yield {i: (X + Y, stack_here()) for i in range(2)}[1]


def called_from_c() -> Any:
    stack = stack_here(); sums = list(map(operator.add, [X], [Y]))  # noqa: E702
    yield sums[0], stack
    stack = stack_here(); total = functools.reduce(operator.add, [X, Y])  # noqa: E702
    yield total, stack
    stack = stack_here(); total = sum([X, Y])  # noqa: E702
    yield total, stack
    yield operator.getitem(X, 0), stack_here()
    yield functools.partial(pt.sin, X)(), stack_here()
    found: list[Any] = []
    [1, 2].sort(key=lambda _: found.append((X + Y, stack_here())) or 1)
    yield from found


def decorated() -> Any:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any) -> Any:
            return function(*args)

        return wrapper

    @decorate
    def inner() -> Any:
        return X + Y, stack_here()

    yield inner()


def executed() -> Any:
    scope = {"X": X, "Y": Y, "stack_here": stack_here}
    exec("\n\n\ndef f():\n    return X + Y, stack_here()", scope)
    yield scope["f"]()  # type: ignore[operator]
    yield eval("(X + Y, stack_here())", scope)


def generators_resumed_elsewhere() -> Any:
    def steps() -> Any:
        while True:
            yield X + Y, stack_here()

    made = steps()

    def resume() -> Any:
        return next(made)

    yield next(made)
    yield resume()
    yield next(made)


def coroutines() -> Any:
    found: list[Any] = []

    async def step() -> None:
        await asyncio.sleep(0)
        found.append((X + Y, stack_here()))

    async def main() -> None:
        await asyncio.gather(step(), step(), step())
        found.append((X[0], stack_here()))
        await step()

    asyncio.run(main())
    yield from found


def threads() -> Any:
    found: list[Any] = []
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait()
        for _ in range(20):
            found.append((X + Y, stack_here()))
            found.append((X[0], stack_here()))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    yield from found


def raised_in_the_host() -> Any:
    for _ in range(2):
        with contextlib.suppress(Exception):
            pt.stack([])
        yield X + Y, stack_here()
        with contextlib.suppress(Exception):
            X.reshape((17,))
        yield pt.sin(X), stack_here()
        with contextlib.suppress(Exception):
            X["no such index"]
        yield X[0], stack_here()


def in_a_finally_after_an_error() -> Any:
    found: list[Any] = []

    def fail() -> None:
        try:
            pt.stack([])
        finally:
            found.append((X + Y, stack_here()))

    with contextlib.suppress(Exception):
        fail()
    yield from found


def called_back_by_the_host() -> Any:
    """A mapping of the user's that the host reads while it makes an array."""
    found: list[Any] = []

    class Shape(tuple[int, ...]):
        def __iter__(self) -> Any:
            found.append((X + Y, stack_here()))
            return super().__iter__()

    shape = Shape((4,))
    stack = stack_here(); made = pt.zeros(shape)  # noqa: E702
    yield made, stack
    yield from found
    assert found


def deep_recursion() -> Any:
    def down(levels: int) -> Any:
        if levels:
            return down(levels - 1)
        return X + Y, stack_here()

    old = sys.getrecursionlimit()
    sys.setrecursionlimit(8000)
    try:
        for levels in (10, 300, 5000, 300):
            yield down(levels)
    finally:
        sys.setrecursionlimit(old)


def class_bodies() -> Any:
    class Body:
        made = X + Y, stack_here()

    yield Body.made


def under_a_trace_function() -> Any:
    found: list[Any] = []

    def trace(frame: Any, event: str, arg: object) -> Any:
        if event == "call" and frame.f_code is target.__code__:
            found.append((X + Y, stack_here()))
        return None

    def target() -> Any:
        return X[0], stack_here()

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        made = target()
    finally:
        sys.settrace(old)
    yield made
    assert len(found) == 1
    yield from found


def in_a_finaliser() -> Any:
    found: list[Any] = []

    class Dying:
        def __del__(self) -> None:
            found.append((X + Y, stack_here()))

    dying = Dying()
    del dying
    gc.collect()
    yield from found
    yield X + Y, stack_here()


def patched_while_it_runs() -> Any:
    """Recording is switched off and on inside of a call."""
    with pp.recording(False):
        assert pp.created_at(X + Y) is None
    yield X + Y, stack_here()


KINDS = [
    operators, augmented, subscripts, methods_and_properties, functions,
    after_a_return_on_the_same_line, lambdas_and_comprehensions, called_from_c,
    decorated, executed, generators_resumed_elsewhere, coroutines, threads,
    raised_in_the_host, in_a_finally_after_an_error, called_back_by_the_host,
    deep_recursion, class_bodies, under_a_trace_function, in_a_finaliser,
    patched_while_it_runs,
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_kind_of_call(variant: Variant, kind: Callable[[], Any]) -> None:
    for _ in range(3):
        for item in kind():
            check(variant, item)

# }}}


@pytest.mark.fuzz
def test_random_call_shapes(variant: Variant) -> None:
    count = 0
    thorough = hypothesis.settings.default.max_examples >= 1000  # type: ignore
    most = 10_000 if thorough or variant == DEFAULT else 1_000

    def leaf() -> None:
        nonlocal count
        count += 1
        way = count % 4
        if way == 0:
            made = X + Y, stack_here()
        elif way == 1:
            made = X[0], stack_here()
        elif way == 2:
            made = pt.sin(X), stack_here()
        else:
            made = X.T, stack_here()
        check(variant, made)

    seed = 0
    while count < most:
        seed += 1
        Shapes(seed, leaf).call(seed % 7)


# {{{ columns

class Expressions:
    """Random array expressions, as text."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def make(self, depth: int) -> str:
        pick = self.random.choice
        if depth == 0:
            return pick(["X", "Y", "é"])
        a, b = self.make(depth - 1), self.make(self.random.randrange(depth))
        return pick([
            f"{a} + {b}", f"{a}*{b}", f"({a}) - ({b})", f"({a} / {b})", f"-({a})",
            f"f({a})", f"pt.sin({a})", f"pt.maximum({a}, {b})", f"({a}).T",
            f"({a})[0:4, 0:2][:, 0:1]{self.method()} + {b}", f"({a})**2",
            f"(({a})\n  + {b})", f"pt.exp(\n    {a},\n)", f"('ü' and {a})",
        ])


    def method(self) -> str:
        return self.random.choice([".reshape((4, 1))", ""]) if HAS_METHODS else ""


def position_of(node: Any, text: list[str]) -> tuple[int, int, int, int]:
    """As a site has it: columns in characters rather than bytes."""
    def column(lineno: int, offset: int) -> int:
        return len(text[lineno - 1].encode()[:offset].decode())

    lineno, offset = node.lineno, node.col_offset
    named = getattr(node, "func", node)
    if isinstance(named, ast.Attribute) and named.end_lineno != named.lineno:
        # For the compiler it begins with the name, if that is on a later line.
        lineno = named.end_lineno
        offset = named.end_col_offset - len(named.attr)
    return (lineno, node.end_lineno, column(lineno, offset),
            column(node.end_lineno, node.end_col_offset))


@pytest.mark.fuzz
@pytest.mark.skipif(BEFORE_3_11, reason="columns come with Python 3.11")
def test_columns(variant: Variant) -> None:
    for seed in range(150):
        expression = Expressions(seed).make(seed % 4 + 1)
        source = f"def f(x): return x * 2\ndef g():\n  'ä'; return ({expression})\n"
        filename = f"<columns {seed}>"
        lines = source.splitlines()
        linecache.cache[filename] = (
            len(source), None, source.splitlines(True), filename)
        scope = {"X": X, "Y": Y, "é": Y, "pt": pt}
        exec(compile(source, filename, "exec"), scope)
        result = scope["g"]()  # type: ignore[operator]
        expected = {
            position_of(node, lines) for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Subscript | ast.Call)
            or (isinstance(node, ast.Attribute) and node.attr == "T")
        }
        found = set()
        for node in nodes_in_post_order(result):
            site = pp.created_at(node)
            frame = site.frames[0] if site is not None else None
            if frame is not None:
                assert frame.filename == filename
                found.add((frame.lineno, frame.end_lineno, frame.colno,
                           frame.end_colno))
        assert found <= expected, expression
        # All but what makes no array: calls of f, and f where it is not called.
        assert len(found) >= 0.5 * (len(expected) - 1), expression
        del linecache.cache[filename]

# }}}


# {{{ nothing is kept alive

class Local:
    pass


def test_locals_of_the_creating_frame_die(variant: Variant) -> None:
    def make() -> tuple[Any, weakref.ref[Local]]:
        local = Local()
        reference = weakref.ref(local)
        array = X + Y
        del local
        assert reference() is None, "the variable is gone, the frame still runs"
        local = Local()
        return array[0], weakref.ref(local)

    gc.disable()
    try:
        array, reference = make()
        assert reference() is None
    finally:
        gc.enable()
    assert pp.created_at(array) is not None


def test_arrays_die(variant: Variant) -> None:
    array = X + Y
    reference = weakref.ref(array)
    del array
    gc.collect()
    assert reference() is None


def test_executed_code_does_not_leak(
        variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(i: int) -> weakref.ref[Any]:
        scope: dict[str, Any] = {"X": X, "Y": Y}
        exec(f"def f():\n    return X + Y + {i}", scope)
        assert as_lines(pp.created_at(scope["f"]()))[0] == ("<string>", 2, "f")
        return weakref.ref(scope["f"].__code__)

    alive = [run(i) for i in range(50)]
    pp.disable()
    gc.collect()  # a function and its globals are a cycle
    call_tree.forget_dead_code()
    # What is dropped is no cycle.
    assert not any(code() for code in alive)
    # Nobody has to ask: what piles up is bounded.
    monkeypatch.setattr(call_tree, "_SWEEP_AFTER", 100)
    call_tree.forget_dead_code()
    switch_on(variant)
    alive = [run(i) for i in range(1000)]
    gc.collect()
    assert sum(code() is not None for code in alive) < 300


def test_one_site_for_each_way_to_come_here(variant: Variant) -> None:
    def make() -> Any:
        return X + Y

    one = [make() for _ in range(5)]
    other = [make() for _ in range(5)]
    assert len({pp.created_at(array) for array in one}) == 1
    callers_are_kept = variant.capture != "site"
    assert len({pp.created_at(array) for array in one + other}) == 1 + callers_are_kept

# }}}


# {{{ switching on and off

def test_profile_refuses_beside_another_profiler() -> None:
    def other(frame: object, event: str, arg: object) -> None:
        pass

    sys.setprofile(other)
    try:
        with pytest.raises(CaptureUnavailableError, match=r"another profiler.*stack"):
            pp.enable(capture="profile")
        assert sys.getprofile() is other
    finally:
        sys.setprofile(None)
    assert not pp.is_enabled()
    threading.setprofile(other)
    try:
        with pytest.raises(CaptureUnavailableError, match="another profiler"):
            pp.enable(capture="profile")
        assert threading.getprofile() is other
    finally:
        threading.setprofile(None)  # type: ignore[arg-type]


def test_profile_leaves_what_was_there() -> None:
    assert sys.getprofile() is None
    pp.enable(capture="profile")
    assert sys.getprofile() is not None
    pp.disable()
    assert sys.getprofile() is None
    assert threading.getprofile() is None

    def other(frame: object, event: str, arg: object) -> None:
        pass

    pp.enable(capture="profile")
    sys.setprofile(other)
    try:
        # Their profiler sees all calls now; sites are right nevertheless.
        made = X + Y, stack_here()
        check(Variant("profile", {}), made)
        with pytest.warns(pp.diagnostic.ProvenanceWarning, match="another profiler"):
            pp.disable()
        assert sys.getprofile() is other
    finally:
        sys.setprofile(None)


def test_profile_ends_in_threads_that_go_on() -> None:
    go, done, seen = threading.Event(), threading.Event(), []

    def work() -> None:
        go.wait()
        made = X + Y
        seen.append((pp.created_at(made), sys.getprofile()))
        done.set()

    pp.enable(capture="profile")
    thread = threading.Thread(target=work)
    thread.start()
    pp.disable()
    go.set()
    done.wait()
    thread.join()
    assert seen == [(None, None)]


def test_monitoring_refuses_before_3_12() -> None:
    if hasattr(sys, "monitoring"):
        pytest.skip("this Python has it")
    with pytest.raises(CaptureUnavailableError, match=r"needs Python 3\.12"):
        pp.enable(capture="monitoring")


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="needs sys.monitoring")
class TestMonitoring:
    def test_tool_identifiers(self) -> None:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined]
        free = [i for i in range(6) if monitoring.get_tool(i) is None]
        reserved = [monitoring.DEBUGGER_ID, monitoring.COVERAGE_ID,
                    monitoring.PROFILER_ID]
        taken: list[int] = []
        try:
            while True:
                try:
                    pp.enable(capture="monitoring")
                except CaptureUnavailableError as error:
                    assert "belong to" in str(error)
                    break
                ours, = (i for i in range(6)
                         if monitoring.get_tool(i) == "pytato_provenance")
                assert ours not in reserved
                check(Variant("monitoring", {}), (X + Y, stack_here()))
                pp.disable()
                assert monitoring.get_tool(ours) is None
                monitoring.use_tool_id(ours, "somebody else")
                taken.append(ours)
        finally:
            for tool in taken:
                monitoring.free_tool_id(tool)
        assert taken
        assert [i for i in range(6) if monitoring.get_tool(i) is None] == free

    def test_beside_other_tools(self) -> None:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined]
        tool = monitoring.COVERAGE_ID
        if monitoring.get_tool(tool) is not None:
            pytest.skip("coverage is running")
        lines: list[int] = []
        monitoring.use_tool_id(tool, "coverage of the test")
        try:
            monitoring.register_callback(
                tool, monitoring.events.LINE, lambda code, line: lines.append(line))
            monitoring.register_callback(
                tool, monitoring.events.PY_START,
                lambda code, offset: monitoring.DISABLE)
            monitoring.set_events(
                tool, monitoring.events.LINE | monitoring.events.PY_START)
            pp.enable(capture="monitoring")
            for _ in range(3):
                check(Variant("monitoring", {}), (X + Y, stack_here()))
                monitoring.restart_events()
            before = len(lines)
            pp.disable()
            assert len(lines) > before > 0
        finally:
            monitoring.set_events(tool, 0)
            monitoring.free_tool_id(tool)

    def test_only_the_host_is_monitored(self) -> None:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined]
        pp.enable(capture="monitoring")
        tool, = (i for i in range(6) if monitoring.get_tool(i) == "pytato_provenance")
        assert monitoring.get_events(tool) == 0
        own = TestMonitoring.test_only_the_host_is_monitored.__code__
        assert monitoring.get_local_events(tool, own) == 0
        code = pt.make_placeholder.__code__
        assert monitoring.get_local_events(tool, code) & monitoring.events.PY_START
        pp.disable()
        monitoring.use_tool_id(tool, "test")
        try:
            assert monitoring.get_local_events(tool, code) == 0
        finally:
            monitoring.free_tool_id(tool)


def test_options_are_checked() -> None:
    for name, options in [("stack", {"max_frames": 0}), ("stack", {"depth": 1}),
                          ("nothing", {}), ("site", {"max_frames": 2})]:
        with pytest.raises(pp.diagnostic.UsageError, match=name):
            make_strategy(name, **options)


def test_registry_changes_what_is_passed_over(
        variant: Variant, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pytato_provenance import frames
    monkeypatch.setattr(frames, "_registry", frames._Registry())
    frames.call_when_registry_changes(
        __import__("pytato_provenance.call_tree").call_tree._clear_caches)
    helper = tmp_path / "helper.py"
    helper.write_text("def add(x, y): return x + y\n")
    scope: dict[str, Any] = {}
    exec(compile(helper.read_text(), str(helper), "exec"), scope)

    def made() -> tuple[str, str]:
        site = pp.created_at(scope["add"](X, Y))
        assert site is not None and site.user_frame is not None
        return site.user_frame.filename, site.frames[-1].filename

    user, _ = made()
    assert user == str(helper)
    pp.register_library(helper)
    assert made()[0] == HERE
    pp.register_user(helper)
    assert made()[0] == str(helper)

# }}}
