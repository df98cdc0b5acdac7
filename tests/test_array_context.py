"""Array contexts: lines, kernels, data that is frozen, and what unwrapping restores."""

from __future__ import annotations

import ast
import gc
import inspect
import threading
import warnings
import weakref
from typing import TYPE_CHECKING, Any

import pytest


arraycontext = pytest.importorskip("arraycontext")

import contexts  # noqa: E402
import loopy as lp  # noqa: E402
import numpy as np  # noqa: E402
import pytato as pt  # noqa: E402
from contexts import (  # noqa: E402
    CONTEXTS,
    IS_LAZY_LIBRARY,
    here,
    leaves,
    line_of,
    made_at,
)
from euler.state import ConservedVars  # noqa: E402
from pytools import obj_array  # noqa: E402

import pytato_provenance as pp  # noqa: E402
from pytato_provenance import frames, lowering  # noqa: E402
from pytato_provenance.diagnostic import (  # noqa: E402
    ProvenanceLostError,
    ProvenanceWarning,
    UsageError,
)
from pytato_provenance.new_contexts import wrap_new_array_contexts  # noqa: E402
from pytato_provenance.testing import assert_pristine  # noqa: E402


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

needs_lazy_library = pytest.mark.skipif(
    not IS_LAZY_LIBRARY, reason="the installed arraycontext has no lazy context")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What the hosts say about programs that nobody transforms."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", ProvenanceWarning)
        yield


@pytest.fixture(params=list(CONTEXTS))
def plain_actx(request: pytest.FixtureRequest, queue: Any) -> Iterator[Any]:
    """A context of each kind, not wrapped."""
    yield CONTEXTS[request.param](queue)
    pp.disable()


@pytest.fixture
def actx(plain_actx: Any) -> Any:
    """A context of each kind, wrapped."""
    return pp.wrap_array_context(plain_actx)


@pytest.fixture
def cl_actx(queue: Any) -> Iterator[Any]:
    """The context that generates OpenCL, wrapped."""
    yield pp.wrap_array_context(contexts.plain(queue))
    pp.disable()


def state(actx: Any) -> ConservedVars:
    x = np.linspace(1, 2, 12)
    return actx.from_numpy(ConservedVars(
        mass=x, energy=3 * x, momentum=obj_array.new_1d([x, -x])))


# {{{ lines

def from_numpy(actx: Any, u: Any) -> Any:
    return actx.from_numpy(np.arange(4.0)), here()


def from_numpy_container(actx: Any, u: Any) -> Any:
    return actx.from_numpy(ConservedVars(np.ones(3), np.ones(3), np.ones(3))), here()


def zeros(actx: Any, u: Any) -> Any:
    make = actx.np.zeros if hasattr(actx.np, "zeros") else actx.zeros
    return make((4, 3), np.float64), here()


def sine(actx: Any, u: Any) -> Any:
    return actx.np.sin(u.mass), here()


def sine_of_container(actx: Any, u: Any) -> Any:
    return actx.np.sin(u), here()


def where(actx: Any, u: Any) -> Any:
    return actx.np.where(actx.np.greater(u.mass, 1), u.mass, u.energy), here()


def concatenate(actx: Any, u: Any) -> Any:
    return actx.np.concatenate([u.mass, u.energy]), here()


def stack(actx: Any, u: Any) -> Any:
    return actx.np.stack([u.mass, u.energy]), here()


def reshape(actx: Any, u: Any) -> Any:
    return actx.np.reshape(u.mass, (3, 4)), here()


def total(actx: Any, u: Any) -> Any:
    return actx.np.sum(u.mass), here()


def einsum(actx: Any, u: Any) -> Any:
    return actx.einsum("i,i->i", u.mass, u.energy), here()


def operator(actx: Any, u: Any) -> Any:
    return 2 * u.mass, here()


def index(actx: Any, u: Any) -> Any:
    return u.mass[2:5], here()


def container_arithmetic(actx: Any, u: Any) -> Any:
    return 2 * (u + u), here()


def container_of_objects(actx: Any, u: Any) -> Any:
    return u.momentum * u.momentum, here()


def numpys_outer(actx: Any, u: Any) -> Any:
    return np.outer(u.momentum, u.momentum), here()


def thaw(actx: Any, u: Any) -> Any:
    frozen = leaves(u.mass)[0].data
    return actx.thaw(frozen), here()


def in_a_helper_layer(actx: Any, u: Any) -> Any:
    lines = []

    def plus_one(ary: Any) -> Any:
        lines.append(here()); return ary + 1  # noqa: E702

    return arraycontext.rec_map_array_container(plus_one, u), lines[0]


WAYS: list[Callable[[Any, Any], Any]] = [
    from_numpy, from_numpy_container, zeros, sine, sine_of_container, where,
    concatenate, stack, reshape, total, einsum, operator, index, container_arithmetic,
    container_of_objects, numpys_outer, thaw, in_a_helper_layer]


