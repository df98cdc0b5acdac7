"""The log of what is compiled: every stage, for the right regions and lines."""

from __future__ import annotations

import concurrent.futures
import gc
import inspect
import io
import itertools
import json
import threading
import weakref
from time import perf_counter
from typing import TYPE_CHECKING, Any

import loopy as lp
import numpy as np
import pytato as pt
import pytato.target.loopy
import pytest
from running import ROOT, python

import pytato_provenance as pp
from pytato_provenance import compile_log, precompile, region
from pytato_provenance._patching import left_behind
from pytato_provenance.compilation.events import ORIGINS, STAGES, Line
from pytato_provenance.compilation.names import kernel_name_from_regions
from pytato_provenance.diagnostic import (
    NotAnArrayError,
    ProvenanceWarning,
    UsageError,
)
from pytato_provenance.lowering import kernel_source, strip_annotations


if TYPE_CHECKING:
    from pathlib import Path

    from pytato_provenance.compilation.log import CompileEvents

pytestmark = [
    pytest.mark.filterwarnings("ignore:TranslationUnit.__call__ is uncached"),
    pytest.mark.filterwarnings("ignore:.*enforce_array_accesses"),
]

SIZE = 8
HAS_EXECUTABLES = hasattr(pytato.target.loopy, "BoundPyOpenCLExecutable")
IN_ORDER = ["pytato-preprocess", "generate", "loopy-preprocess", "schedule", "codegen",
            "build", "invoker", "enqueue"]


@pytest.fixture(autouse=True)
def nothing_stays(disabled_afterwards: None) -> None:
    """Recording is switched off after each test."""


def _input(name: str = "x") -> Any:
    return pt.make_placeholder(name=name, shape=(SIZE,), dtype=np.float64)


def _data() -> Any:
    return np.linspace(0, 1, SIZE)


def _line(function: Any, text: str) -> int:
    """The line of *function* in which *text* stands."""
    lines, first = inspect.getsourcelines(function)
    number, = [n for n, line in enumerate(lines, first) if text in line]
    return number


def _stages(events: CompileEvents) -> list[str]:
    return [event.stage for event in events]


def _regions(events: CompileEvents) -> set[frozenset[str]]:
    return {frozenset(event.regions) for event in events}


# {{{ three functions

class _Application:
    """Set-up, region and first call lie in three functions."""

    def set_up(self) -> None:
        self.x = _input()
        self.offset = pt.cosh(self.x)

    def build(self) -> None:
        with region("rhs"):
            self.inside = pt.sin(self.x) + self.offset
            with region("flux"):
                self.flux = pt.exp(self.x)
        self.outside = pt.cos(self.offset)
        self.mixed = pt.sinh(self.inside)

    def transform(self) -> None:
        self.programs = {
            name: pt.generate_loopy(expr).program
            for name, expr in (("inside", self.inside), ("outside", self.outside),
                               ("flux", self.flux), ("mixed", self.mixed))}
        self.programs = {
            name: lp.split_iname(program, "_pt_out_dim0", 4)
            for name, program in self.programs.items()}

    def first_call(self, queue: Any) -> None:
        for program in self.programs.values():
            program.executor(queue.context)(queue, x=_data())


STORED = {"inside": {"rhs"}, "outside": set[str](), "flux": {"rhs/flux"},
          "mixed": {"rhs"}}


def _run(application: _Application, queue: Any, when: str) -> CompileEvents:
    pp.enable()
    log = compile_log()
    if when == "all":
        with log:
            application.set_up()
            application.build()
            application.transform()
            application.first_call(queue)
        return log
    application.set_up()
    application.build()
    application.transform()
    # Long after the region was left, and in another function.
    gc.collect()
    with log:
        application.first_call(queue)
    return log


@pytest.mark.parametrize("when", ["all", "first call"])
def test_three_functions(queue: Any, when: str) -> None:
    log = _run(_Application(), queue, when)
    expected = IN_ORDER if when == "all" else IN_ORDER[2:]
    first = log[0].program or 0
    programs = dict(enumerate(STORED, first))
    for pattern, chosen in (
            ("rhs", {"inside", "flux", "mixed"}), ("rhs/flux", {"flux"}),
            ("rhs/*", {"flux"}), ("*", {"inside", "flux", "mixed"}),
            ("flux", set[str]())):
        selected = log.select(region=pattern)
        assert {programs[event.program] for event in selected} == chosen, pattern
        # Exact both ways.
        kept = {id(event) for event in selected}
        for event in log:
            assert (id(event) in kept) == (programs[event.program] in chosen)
    for number, name in programs.items():
        events = [event for event in log if event.program == number]
        assert [event.stage for event in events] == expected, name
        assert {frozenset(event.regions) for event in events} == {
            frozenset(STORED[name])}


def test_shares_and_lines(queue: Any) -> None:
    log = _run(_Application(), queue, "first call")
    build, set_up = _Application.build, _Application.set_up
    first = log[0].program or 0
    inside = next(event for event in log if event.program == first)
    # x, cosh, sin, +
    assert inside.nodes == 4
    assert inside.regions == {"rhs": pytest.approx(2 / 4)}
    filename = __file__
    assert inside.lines == {
        Line(filename, _line(_input, "make_placeholder")): pytest.approx(1 / 4),
        Line(filename, _line(set_up, "pt.cosh")): pytest.approx(1 / 4),
        Line(filename, _line(build, "pt.sin(")): pytest.approx(2 / 4)}
    for text, chosen in (("pt.exp", {first + 2}), ("pt.sin(", {first, first + 3}),
                         ("pt.sinh", {first + 3}), ("pt.cos(", {first + 1})):
        line = f"test_compile_log.py:{_line(build, text)}"
        assert {event.program for event in log.select(line=line)} == chosen
        assert {event.program for event in log.select(
            line=f"*/tests/{line}", region="*")} == (
                chosen if text in ("pt.exp", "pt.sin(") else set())
    assert not log.select(line=f"log.py:{_line(build, 'pt.exp')}")
    assert not log.select(line="test_compile_log.py:1")


def test_set_up_is_excluded(queue: Any) -> None:
    pp.enable()
    with compile_log() as log:
        x = _input()
        with region("rhs"):
            with region("tables", record=False):
                table = pt.tan(x)
            y = pt.sin(x)
        for expr in (table, y):
            pt.generate_loopy(expr)(queue, x=_data())
    assert _regions(log) == {frozenset(), frozenset({"rhs"})}
    assert len({event.program for event in log.select(region="*")}) == 1


def test_merged_arrays_count_for_both(queue: Any) -> None:
    pp.enable()
    x = _input()
    with region("rhs"):
        first = x + 1
    with region("limiter"):
        second = x + 1
    dag = pt.make_dict_of_named_arrays({"a": first, "b": second})
    merge = getattr(pt.transform, "deduplicate", pp.ProvenanceCopyMapper())
    dag = pp.through(merge)(dag)
    with compile_log() as log:
        pt.generate_loopy(dag)
    # x, and one sum.
    assert {event.nodes for event in log} == {2}
    assert _regions(log) == {frozenset({"rhs", "limiter"})}
    assert log[0].regions == {"rhs": pytest.approx(1 / 4),
                              "limiter": pytest.approx(1 / 4)}


def test_transformations_of_loopy_keep_the_program(queue: Any) -> None:
    pp.enable()
    with region("first"):
        first = pt.generate_loopy({"a": 2 * _input("x")}).program
    with region("second"):
        second = pt.generate_loopy({"b": 3 * _input("y")}).program
    first = lp.rename_iname(first, "a_dim0", "i")
    first = lp.split_iname(first, "i", 4, inner_tag="unr")
    first = lp.add_dtypes(first, {})
    first = lp.set_options(first, return_dict=True)
    first = first.with_kernel(first.default_entrypoint.tagged(frozenset()))
    kernel = second.default_entrypoint
    with compile_log() as log:
        first.executor(queue.context)(queue, x=_data())
        assert _regions(log) == {frozenset({"first"})}
        renamed = lp.rename_iname(first.default_entrypoint, "i_outer", "j")
        fused = lp.fuse_kernels([renamed, kernel])
        _, out = fused.executor(queue.context)(queue, x=_data(), y=_data())
    assert _regions(log[-6:]) == {frozenset({"first", "second"})}
    np.testing.assert_allclose(out["a"], 2 * _data())
    np.testing.assert_allclose(out["b"], 3 * _data())