@pytest.mark.parametrize("way", WAYS)
def test_an_array_has_the_applications_line(actx: Any, way: Any) -> None:
    made, line = way(actx, state(actx))
    arrays = leaves(made)
    assert arrays
    for array in arrays:
        assert isinstance(array, pt.Array)
        assert made_at(array) == line


def test_what_is_tagged_keeps_its_line(actx: Any) -> None:
    u = state(actx)
    product, line = u.mass * 2, here()
    tagged = actx.tag(arraycontext.CommonSubexpressionTag(), product)
    assert made_at(tagged) == line


def test_results_of_a_loopy_kernel_have_the_line_of_the_call(cl_actx: Any) -> None:
    doubling = lp.make_kernel(
        "{[i]: 0<=i<12}", "y[i] = 2*x[i]",
        [lp.GlobalArg("x", np.float64, shape=(12,)),
         lp.GlobalArg("y", np.float64, shape=(12,))],
        name="doubling", options=lp.Options(return_dict=True),
        lang_version=(2018, 2))
    u = state(cl_actx)
    results, line = cl_actx.call_loopy(doubling, x=u.mass), here()
    assert made_at(results["y"]) == line
    assert np.array_equal(cl_actx.to_numpy(results["y"]), 2 * np.linspace(1, 2, 12))


@needs_lazy_library
def test_an_outlined_function_has_its_own_lines(actx: Any) -> None:
    lines = []

    def square(x: Any) -> Any:
        lines.append(here()); return x * x  # noqa: E702

    result, line = actx.outline(square)(state(actx).mass), here()
    body = pt.make_dict_of_named_arrays({"result": result})["result"].expr
    assert made_at(result) in (line, lines[0])
    square_node, = body.call.function.returns.values()
    assert made_at(square_node) == lines[0]


@needs_lazy_library
def test_a_sparse_product_has_the_line_of_the_call(cl_actx: Any) -> None:
    values = cl_actx.from_numpy(np.ones(12))
    columns = cl_actx.from_numpy(np.arange(12, dtype=np.int32))
    starts = cl_actx.from_numpy(np.arange(13, dtype=np.int32))
    matrix = cl_actx.make_csr_matrix((12, 12), values, columns, starts)
    product, line = matrix @ state(cl_actx), here()
    for array in leaves(product):
        assert made_at(array) == line
    assert np.allclose(cl_actx.to_numpy(product).mass, np.linspace(1, 2, 12))


def test_another_thread(actx: Any) -> None:
    made: list[Any] = []
    u = state(actx)

    def work() -> None:
        made.append((actx.np.sin(u.mass), here()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    array, line = made[0]
    assert made_at(array) == line


def test_a_scope_in_which_nothing_is_recorded(actx: Any) -> None:
    with pp.recording(False):
        u = state(actx)
        assert pp.created_at(u.mass) is None
        assert pp.created_at(actx.np.sin(u.mass)) is None
        compiled = actx.compile(lambda x: x + 1)
        assert pp.created_at(compiled(u.mass)) is None
        assert pp.created_at(actx.thaw(actx.freeze(u.mass + 1))) is None

# }}}


# {{{ identity, and taking it back

def snapshot(actx: Any) -> dict[str, Any]:
    return dict(vars(actx))


def test_wrapping_keeps_identity_and_class_checks(plain_actx: Any) -> None:
    cls = type(plain_actx)
    attributes = snapshot(plain_actx)
    assert pp.wrap_array_context(plain_actx) is plain_actx
    assert type(plain_actx) is not cls
    assert isinstance(plain_actx, cls)
    assert isinstance(plain_actx, arraycontext.ArrayContext)
    for name in ("__name__", "__qualname__", "__module__"):
        assert getattr(type(plain_actx), name) == getattr(cls, name)
    assert snapshot(plain_actx) == attributes
    assert pp.is_enabled()

    recording = type(plain_actx)
    pp.wrap_array_context(plain_actx)
    assert type(plain_actx) is recording


@pytest.mark.parametrize("restore", ["unwrap", "disable"])
def test_class_and_instance_are_restored(plain_actx: Any, restore: str) -> None:
    cls = type(plain_actx)
    attributes = snapshot(plain_actx)
    class_attributes = dict(vars(cls))
    pp.wrap_array_context(plain_actx)
    u = state(plain_actx)
    plain_actx.to_numpy(u + u)
    if restore == "unwrap":
        assert pp.unwrap_array_context(plain_actx) is plain_actx
    else:
        pp.disable()
    assert type(plain_actx) is cls
    assert dict(vars(cls)) == class_attributes
    # What the host remembers by itself is there without us, too.
    gained = {name for name in vars(plain_actx) if name not in attributes}
    assert all(name.startswith("_memoize_dic_") for name in gained)
    assert all(vars(plain_actx)[name] is value for name, value in attributes.items())
    assert not pp.is_enabled()
    assert_pristine()
    assert pp.created_at(plain_actx.np.sin(u.mass)) is None


def test_unwrapping_leaves_recording_on_that_somebody_else_switched_on(
        plain_actx: Any) -> None:
    pp.enable()
    pp.wrap_array_context(plain_actx)
    pp.unwrap_array_context(plain_actx)
    assert pp.is_enabled()


def test_unwrapping_leaves_recording_on_that_somebody_switched_on_since(
        plain_actx: Any) -> None:
    pp.wrap_array_context(plain_actx)
    pp.enable()
    pp.unwrap_array_context(plain_actx)
    assert pp.is_enabled()


def test_recording_stays_on_until_the_last_context_is_unwrapped(queue: Any) -> None:
    first, second = contexts.plain(queue), contexts.plain(queue)
    pp.wrap_array_context(first)
    pp.wrap_array_context(second)
    pp.unwrap_array_context(first)
    assert pp.is_enabled()
    pp.unwrap_array_context(second)
    assert not pp.is_enabled()


def test_unwrapping_what_is_not_wrapped(plain_actx: Any) -> None:
    cls = type(plain_actx)
    assert pp.unwrap_array_context(plain_actx) is plain_actx
    assert type(plain_actx) is cls


def test_clones_are_wrapped_and_restored(plain_actx: Any) -> None:
    cls = type(plain_actx)
    pp.wrap_array_context(plain_actx)
    clone = plain_actx.clone()
    assert clone is not plain_actx
    assert isinstance(clone, cls)
    assert type(clone) is not cls
    pp.unwrap_array_context(plain_actx)
    assert type(clone) is not cls
    assert pp.is_enabled()
    pp.disable()
    assert type(clone) is cls


def test_a_clone_of_another_class_is_wrapped(queue: Any) -> None:
    base = contexts.lazy_class()

    class Cloning(base):
        def clone(self) -> Any:
            return contexts.new(base, queue)

    actx = pp.wrap_array_context(contexts.new(Cloning, queue))
    clone = actx.clone()
    assert type(clone) is not base
    array, line = clone.from_numpy(np.ones(3)), here()
    assert made_at(array) == line
    pp.disable()
    assert type(clone) is base


def test_a_wrapped_context_is_not_held(queue: Any) -> None:
    actx = pp.wrap_array_context(contexts.plain(queue))
    cls = weakref.ref(type(actx))
    actx.to_numpy(actx.from_numpy(np.ones(3)) + 1)
    held = weakref.ref(actx)
    del actx
    gc.collect()
    assert held() is None
    pp.disable()
    gc.collect()
    assert cls() is None


@pytest.mark.parametrize("thing", [3, None, object(), np.ones(3)])
def test_what_is_no_array_context(thing: Any) -> None:
    for function in (pp.wrap_array_context, pp.unwrap_array_context):
        with pytest.raises(UsageError, match="an array context is needed"):
            function(thing)
    with pytest.raises(UsageError, match="class"):
        pp.provenance_array_context(thing)
    assert not pp.is_enabled()


def test_class_and_context_mistaken_for_each_other(queue: Any) -> None:
    with pytest.raises(UsageError, match="provenance_array_context"):
        pp.wrap_array_context(contexts.lazy_class())
    with pytest.raises(UsageError, match="wrap_array_context"):
        pp.provenance_array_context(contexts.plain(queue))
    with pytest.raises(UsageError, match="not a class of array contexts"):
        pp.provenance_array_context(int)


def test_an_eager_context(queue: Any) -> None:
    eager = arraycontext.PyOpenCLArrayContext(queue)
    cls = type(eager)
    with pytest.raises(UsageError, match="nothing to record"):
        pp.wrap_array_context(eager)
    with pytest.raises(UsageError, match="nothing to record"):
        pp.provenance_array_context(cls)
    assert type(eager) is cls
    assert not pp.is_enabled()


def test_an_eager_context_of_another_kind(queue: Any) -> None:
    class OnNumpy(contexts.lazy_class()):
        array_types = (np.ndarray,)

    actx = contexts.new(OnNumpy, queue)
    actx.array_types = (np.ndarray,)
    with pytest.raises(UsageError, match="nothing to record"):
        pp.wrap_array_context(actx)
    assert type(actx) is OnNumpy


def test_bad_options_change_nothing(plain_actx: Any) -> None:
    cls = type(plain_actx)
    with pytest.raises(UsageError):
        pp.wrap_array_context(plain_actx, annotate="sideways")
    with pytest.raises(UsageError):
        pp.wrap_array_context(plain_actx, audit="loudly")
    assert type(plain_actx) is cls
    assert not pp.is_enabled()

# }}}


# {{{ classes

@pytest.fixture
def disabled() -> Iterator[None]:
    yield
    pp.disable()


@pytest.mark.usefixtures("disabled")
def test_a_class_of_contexts_that_record(queue: Any) -> None:
    cls = contexts.lazy_class()
    recording = pp.provenance_array_context(cls)
    assert issubclass(recording, cls)
    assert recording is not cls
    assert pp.provenance_array_context(cls) is recording
    assert pp.provenance_array_context(recording) is recording

    actx = contexts.new(recording, queue)
    array, line = actx.np.sin(actx.from_numpy(np.ones(3))), here()
    assert made_at(array) == line
    assert type(actx.clone()) is recording

    pp.disable()
    assert type(actx) is recording
    array = actx.np.sin(actx.from_numpy(np.ones(3)))
    assert pp.created_at(array) is None
    assert type(actx.clone()) is recording
    assert np.allclose(actx.to_numpy(array + 1), np.sin(1) + 1)
    assert not pp.is_enabled()

    assert type(pp.unwrap_array_context(actx)) is cls


@pytest.mark.usefixtures("disabled")
def test_a_users_subclass_of_such_a_class(queue: Any) -> None:
    registered = []

    class Base(contexts.lazy_class()):
        def __init_subclass__(cls, **kwargs: Any) -> None:
            registered.append(kwargs.get("key"))
            super().__init_subclass__()

    class Mine(pp.provenance_array_context(Base), key="mine"):
        def transform_dag(self, dag: Any) -> Any:
            seen.append(dag)
            return super().transform_dag(dag)

    seen: list[Any] = []
    assert registered[-1] == "mine"
    actx = contexts.new(Mine, queue)
    cls = type(actx)
    pp.wrap_array_context(actx)
    assert type(actx) is cls
    assert actx.to_numpy(actx.from_numpy(np.ones(3)) + 1)[0] == 2
    assert len(seen) == 1
    pp.unwrap_array_context(actx)
    assert type(actx) is cls


@pytest.mark.usefixtures("disabled")
def test_what_is_abstract_stays_abstract() -> None:
    class Unfinished(arraycontext.ArrayContext):
        def freeze_and_thaw(self, array: Any) -> Any:
            return self.thaw(self.freeze(array))

    libraries = frames._registry._libraries
    files = libraries.files
    recording = pp.provenance_array_context(Unfinished)
    # Its module implements a context: this file. Not for the other tests.
    libraries.files = files
    frames._registry.version += 1
    assert recording.__abstractmethods__ == Unfinished.__abstractmethods__
    with pytest.raises(TypeError, match="abstract"):
        recording()
    for name in ("clone", "compile", "transform_dag", "transform_loopy_program"):
        assert hasattr(recording, name) == hasattr(Unfinished, name)

# }}}


# {{{ compiled functions

def twice_plus(x: Any, y: Any) -> Any:
    return 2 * x + y


SECOND_LINE = inspect.getsourcelines(twice_plus)[1] + 1


def program_called(book: lowering.Ledger, name: str) -> Any:
    found = [program for entry in book.entries for program in entry.programs
             if program.default_entrypoint.name == name]
    assert len(found) == 1, [p.default_entrypoint.name for e in book.entries
                             for p in e.programs]
    return found[0]


def test_a_compiled_functions_kernel_is_annotated_and_in_a_region(cl_actx: Any) -> None:
    u = state(cl_actx)
    with lowering.Ledger() as book:
        compiled = cl_actx.compile(twice_plus)
        result, line = compiled(u.mass, u.energy), here()
    program = program_called(book, "twice_plus")
    assert made_at(result) == line
    assert np.allclose(cl_actx.to_numpy(result), 5 * np.linspace(1, 2, 12))

    found = lowering.contributors(program)
    stored = [sites for name, sites in found.statements.items()
              if name not in found.derived]
    assert stored
    for sites in stored:
        for site in sites:
            assert line_of(site) == (__file__, SECOND_LINE, "twice_plus")
            assert site.region == "twice_plus"
    # The arguments stand for what the call passes.
    inputs = [sites for name, sites in found.arguments.items() if "in_" in name]
    assert len(inputs) == 2
    for site, in inputs:
        assert line_of(site) == line
        assert site.region is None

    text = lowering.kernel_source(program)
    assert f":{SECOND_LINE} in twice_plus" in text


def test_a_compiled_function_of_containers(actx: Any) -> None:
    u = state(actx)
    compiled = actx.compile(twice_plus)
    result, line = compiled(u, u), here()
    for array in leaves(result):
        assert made_at(array) == line
    assert np.allclose(actx.to_numpy(result).energy, 9 * np.linspace(1, 2, 12))


def test_a_region_that_the_program_opens_is_within_the_functions(cl_actx: Any) -> None:
    made = []

    def rhs(x: Any) -> Any:
        with pp.region("flux"):
            made.append(x * x)
        return made[0] + 1

    cl_actx.compile(rhs)(state(cl_actx).mass)
    assert pp.created_at(made[0]).region == "rhs/flux"


@pytest.mark.parametrize("kind", ["lambda", "partial", "method", "object"])
def test_functions_of_every_kind_compile(actx: Any, kind: str) -> None:
    import functools

    class Increment:
        def method(self, x: Any) -> Any:
            return x + 1

        def __call__(self, x: Any) -> Any:
            return x + 1

    function: Any = {
        "lambda": lambda x: x + 1,
        "partial": functools.partial(lambda y, x: x + y, 1),
        "method": Increment().method,
        "object": Increment(),
    }[kind]
    u = state(actx)
    result = actx.compile(function)(u.mass)
    assert np.allclose(actx.to_numpy(result), np.linspace(2, 3, 12))


@needs_lazy_library
def test_the_hosts_callback_gets_the_function_itself(queue: Any) -> None:
    from pyopencl.tools import ImmediateAllocator
    called = []
    actx = arraycontext.PytatoPyOpenCLArrayContext(
        queue, allocator=ImmediateAllocator(queue),
        compile_trace_callback=lambda what, stage, ir: called.append((what, stage)))
    callback = vars(actx)["_compile_trace_callback"]
    pp.wrap_array_context(actx)
    actx.compile(twice_plus)(1.0, state(actx).mass)
    actx.freeze(state(actx).mass + 1)
    pp.disable()
    assert {what for what, _ in called} == {twice_plus, "frozen_result"}
    assert any(what is twice_plus for what, _ in called)
    assert len({stage for _, stage in called}) > 5
    assert actx._compile_trace_callback is callback

# }}}


# {{{ frozen data

def test_frozen_and_thawed_data_keep_their_line(actx: Any) -> None:
    u = state(actx)
    expression, line = u.mass + u.energy, here()
    frozen = actx.freeze(expression)
    assert made_at(actx.thaw(frozen)) == line
    # Again, and through a freeze of what needs no computation.
    thawed = actx.thaw(actx.freeze(actx.thaw(frozen)))
    assert made_at(thawed) == line
    assert np.allclose(actx.to_numpy(thawed), 4 * np.linspace(1, 2, 12))


def test_frozen_containers_keep_their_lines(actx: Any) -> None:
    u = state(actx)
    mass, mass_line = u.mass + 1, here()
    energy, energy_line = u.energy + 1, here()
    container = ConservedVars(mass=mass, energy=energy, momentum=u.momentum)
    thawed = actx.thaw(actx.freeze(container))
    assert made_at(thawed.mass) == mass_line
    assert made_at(thawed.energy) == energy_line
    assert made_at(thawed.momentum[1]) == made_at(u.momentum[1])


def test_tagging_frozen_data_keeps_its_line(actx: Any) -> None:
    u = state(actx)
    expression, line = u.mass + u.energy, here()
    frozen = actx.freeze(expression)
    if not IS_LAZY_LIBRARY or not hasattr(frozen, "tagged"):
        pytest.skip("frozen arrays of this context take no tags")
    frozen = actx.tag(arraycontext.CommonSubexpressionTag(), frozen)
    frozen = actx.tag_axis(0, arraycontext.CommonSubexpressionTag(), frozen)
    assert made_at(actx.thaw(frozen)) == line


def test_data_that_was_frozen_while_nothing_recorded(plain_actx: Any) -> None:
    frozen = plain_actx.freeze(state(plain_actx).mass + 1)
    pp.wrap_array_context(plain_actx)
    thawed, line = plain_actx.thaw(frozen), here()
    assert made_at(thawed) == line


def test_numbers_are_frozen_as_before(actx: Any) -> None:
    if not IS_LAZY_LIBRARY:
        pytest.skip("the example's context freezes arrays only")
    assert actx.freeze(3.0) == 3.0


def test_frozen_data_holds_no_expression(actx: Any) -> None:
    u = state(actx)
    expression = u.mass + u.energy
    held = weakref.ref(expression)
    frozen = actx.freeze(expression)
    thawed = actx.thaw(frozen)
    del expression
    gc.collect()
    assert held() is None
    assert pp.created_at(thawed) is not None

# }}}


# {{{ programs that are reused

def frozen_programs(actx: Any) -> list[Any]:
    return list(vars(actx)["_freeze_prg_cache"].values())


@needs_lazy_library
def test_a_reused_program_lists_the_sites_of_all_its_uses(cl_actx: Any) -> None:
    u = state(cl_actx)
    product, first = u.mass * 3, here()
    cl_actx.freeze(product)
    product, second = u.energy * 3, here()
    cl_actx.freeze(product)
    for i in range(3):
        product, third = (u.mass * 3, here()) if i else (product, second)
        cl_actx.freeze(product)

    program, = frozen_programs(cl_actx)
    found = lowering.contributors(program)
    sites, = found.statements.values()
    assert sorted({line_of(site) for site in sites}) == sorted({first, second, third})
    assert {line_of(site) for site in found.arguments["_ary"]} == {first, second, third}
    text = lowering.kernel_source(program)
    for line in (first, second, third):
        assert f":{line.lineno} in {line.function}" in text


@needs_lazy_library
def test_each_statement_of_a_reused_program_gets_its_own(cl_actx: Any) -> None:
    u = state(cl_actx)
    mass, first_mass = u.mass * 3, here()
    energy, first_energy = u.energy + 5, here()
    cl_actx.freeze(ConservedVars(mass, energy, u.momentum))
    energy, second_energy = u.energy + 5, here()
    cl_actx.freeze(ConservedVars(mass, energy, u.momentum))

    program, = frozen_programs(cl_actx)
    arguments = lowering.contributors(program).arguments
    assert {line_of(site) for site in arguments["_arymass"]} == {first_mass}
    assert {line_of(site) for site in arguments["_aryenergy"]} == {
        first_energy, second_energy}


@needs_lazy_library
def test_lines_of_one_output_are_not_those_of_another(cl_actx: Any) -> None:
    u = state(cl_actx)
    loop = [(3 * part, here()) for part in (u.mass, u.energy)]
    cl_actx.freeze(ConservedVars(loop[0][0], loop[1][0], u.momentum))
    mass, mass_line = 3 * u.mass, here()
    energy, energy_line = 3 * u.energy, here()
    cl_actx.freeze(ConservedVars(mass, energy, u.momentum))

    program, = frozen_programs(cl_actx)
    found = lowering.contributors(program)
    for name, line in (("_arymass", mass_line), ("_aryenergy", energy_line)):
        numbers = {loop[0][1].lineno, line.lineno}
        for sites in (found.statements[f"{name}_store"], found.arguments[name]):
            assert {line_of(site).lineno for site in sites} == numbers


@needs_lazy_library
def test_reuse_is_seen_by_whoever_collects_programs(cl_actx: Any) -> None:
    u = state(cl_actx)
    with lowering.Ledger() as book:
        product, first = u.mass * 7, here()
        cl_actx.freeze(product)
        product, second = u.mass * 7, here()
        cl_actx.freeze(product)
    entry, = book.entries
    program, = entry.programs
    sites, = lowering.contributors(program).statements.values()
    assert {line_of(site) for site in sites} == {first, second}


@needs_lazy_library
def test_the_hosts_programs_are_as_without(queue: Any) -> None:
    def run(actx: Any) -> tuple[int, list[str]]:
        u = state(actx)
        for _ in range(2):
            actx.freeze(u.mass * 3)
        actx.freeze(u.mass * 3)
        actx.freeze(2 - u.mass)
        programs = frozen_programs(actx)
        texts = [lp.generate_code_v2(
            lowering.instruction_tags.without_sites(p.program.t_unit)).device_code()
            for p in programs]
        return len(actx._freeze_prg_cache), texts

    plain = run(contexts.plain(queue))
    wrapped = run(pp.wrap_array_context(contexts.plain(queue)))
    pp.disable()
    assert plain[0] == 2
    assert plain == wrapped

# }}}


# {{{ a user's transforms

def fresh(dag: Any) -> Any:
    """A rewrite by hand: all products anew, without tags."""
    return pt.make_dict_of_named_arrays(
        {name: rebuilt(dag[name].expr) for name in dag})


def rebuilt(array: Any) -> Any:
    import dataclasses

    if isinstance(array, pt.IndexLambda):
        bindings = {name: rebuilt(value) for name, value in array.bindings.items()}
        if dataclasses.is_dataclass(array):
            return dataclasses.replace(
                array, bindings=type(array.bindings)(bindings),
                non_equality_tags=frozenset())
        return pt.IndexLambda(
            array.namespace, array.expr, shape=array.shape, dtype=array.dtype,
            bindings=bindings)
    return array


@pytest.mark.skipif(not IS_LAZY_LIBRARY, reason="needs a constructor of its own")
def test_a_transform_that_rebuilds_by_hand_keeps_the_sites(queue: Any) -> None:
    class ByHand(contexts.lazy_class()):
        def transform_dag(self, dag: Any) -> Any:
            dags.append(dag)
            dags.append(fresh(dag))
            return dags[-1]

    dags: list[Any] = []
    actx = pp.wrap_array_context(contexts.new(ByHand, queue), audit="raise")
    u = state(actx)
    expression, line = u.mass * 2, here()
    with lowering.Ledger() as book:
        actx.freeze(expression)
    pp.disable()
    before, after = (dag["_ary"].expr for dag in dags)
    assert before is not after
    assert made_at(after) == line
    program, = book.entries[0].programs
    sites, = lowering.contributors(program).statements.values()
    assert {line_of(site) for site in sites} == {line}


def test_both_transforms_run_once_and_see_what_they_saw(queue: Any) -> None:
    class Watching(contexts.lazy_class()):
        def transform_dag(self, dag: Any) -> Any:
            seen.append(type(dag))
            return super().transform_dag(dag)

        def transform_loopy_program(self, t_unit: Any) -> Any:
            seen.append(type(t_unit))
            return super().transform_loopy_program(t_unit)

    def run(actx: Any) -> Any:
        return actx.to_numpy(state(actx).mass * 2)

    seen: list[Any] = []
    actx = contexts.new(Watching, queue)
    expected = run(actx)
    plain, seen = seen, []
    assert np.array_equal(
        run(pp.wrap_array_context(contexts.new(Watching, queue))), expected)
    pp.disable()
    assert seen == plain


def without_tags(t_unit: Any) -> Any:
    kernel = t_unit.default_entrypoint
    return t_unit.with_kernel(kernel.copy(
        instructions=[insn.copy(tags=frozenset()) for insn in kernel.instructions],
        args=[arg.copy(tags=frozenset()) for arg in kernel.args]))


def with_a_substitution(t_unit: Any) -> Any:
    """All temporaries become substitution rules: their statements are gone."""
    for name in t_unit.default_entrypoint.temporary_variables:
        t_unit = lp.assignment_to_subst(t_unit, name)
    return t_unit


def loopy_context(queue: Any, transform: Any) -> Any:
    class Transforming(contexts.lazy_class()):
        def transform_loopy_program(self, t_unit: Any) -> Any:
            return transform(t_unit)

    return contexts.new(Transforming, queue)


def test_statements_that_are_made_anew_keep_their_sites_by_name(queue: Any) -> None:
    actx = pp.wrap_array_context(loopy_context(queue, without_tags), audit="raise")
    u = state(actx)
    with lowering.Ledger() as book:
        expression, line = u.mass * 2, here()
        values = actx.to_numpy(expression)
    pp.disable()
    assert np.array_equal(values, 2 * np.linspace(1, 2, 12))
    program, = book.entries[0].programs
    found = lowering.contributors(program)
    sites, = found.statements.values()
    assert {line_of(site) for site in sites} == {line}
    assert len(found.arguments) >= 2


@pytest.mark.parametrize("audit", ["warn", "raise"])
def test_the_audit_names_statements_that_are_gone(queue: Any, audit: str) -> None:
    def run(actx: Any) -> Any:
        x = actx.from_numpy(np.linspace(1, 2, 12))
        stored = actx.tag(pt.tags.ImplStored(), x * 3) if IS_LAZY_LIBRARY else (
            actx.tag(arraycontext.CommonSubexpressionTag(), x * 3))
        return actx.to_numpy(stored + 1)

    expected = 3 * np.linspace(1, 2, 12) + 1
    assert np.allclose(run(loopy_context(queue, with_a_substitution)), expected)
    lossy = pp.wrap_array_context(
        loopy_context(queue, with_a_substitution), audit=audit)
    try:
        if audit == "raise":
            with pytest.raises(ProvenanceLostError, match="transform_loopy_program"):
                run(lossy)
        else:
            with pytest.warns(ProvenanceWarning, match="transform_loopy_program"):
                assert np.allclose(run(lossy), expected)
    finally:
        pp.disable()

# }}}


# {{{ contexts that a program makes later

@pytest.mark.usefixtures("disabled")
def test_contexts_that_are_made_later(queue: Any) -> None:
    cls = contexts.lazy_class()
    wrap_new_array_contexts()
    wrap_new_array_contexts()
    assert not pp.is_enabled()
    actx = contexts.new(cls, queue)
    assert isinstance(actx, cls)
    assert type(actx) is not cls
    array, line = actx.np.sin(actx.from_numpy(np.ones(3))), here()
    assert made_at(array) == line
    assert np.allclose(actx.to_numpy(array), np.sin(1))
    eager = arraycontext.PyOpenCLArrayContext(queue)
    assert type(eager) is arraycontext.PyOpenCLArrayContext

    pp.disable()
    assert type(actx) is cls
    assert type(contexts.new(cls, queue)) is cls
    assert_pristine()

# }}}


UNCHANGED = """
import numpy as np
import pyopencl as cl
from arraycontext import PyOpenCLArrayContext
{imports}

queue = cl.CommandQueue(cl.create_some_context(interactive=False))
eager = PyOpenCLArrayContext(queue)
actx = {make}
x = actx.from_numpy(np.ones(5))
tripled = 3 * x
thawed = actx.thaw(actx.freeze(tripled))
print(actx.to_numpy(actx.np.sqrt(thawed + 1))[0])
"""


def test_a_program_that_is_run_as_it_is(tmp_path: Any, cl_ctx: Any) -> None:
    from running import command

    if IS_LAZY_LIBRARY:
        imports = ("from arraycontext import PytatoPyOpenCLArrayContext\n"
                   "from pyopencl.tools import ImmediateAllocator")
        make = "PytatoPyOpenCLArrayContext(queue, ImmediateAllocator(queue))"
    else:
        imports = (f"import sys; sys.path.append({str(contexts.EXAMPLES)!r})\n"
                   "from lazy_array_context import LazyArrayContext")
        make = "LazyArrayContext(queue)"
    source = UNCHANGED.format(imports=imports, make=make)
    (tmp_path / "program.py").write_text(source)
    done = command(tmp_path, "run", "--kernels", "stdout", "program.py",
                   flags=["-Wignore"],
                   PYOPENCL_CTX=cl_ctx.devices[0].platform.name)
    output = done.stdout.decode()
    assert done.returncode == 0, output + done.stderr.decode()
    assert output.startswith("2.0\n")
    tripled = next(i for i, line in enumerate(source.splitlines(), start=1)
                   if line.startswith("tripled"))
    # What is thawed is where it was computed, not where it was thawed.
    second = output.split("pytato_provenance:")[2]
    assert f"program.py:{tripled} in <module>" in second

# }}}


# {{{ an application

@pytest.fixture
def euler_libraries() -> Iterator[None]:
    """The helper layers between the physics and the context."""
    libraries = frames._registry._libraries
    before = libraries.files
    pp.register_library("euler.operators")
    pp.register_library("euler.state")
    added = libraries.files - before
    yield
    libraries.files -= added
    frames._registry.version += 1


class Functions(ast.NodeVisitor):
    """Finds the functions of a module, and what they compute on which line."""

    def __init__(self, source: str) -> None:
        self.spans: dict[str, tuple[int, int]] = {}
        self.operations: dict[str, set[int]] = {}
        self._inside: list[str] = []
        self.visit(ast.parse(source))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.spans[node.name] = node.lineno, node.end_lineno or node.lineno
        self._inside.append(node.name)
        self.generic_visit(node)
        self._inside.pop()

    def visit_BinOp(self, node: ast.BinOp) -> None:
        # GAMMA - 1 is a number.
        names = {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}
        if self._inside and names != {"GAMMA"}:
            self.operations.setdefault(self._inside[-1], set()).add(node.lineno)
        self.generic_visit(node)


@pytest.mark.usefixtures("disabled", "euler_libraries")
def test_every_statement_of_an_application_names_its_physics(queue: Any) -> None:
    import vortex
    from euler import physics
    from euler.array_context import SimulationArrayContext
    from euler.discretization import Discretization
    from euler.operators import Operators

    source = Functions(inspect.getsource(physics))
    actx = SimulationArrayContext(queue)
    pp.wrap_array_context(actx, audit="raise")
    discretization = Discretization(2, 2, 10.0)
    euler = physics.Euler(Operators(actx, discretization))
    x, y = discretization.coordinates
    initial = actx.from_numpy(vortex.vortex(x, y, time=0))
    with lowering.Ledger() as book:
        rate = actx.compile(euler.rate)
        result, line = rate(initial), here()
    wrapped = actx.to_numpy(result)
    for array in leaves(result):
        assert made_at(array) == line

    program = program_called(book, "rate")
    found = lowering.contributors(program)
    statements = {insn.id for insn in program.default_entrypoint.instructions}
    assert statements <= set(found.statements)
    named: dict[str, set[int]] = {}
    for sites in found.statements.values():
        assert sites
        for site in sites:
            assert site.region == "rate"
            at = line_of(site)
            assert at.filename == physics.__file__
            function = next(name for name, (first, last) in source.spans.items()
                            if first <= at.lineno <= last and name != "__init__")
            assert function in str(site)
            named.setdefault(function, set()).add(at.lineno)

    # And the other way round: what computes there is in the kernel.
    computing = ("pressure", "wave_speed", "fluxes", "numerical_flux", "rate")
    for function in computing:
        assert source.operations[function] <= named[function], function

    pp.disable()
    plain_euler = physics.Euler(Operators(actx, discretization))
    plain = actx.to_numpy(actx.compile(plain_euler.rate)(
        actx.from_numpy(vortex.vortex(x, y, time=0))))
    for one, other in zip(leaves(wrapped), leaves(plain), strict=True):
        assert np.array_equal(one, other)

# }}}