@pytest.mark.parametrize("annotate", [False, "beside"])
def test_transformations_that_are_kept_on_disk(queue: Any, annotate: bool | str
                                               ) -> None:
    # As applications do: equal programs of two regions get one and the same kernel.
    @lp.memoize_on_disk
    def transform_of_test_compile_log(t_unit: Any) -> Any:
        return lp.split_iname(t_unit, "_pt_out_dim0", 4)

    pp.enable(annotate=annotate)
    unwatched = pt.generate_loopy(pt.tan(_input()) - 3).program
    programs: list[Any] = []
    for name in ("first", "second", "first"):
        with region(name):
            y = pt.tan(_input()) - 3
        program = transform_of_test_compile_log(pt.generate_loopy(y).program)
        programs.append(program)
        # And by hand, from loopy's own.
        programs.append(lp.linearize(lp.preprocess_program(program)))
    with compile_log() as log:
        for program in programs:
            length = len(log)
            program.executor(queue.context)(queue, x=_data())
            lp.generate_code_v2(program)
            assert len(log) > length
        found = [[*event.regions] for event in log if event.stage == "enqueue"]
        assert found == [["first"]] * 2 + [["second"]] * 2 + [["first"]] * 2
        length = len(log)
        transform_of_test_compile_log(unwatched).executor(queue.context)(
            queue, x=_data())
        assert _regions(log[length:]) <= {frozenset()}


@pytest.mark.parametrize("annotate", [False, "beside", "embed"])
def test_stages_called_by_hand(annotate: bool | str) -> None:
    pp.enable(annotate=annotate)
    with region("rhs"):
        y = pt.exp(_input()) + 3
    with compile_log() as log:
        program = pt.generate_loopy(y).program
        program = lp.preprocess_program(program)
        program = lp.linearize(program)
        # Done by then: no stage.
        lp.preprocess_program(program)
        lp.generate_code_v2(program)
    assert _stages(log) == [
        "pytato-preprocess", "generate", "loopy-preprocess", "schedule", "codegen"]
    assert _regions(log) == {frozenset({"rhs"})}
    assert len({event.program for event in log}) == 1
    assert {event.origin for event in log} <= set(ORIGINS)


def test_code_generation_does_all_by_itself() -> None:
    pp.enable()
    with region("rhs"):
        y = pt.exp(_input()) + 3.25
    program = pt.generate_loopy(y).program
    with compile_log() as log:
        lp.generate_code_v2(program)
    if log[-1].origin == "fresh":
        assert _stages(log) == ["loopy-preprocess", "schedule", "codegen"]
        codegen = log[-1]
        assert codegen.duration > codegen.seconds + log[0].seconds
    assert log[-1].stage == "codegen"
    assert _regions(log) == {frozenset({"rhs"})}

# }}}


# {{{ numbers

def test_events_add_up(queue: Any) -> None:
    pp.enable()
    start = perf_counter()
    with compile_log() as log:
        y = pt.sum(pt.sin(_input())) + 1
        pt.generate_loopy(y)(queue, x=_data())
    wall = perf_counter() - start
    assert 0 < log.seconds <= wall
    assert sum(log.by_line().values()) == pytest.approx(log.seconds)
    assert log.by_region() == {}
    for event in log:
        assert event.stage in STAGES and event.origin in ORIGINS
        assert 0 <= event.seconds <= event.duration
        assert start <= event.start <= event.start + event.duration <= start + wall
        assert event.kernel == "_pt_kernel"
        assert event.thread == threading.get_ident()
        assert event.error is None and event.count == 1
    assert all(event.nodes == 4 for event in log)
    # A reduction makes more of one statement.
    by_stage = {event.stage: event.instructions for event in log}
    assert by_stage["pytato-preprocess"] is None
    assert by_stage["generate"] < by_stage["codegen"] == by_stage["schedule"]


def test_divided_among_the_chosen(queue: Any) -> None:
    log = _run(_Application(), queue, "first call")
    everything = log.by_region()
    assert set(everything) == {"rhs", "rhs/flux"}
    # Inputs cost nothing: in the program of flux there is one operation.
    assert everything["rhs/flux"] == pytest.approx(sum(
        event.seconds for event in log.select(region="rhs/flux")))
    chosen = log.select(region="rhs/flux")
    assert chosen.by_region() == {"rhs/flux": pytest.approx(everything["rhs/flux"])}
    line = f"test_compile_log.py:{_line(_Application.build, 'pt.exp')}"
    assert chosen.by_line() == {line: pytest.approx(everything["rhs/flux"])}
    assert chosen.select(region="*").by_line() == chosen.by_line()

# }}}


# {{{ origins

SCRIPT = """\
import json, sys, warnings
warnings.simplefilter("ignore")
import pytato_provenance as pp
pp.mend_released_pytato()
import loopy as lp
import numpy as np
import pyopencl as cl
import pytato as pt
queue = cl.CommandQueue(cl.create_some_context(interactive=False))
pp.enable(annotate="beside" if "annotate" in sys.argv else False)
with pp.region("rhs"):
    x = pt.make_placeholder(name="x", shape=(8,), dtype=np.float64)
    bound = pt.generate_loopy(pt.sum(pt.sin(x)) + 1)
data = np.ones(8)
with pp.compile_log() as log:
    for _ in range(3):
        bound(queue, x=data)
    executor = bound.program.executor(queue.context)
    for _ in range(3):
        executor(queue, x=data)
print(json.dumps([(e.stage, e.origin, e.count, sorted(e.regions)) for e in log]))
"""


def _origins(cwd: Path, *arguments: str) -> list[tuple[str, str, int, list[str]]]:
    done = python(cwd, "script.py", *arguments, XDG_CACHE_HOME=str(cwd / "cache"),
                  POCL_CACHE_DIR=str(cwd / "pocl"))
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@pytest.mark.parametrize("arguments", [(), ("annotate",)])
def test_origins_across_two_processes(tmp_path: Path, arguments: tuple[str, ...]
                                      ) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    loopys = ["loopy-preprocess", "schedule", "codegen", "invoker"]
    order = ["loopy-preprocess", "schedule", "codegen", "build", "invoker", "enqueue"]

    def rebuilt(origin: str) -> list[Any]:
        return [[stage, origin if stage in loopys else "unknown", 1, ["rhs"]]
                for stage in order]

    kept = [["enqueue", "reused", 2, ["rhs"]]]
    # What was stored is not in memory: the second call reads it, and only then it is.
    assert _origins(tmp_path, *arguments) == [
        *rebuilt("fresh"), *rebuilt("disk"), *rebuilt("memory"), *rebuilt("memory"),
        *kept]
    # Tags or not, the keys are the same.
    assert _origins(tmp_path) == [
        *rebuilt("disk"), *rebuilt("memory"), *rebuilt("memory"), *rebuilt("memory"),
        *kept]


def test_caching_switched_off(queue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lp, "CACHING_ENABLED", False)
    with compile_log() as log:
        pt.generate_loopy(2 * _input())(queue, x=_data())
        pt.generate_loopy(2 * _input())(queue, x=_data())
    for event in log:
        assert event.origin == (
            "unknown" if event.stage in ("build", "enqueue") else "fresh")


class _FakeProgram:
    def __init__(self, told: object) -> None:
        if told is not None:
            self._build_duration_info = told


@pytest.mark.parametrize(("told", "origin"), [
    (("cache retrieval", True, 0.1), "disk"),
    (("source build resulting from a binary cache miss", False, 0.1), "fresh"),
    (("uncached source build (assuming cached by ICD)", False, 0.1), "unknown"),
    (("uncached source build (cache disabled by user)", False, 0.1), "unknown"),
    (("something new",), "unknown"), (None, "unknown"), (7, "unknown")])
def test_what_pyopencl_tells_of_its_own_cache(told: object, origin: str) -> None:
    from pytato_provenance.compilation.hooks import _origin_of_build
    assert _origin_of_build(_FakeProgram(told)) == origin

# }}}


# {{{ reuse

def test_bound_program_builds_at_each_call(queue: Any) -> None:
    bound = pt.generate_loopy(pt.sin(_input()))
    with compile_log() as log:
        for _ in range(2):
            bound(queue, x=_data())
    assert _stages(log) == 2 * IN_ORDER[2:]
    with pytest.warns(ProvenanceWarning, match="builds again"):
        done = precompile(bound, queue, x=_data())
    assert _stages(done) == IN_ORDER[2:]


def test_precompiled_executor(queue: Any) -> None:
    pp.enable()
    with region("rhs"):
        y = pt.exp(_input())
    executor = pt.generate_loopy(y).program.executor(queue.context)
    done = precompile(executor, queue, x=_data())
    assert _stages(done) == IN_ORDER[2:]
    with compile_log() as log:
        for _ in range(5):
            executor(queue, x=_data())
    event, = log
    assert (event.stage, event.origin, event.count, event.seconds) == (
        "enqueue", "reused", 5, 0)
    assert log.select(region="rhs")[0] is event


def test_executor_that_was_only_compiled(queue: Any) -> None:
    executor = pt.generate_loopy(pt.exp(_input())).program.executor(queue.context)
    with compile_log() as log:
        executor.translation_unit_info(executor.arg_to_dtype({"x": _data()}))
        assert _stages(log) == IN_ORDER[2:-1]
        executor(queue, x=_data())
        executor(queue, x=_data())
    assert [(event.stage, event.origin) for event in log[-2:]] == [
        ("enqueue", "unknown"), ("enqueue", "reused")]


@pytest.mark.skipif(not HAS_EXECUTABLES, reason="this host has no executables")
def test_precompiled_executable(queue: Any) -> None:
    import pyopencl.array as cla

    bound = pt.generate_loopy({"out": pt.exp(_input())}, options=lp.Options(
        no_numpy=True, return_dict=True))
    executable = bound.bind_to_context(queue.context)
    data = cla.to_device(queue, _data())
    assert _stages(precompile(executable, queue, x=data)) == IN_ORDER[2:]
    with compile_log() as log:
        executable(queue, x=data)
    assert [event.origin for event in log] == ["reused"]


@pytest.mark.parametrize("program", [None, 3, len, "x", lp.Options()])
def test_what_cannot_be_precompiled(program: Any) -> None:
    with pytest.raises(UsageError, match="precompile takes"):
        precompile(program)


def test_precompiling_what_fails(queue: Any) -> None:
    executor = pt.generate_loopy(pt.exp(_input())).program.executor(queue.context)
    with pytest.raises(lp.LoopyError):
        precompile(executor, queue)
    assert not left_behind()

# }}}


# {{{ array contexts

@pytest.fixture
def context(queue: Any) -> Any:
    arraycontext = pytest.importorskip("arraycontext")
    if not hasattr(arraycontext, "PytatoPyOpenCLArrayContext"):
        pytest.skip("this arraycontext has no lazy array context")

    class Context(arraycontext.PytatoPyOpenCLArrayContext):
        def transform_loopy_program(self, t_unit: Any) -> Any:
            return t_unit

    # PoCL crashes with shared virtual memory, which would be the default.
    from pyopencl.tools import ImmediateAllocator

    return Context(queue, ImmediateAllocator(queue))


def test_compiled_function(context: Any) -> None:
    pp.enable()

    def rhs(x: Any) -> Any:
        with region("rhs"):
            return 2 * context.np.sin(x)

    compiled = context.compile(rhs)
    x = context.from_numpy(_data())
    done = precompile(compiled, x)
    assert [stage for stage in _stages(done) if stage != "transform"] == IN_ORDER
    assert _regions(done) == {frozenset({"rhs"})}
    assert "transform_loopy_program" in [
        event.kernel for event in done if event.stage == "transform"]
    with compile_log() as log:
        for _ in range(3):
            result = compiled(x)
    assert [(event.origin, event.count) for event in log] == [("reused", 3)]
    np.testing.assert_allclose(context.to_numpy(result), 2 * np.sin(_data()))


def test_frozen_programs_are_reused_across_regions(context: Any) -> None:
    pp.enable()
    x, y = (context.from_numpy(_data()) for _ in range(2))
    with region("first"):
        first = 2 * x + 1
    with region("second"):
        second = 2 * y + 1
    with compile_log() as log:
        context.freeze(first)
        generated = len(log)
        context.freeze(second)
        context.freeze(second)
        context.freeze(first)
    assert _regions(log[:generated]) == {frozenset({"first"})}
    assert [(event.stage, event.origin, event.count, [*event.regions])
            for event in log[generated:]] == [
        ("enqueue", "reused", 2, ["second"]), ("enqueue", "reused", 1, ["first"])]
    assert len(log.select(region="second")) == 1

# }}}


# {{{ it changes nothing

@pytest.mark.parametrize("order", ["log first", "recording first"])
@pytest.mark.parametrize("closed", ["log first", "recording first"])
@pytest.mark.parametrize("annotate", [False, "beside", "embed"])
def test_put_back_in_any_order(queue: Any, order: str, closed: str,
                               annotate: bool | str) -> None:
    import loopy.codegen
    import pyopencl as cl
    from loopy.target.execution import ExecutorBase
    from loopy.target.pyopencl_execution import PyOpenCLExecutor
    from pytools.persistent_dict import WriteOncePersistentDict

    owners: list[Any] = [
        loopy, loopy.codegen, loopy.preprocess, loopy.schedule, loopy.LoopKernel,
        loopy.transform.fusion, cl.Program, pt, pt.target.loopy,
        pt.target.loopy.codegen, pt.target.loopy.LoopyPyOpenCLTarget, ExecutorBase,
        PyOpenCLExecutor,
        WriteOncePersistentDict, *WriteOncePersistentDict.__mro__[1:2]]
    before = [dict(vars(owner)) for owner in owners]
    log = compile_log()
    if order == "log first":
        log.__enter__()
        pp.enable(annotate=annotate)
    else:
        pp.enable(annotate=annotate)
        log.__enter__()
    pt.generate_loopy(2 * _input())(queue, x=_data())
    if closed == "log first":
        log.__exit__(None, None, None)
        pp.disable()
    else:
        pp.disable()
        assert not left_behind()
        length = len(log)
        pt.generate_loopy(2 * _input())(queue, x=_data())
        assert len(log) == length
        log.__exit__(None, None, None)
    assert _stages(log) == IN_ORDER
    assert not left_behind()
    for owner, known in zip(owners, before, strict=True):
        now = dict(vars(owner))
        assert {name for name in known if now.get(name) is not known[name]
                and name != "__warningregistry__"} == set()


def _everything(annotate: bool | str, logged: bool, queue: Any) -> tuple[Any, str]:
    if annotate:
        pp.enable(annotate=annotate)
    sources: list[str] = []
    with compile_log() if logged else region("no log"):
        x = _input()
        bound = pt.generate_loopy(pt.sum(pt.sin(x)) * x)
        _, (result,) = bound(queue, x=_data())
        executor = bound.program.executor(queue.context)
        sources.append(executor.get_code(executor.entrypoint))
    if annotate:
        sources[0] = strip_annotations(sources[0])
        assert strip_annotations(kernel_source(executor)).strip() == sources[0].strip()
    pp.disable()
    return result, sources[0]


def test_log_and_annotation_change_neither_results_nor_code(queue: Any) -> None:
    expected, code = _everything(False, False, queue)
    for annotate, logged in itertools.product(
            (False, "beside", "embed"), (True, False)):
        result, text = _everything(annotate, logged, queue)
        assert (result == expected).all()
        assert text == code, (annotate, logged)


@pytest.mark.parametrize("annotate", ["beside", "embed"])
def test_texts_for_readers_are_no_events(queue: Any, annotate: str) -> None:
    pp.enable(annotate=annotate)
    bound = pt.generate_loopy(pt.sum(pt.exp(_input())))
    with compile_log() as log:
        kernel_source(bound)
        assert not log
        bound(queue, x=_data())
        length = len(log)
        kernel_source(bound)
        assert len(log) == length
    assert _stages(log) == IN_ORDER[2:]


def test_other_builds_are_no_events(queue: Any) -> None:
    import pyopencl as cl
    import pyopencl.array as cla

    with compile_log() as log:
        cl.Program(queue.context, "kernel void f() {}").build()
        # Not a reduction: PoCL cannot include its header from a path with a space.
        (cla.to_device(queue, _data()) + 1).get()
    assert not log
    assert str(log) == "nothing was compiled"


def test_holds_no_arrays(queue: Any) -> None:
    class Watched(np.ndarray):
        pass

    def build() -> tuple[Any, ...]:
        # Of a leaf of the program: nodes of the released host take no weak references.
        data = _data().view(Watched)
        y = pt.exp(pt.make_data_wrapper(data)) + _input()
        pt.generate_loopy(y)(queue, x=_data())
        return weakref.ref(data), len(log)

    pp.enable()
    with region("rhs"), compile_log() as log:
        watched, length = build()
        assert length == len(IN_ORDER)
        gc.collect()
        assert watched() is None


def test_errors_are_the_hosts(queue: Any) -> None:
    import pyopencl as cl

    kernel = lp.make_kernel(
        "{[i]: 0<=i<8}", "out[i] = 2*i", lang_version=lp.MOST_RECENT_LANGUAGE_VERSION,
        target=lp.PyOpenCLTarget(), preambles=[("0", "this is no C\n")])
    kernel = lp.add_and_infer_dtypes(kernel, {"out": np.float64})
    with compile_log() as log, pytest.raises(cl.RuntimeError):
        kernel.executor(queue.context)(queue)
    assert [event.stage for event in log] == IN_ORDER[2:6]
    assert log[-1].error == "RuntimeError" and log[-1].program is None
    assert "failed: RuntimeError" in log.table()
    with compile_log() as log:
        pt.generate_loopy(2 * _input())(queue, x=_data())
    assert _stages(log) == IN_ORDER

# }}}


# {{{ logs

def test_threads(queue: Any) -> None:
    pp.enable()
    names = [f"thread {number}" for number in range(4)]
    functions = [pt.sin, pt.cos, pt.tan, pt.exp]

    def work(name: str, function: Any) -> int:
        with region(name):
            y = function(_input()) * 7
        pt.generate_loopy(y)(queue, x=_data())
        return threading.get_ident()

    with compile_log() as log, concurrent.futures.ThreadPoolExecutor(4) as pool:
        threads = list(pool.map(work, names, functions))
    for name, thread in zip(names, threads, strict=True):
        selected = log.select(region=name)
        assert _stages(selected) == IN_ORDER
        assert {event.thread for event in selected} == {thread}
        assert _regions(selected) == {frozenset({name})}


def test_nested_logs(queue: Any) -> None:
    with compile_log() as outer:
        pt.generate_loopy(2 * _input())
        with compile_log() as inner:
            pt.generate_loopy(3 * _input())
        pt.generate_loopy(4 * _input())
    assert len(outer) == 6 and list(inner) == list(outer[2:4])
    with outer, outer:
        pt.generate_loopy(5 * _input())
    assert len(outer) == 8
    assert not left_behind()


def test_transforms_are_stages() -> None:
    pp.enable()
    with region("rhs"):
        y = 2 * _input()
    mapper = pp.ProvenanceCopyMapper()

    def double(dag: Any) -> Any:
        return mapper(dag) * 2

    with compile_log() as log:
        pp.through(double)(y)
        pp.audit(mapper, y)
    assert [(event.stage, event.kernel.rpartition(".")[2], event.nodes)
            for event in log] == [
        ("transform", "double", 2), ("transform", "ProvenanceCopyMapper", 2)]
    assert _regions(log) == {frozenset({"rhs"})}


def test_without_recording_there_are_stages_only(queue: Any) -> None:
    with region("rhs"), compile_log() as log:
        pt.generate_loopy(2 * _input())(queue, x=_data())
    assert _stages(log) == IN_ORDER
    assert all(event.nodes == 2 and not event.regions and not event.lines
               for event in log)


@pytest.mark.parametrize("choice", [
    {"region": ""}, {"region": 3}, {"line": "heat.py"}, {"line": "heat.py:"},
    {"line": ":3"}, {"line": 3}, {"line": "heat.py:x"}, {"stage": "linking"}])
def test_selecting_nothing_sensible(choice: Any) -> None:
    with pytest.raises(UsageError, match=next(iter(choice))):
        compile_log().select(**choice)

# }}}


# {{{ output

HOSTILE = 'a\n"<script>\x1b[31m\udc80‮/*'


def _hostile() -> Any:
    with region(HOSTILE):
        return pt.exp(_input()) + 1


@pytest.fixture
def hostile_log(queue: Any) -> CompileEvents:
    pp.enable()
    y = _hostile()
    with compile_log() as log:
        bound = pt.generate_loopy(y)
        executor = bound.program.executor(queue.context)
        for _ in range(3):
            executor(queue, x=_data())
    return log


def test_table(hostile_log: CompileEvents, tmp_path: Path) -> None:
    text = hostile_log.table()
    assert str(hostile_log) == text
    lines = text.split("\n")
    assert all(line.isprintable() for line in lines)
    for title in STAGES.values():
        if title != "transform":
            assert sum(line.startswith(title + "  ") for line in lines) == 1
    assert any("reused x2" in line for line in lines)
    assert any(line.startswith("by region") for line in lines)
    number = _line(_hostile, "pt.exp(")
    assert any(f"test_compile_log.py:{number} " in line for line in lines)
    hostile_log.write_text(tmp_path / "log.txt")
    assert (tmp_path / "log.txt").read_text(encoding="utf-8") == text + "\n"
    file = io.StringIO()
    hostile_log.write_text(file, region="no such region")
    assert file.getvalue() == "nothing was compiled\n"


def test_json_lines(hostile_log: CompileEvents, tmp_path: Path) -> None:
    hostile_log.write_jsonl(str(tmp_path / "log.jsonl"))
    text = (tmp_path / "log.jsonl").read_text(encoding="ascii")
    events = [json.loads(line) for line in text.splitlines()]
    assert len(events) == len(hostile_log)
    for data, event in zip(events, hostile_log, strict=True):
        assert data["stage"] == event.stage and data["origin"] == event.origin
        assert data["regions"] == {HOSTILE: pytest.approx(event.regions[HOSTILE])}
        assert data["start"] >= 0
        assert sum(line["share"] for line in data["lines"]) == pytest.approx(1)
    assert __file__ not in text
    file = io.StringIO()
    hostile_log.write_jsonl(file, absolute_paths=True, region="*")
    assert __file__ in file.getvalue()


def test_trace(hostile_log: CompileEvents, tmp_path: Path) -> None:
    hostile_log.write_trace(tmp_path / "trace.json")
    text = (tmp_path / "trace.json").read_text(encoding="utf-8")
    assert __file__ not in text and "\\udc80" not in text.replace("\\\\", "")
    trace = json.loads(text)
    slices = [item for item in trace["traceEvents"] if item["ph"] == "X"]
    assert len(slices) == len(IN_ORDER)
    assert {item["ph"] for item in trace["traceEvents"]} == {"X", "M", "i"}
    for item in slices:
        assert item["dur"] >= 0 and item["ts"] >= 0
        assert isinstance(item["pid"], int) and isinstance(item["tid"], int)
    # On one track a slice lies within another or beside it.
    for first, second in itertools.combinations(
            sorted(slices, key=lambda item: (item["ts"], -item["dur"])), 2):
        end = first["ts"] + first["dur"]
        assert second["ts"] >= end - 0.01 or second["ts"] + second["dur"] <= end + 0.01


def test_slices_and_representation(hostile_log: CompileEvents) -> None:
    assert hostile_log[-1] is list(hostile_log)[-1]
    assert [*hostile_log[1:3]] == list(hostile_log)[1:3]
    assert f"{len(hostile_log)} events" in repr(hostile_log)
    assert str(Line("/home/somebody/heat.py", 42)) == "heat.py:42"

# }}}


def test_example(tmp_path: Path) -> None:
    done = python(tmp_path, str(ROOT / "examples" / "regions.py"),
                  XDG_CACHE_HOME=str(tmp_path / "cache"),
                  POCL_CACHE_DIR=str(tmp_path / "pocl"))
    assert done.returncode == 0, done.stderr.decode()
    assert b"by region" in done.stdout and b"reused x200" in done.stdout


# {{{ names

def test_names_from_regions() -> None:
    pp.enable()
    x = _input()
    assert kernel_name_from_regions(x) == "_pt_kernel"
    with region("step/rhs"):
        rhs = 2 * x
        with region("flux"):
            flux = 3 * x
    with region("limiter"):
        limiter = 4 * x
    with region("7 */ int"):
        odd = 5 * x
    with region("名前"):
        named = 6 * x
    for outputs, name in (
            (flux, "step_rhs_flux_kernel"), (rhs + flux, "step_rhs_kernel"),
            ({"a": rhs, "b": flux}, "step_rhs_kernel"), (rhs + limiter, "_pt_kernel"),
            (odd, "_7_int_kernel"), (named, "_pt_kernel")):
        assert kernel_name_from_regions(outputs) == name
    dag = pt.make_dict_of_named_arrays({"a": flux})
    assert kernel_name_from_regions(dag, "mine") == "step_rhs_flux_kernel"
    with region("x" * 500):
        assert len(kernel_name_from_regions(2 * x)) < 80
    with pytest.raises(NotAnArrayError):
        kernel_name_from_regions(3)


def test_named_kernel(queue: Any) -> None:
    if "function_name" not in inspect.signature(pt.generate_loopy).parameters:
        pytest.skip("this host does not let kernels be named")
    pp.enable()
    with region("if/else"):
        y = pt.exp(_input())
    with compile_log() as log:
        bound = pt.generate_loopy(y, function_name=kernel_name_from_regions(y))
        bound(queue, x=_data())
    assert {event.kernel for event in log} == {"if_else_kernel"}

# }}}
