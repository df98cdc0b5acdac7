"""Named regions: where they are open, and that they travel with the arrays."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import copy
import gc
import pickle
import subprocess
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytato as pt
import pytest

import pytato_provenance as pp
from pytato_provenance import ProvenanceCopyMapper, created_at, region
from pytato_provenance._host import host
from pytato_provenance.diagnostic import UsageError
from pytato_provenance.regions import _in_generators, current_region, matches
from pytato_provenance.sites import merge_sites


if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator


def _array() -> Any:
    return pt.make_placeholder(name="x", shape=(4,), dtype=np.float64)


def _region_of_new_array() -> str | None:
    site = created_at(_array())
    return None if site is None else site.region


@pytest.fixture
def recording(disabled_afterwards: None) -> None:
    pp.enable()


@pytest.fixture(autouse=True)
def nothing_left_open() -> Iterator[None]:
    yield
    gc.collect()
    assert current_region() is None
    assert not _in_generators


# {{{ blocks

@pytest.mark.usefixtures("recording")
def test_nesting() -> None:
    assert _region_of_new_array() is None
    with region("rhs"):
        assert _region_of_new_array() == "rhs"
        with region("flux"):
            assert _region_of_new_array() == "rhs/flux"
        assert _region_of_new_array() == "rhs"
        with region("faces/interior"):
            assert _region_of_new_array() == "rhs/faces/interior"
    assert _region_of_new_array() is None


@pytest.mark.usefixtures("recording")
def test_exception_leaves_the_inner_one() -> None:
    with region("outer"):
        with pytest.raises(ZeroDivisionError), region("inner"):
            assert current_region() == "outer/inner"
            _ = 1 / 0
        assert _region_of_new_array() == "outer"


@pytest.mark.usefixtures("recording")
def test_one_object_entered_again() -> None:
    rhs = region("rhs")
    with rhs, rhs:
        assert _region_of_new_array() == "rhs/rhs"
    with rhs:
        assert _region_of_new_array() == "rhs"


@pytest.mark.usefixtures("recording")
def test_what_is_excluded_belongs_to_no_region() -> None:
    with region("rhs"):
        with region("set-up", record=False):
            array = _array()
            with region("flux"):
                assert _region_of_new_array() is None
        assert _region_of_new_array() == "rhs"
    site = created_at(array)
    assert site is not None and site.region is None and site.user_frame is not None


def test_open_before_recording(disabled_afterwards: None) -> None:
    with region("early"):
        assert created_at(_array()) is None
        pp.enable()
        assert _region_of_new_array() == "early"
        with pp.recording(False):
            assert created_at(_array()) is None
        pp.disable()
        assert created_at(_array()) is None
        with pp.recording():
            assert _region_of_new_array() == "early"


def test_without_recording_nothing_is_patched() -> None:
    with region("rhs"):
        assert current_region() == "rhs"
        assert created_at(_array()) is None


@pytest.mark.parametrize("name", ["", " ", "/", "a//b", "/a", "a/", "a/ /b", 1, None,
                                  b"a", ["a"]])
def test_bad_names(name: Any) -> None:
    with pytest.raises(UsageError, match="region"):
        region(name)


@pytest.mark.parametrize("name", ["rhs */ int x;", "a\nb", "what??/else", "\udc80",
                                  "</script>", "‮", "名前", "a[1]*?", "x" * 5000])
@pytest.mark.usefixtures("recording")
def test_any_text_is_a_name(name: str) -> None:
    with region(name):
        site = created_at(_array())
    assert site is not None
    assert site.region == name and matches(name, name)


@pytest.mark.parametrize("decorated", [3, int, None, classmethod(len)])
def test_what_cannot_be_decorated(decorated: Any) -> None:
    with pytest.raises(UsageError, match="functions"):
        region("rhs")(decorated)


def test_first_region_costs_nothing_before() -> None:
    code = ("from pytato_provenance import regions; assert not regions.ever_opened\n"
            "with regions.region('a'): pass\n"
            "assert regions.ever_opened\n"
            "import sys; assert 'pytato' not in sys.modules, 'no host is needed'")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

# }}}


# {{{ threads and tasks

@pytest.mark.usefixtures("recording")
def test_thread_has_none() -> None:
    found: list[str | None] = []

    def work() -> None:
        found.append(_region_of_new_array())
        with region("of the thread"):
            barrier.wait()
            found.append(_region_of_new_array())
            barrier.wait()

    barrier = threading.Barrier(2, timeout=30)
    thread = threading.Thread(target=work)
    with region("of the main thread"):
        thread.start()
        barrier.wait()
        assert _region_of_new_array() == "of the main thread"
        barrier.wait()
        thread.join()
    assert found == [None, "of the thread"]


@pytest.mark.usefixtures("recording")
def test_one_object_in_many_threads() -> None:
    rhs = region("rhs")
    found: list[str | None] = []

    def work() -> None:
        for _ in range(50):
            with rhs:
                found.append(current_region())
            found.append(current_region())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.count("rhs") == found.count(None) == 200


@pytest.mark.usefixtures("recording")
def test_tasks() -> None:
    @region("decorated")
    async def decorated() -> str | None:
        await asyncio.sleep(0)
        return _region_of_new_array()

    async def block(name: str) -> str | None:
        with region(name):
            await asyncio.sleep(0)
            found = _region_of_new_array()
            await asyncio.sleep(0)
            assert found == _region_of_new_array()
            return found

    async def plain() -> str | None:
        await asyncio.sleep(0)
        return _region_of_new_array()

    async def main() -> None:
        assert await asyncio.gather(block("a"), plain(), block("b"), decorated()) == [
            "a", None, "b", "decorated"]
        with region("outer"):
            # A task goes on in the regions in which it was started.
            task = asyncio.create_task(block("a"))
            assert await decorated() == "outer/decorated"
        assert await task == "outer/a"
        assert await plain() is None
        with region("outer"):
            assert await asyncio.to_thread(current_region) == "outer"

    asyncio.run(main())

# }}}


# {{{ generators

def _blocks() -> Generator[tuple[str | None, str | None]]:
    with region("generator"):
        yield current_region(), _region_of_new_array()
        with region("inner"):
            yield current_region(), _region_of_new_array()
        yield current_region(), _region_of_new_array()
    yield current_region(), _region_of_new_array()


@region("generator")
def _decorated() -> Generator[tuple[str | None, str | None]]:
    yield current_region(), _region_of_new_array()
    with region("inner"):
        yield current_region(), _region_of_new_array()
    yield current_region(), _region_of_new_array()


@pytest.mark.usefixtures("recording")
def test_block_in_generator_does_not_leak() -> None:
    found: list[Any] = []
    for item in _blocks():
        found.append(item)
        assert _region_of_new_array() is None
    assert found == [(name, name) for name in (
        "generator", "generator/inner", "generator", None)]


@pytest.mark.usefixtures("recording")
def test_decorated_generator_does_not_leak() -> None:
    found: list[Any] = []
    for item in _decorated():
        found.append(item)
        assert _region_of_new_array() is None
    assert found == [(name, name) for name in (
        "generator", "generator/inner", "generator")]


@pytest.mark.usefixtures("recording")
def test_generator_outlives_its_consumers_region() -> None:
    with region("consumer"):
        generator = _blocks()
        assert next(generator)[1] == "consumer/generator"
        assert _region_of_new_array() == "consumer"
    # Where it was opened, not where it is resumed.
    assert next(generator)[1] == "consumer/generator/inner"
    assert _region_of_new_array() is None
    with region("other"):
        assert next(generator)[1] == "consumer/generator"
        assert _region_of_new_array() == "other"
        assert next(generator)[1] == "other"


@pytest.mark.usefixtures("recording")
def test_generators_interleave() -> None:
    first, second = _blocks(), _blocks()
    next(first)
    next(second)
    assert next(first)[1] == "generator/inner"
    assert next(second)[1] == "generator/inner"
    list(first)
    assert next(second)[1] == "generator"


@pytest.mark.usefixtures("recording")
def test_generator_within_generator() -> None:
    def outer() -> Generator[Any]:
        with region("outer"):
            yield from _blocks()
            yield None, _region_of_new_array()

    assert [item[1] for item in outer()] == [
        "outer/generator", "outer/generator/inner", "outer/generator", "outer", "outer"]


@pytest.mark.usefixtures("recording")
def test_function_under_generator() -> None:
    def build(name: str) -> str | None:
        with region(name):
            return _region_of_new_array()

    @region("decorated")
    def decorated() -> str | None:
        return _region_of_new_array()

    def generator() -> Generator[Any]:
        with region("generator"):
            yield build("first"), decorated()
            with region("inner"):
                yield build("second"), decorated()

    assert list(generator()) == [
        ("generator/first", "generator/decorated"),
        ("generator/inner/second", "generator/inner/decorated")]


def test_abandoned_generator() -> None:
    generator = _blocks()
    next(generator)
    assert _in_generators
    del generator
    gc.collect()
    assert not _in_generators


def test_abandoned_generator_in_a_cycle_is_collected() -> None:
    class Owner:
        steps: Any

        def run(self) -> Generator[Any]:
            with region("cycle"):
                yield self

    owner = Owner()
    owner.steps = owner.run()
    next(owner.steps)
    watched = weakref.ref(owner)
    del owner
    gc.collect()
    assert watched() is None
    assert not _in_generators


def test_decorated_generator_is_driven_as_usual() -> None:
    @region("generator")
    def echo() -> Generator[Any, Any, str]:
        received = yield current_region()
        try:
            yield received, current_region()
        except KeyError:
            yield "thrown", current_region()
        return "returned"

    generator = echo()
    assert next(generator) == "generator"
    assert generator.send(7) == (7, "generator")
    assert generator.throw(KeyError) == ("thrown", "generator")
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "returned"
    generator = echo()
    next(generator)
    with region("closing"):
        generator.close()
        assert current_region() == "closing"


@pytest.mark.usefixtures("recording")
def test_async_generators() -> None:
    async def blocks() -> AsyncIterator[str | None]:
        with region("block"):
            await asyncio.sleep(0)
            yield _region_of_new_array()
            yield _region_of_new_array()

    @region("decorated")
    async def decorated() -> AsyncIterator[str | None]:
        yield _region_of_new_array()
        await asyncio.sleep(0)
        # Tasks that a step starts are in the region.
        yield await asyncio.create_task(new_array())

    async def new_array() -> str | None:
        return _region_of_new_array()

    async def main() -> None:
        for generator, name in ((blocks, "block"), (decorated, "decorated")):
            found: list[str | None] = []
            async for item in generator():
                found.append(item)
                assert _region_of_new_array() is None
            assert found == [name, name]

    asyncio.run(main())


@pytest.mark.usefixtures("recording")
def test_functions_under_contextmanager_open_for_their_block() -> None:
    @contextlib.contextmanager
    def phase(name: str) -> Generator[None]:
        with region("phase"), region(name):
            yield

    with phase("first"):
        assert _region_of_new_array() == "phase/first"
        with phase("second"):
            assert _region_of_new_array() == "phase/first/phase/second"
    assert _region_of_new_array() is None

    @phase("as a decorator")
    def build() -> str | None:
        return _region_of_new_array()

    assert build() == "phase/as a decorator"

    def generator() -> Generator[Any]:
        with phase("in a generator"):
            yield _region_of_new_array()

    for found in generator():
        assert found == "phase/in a generator"
        assert _region_of_new_array() is None

    with contextlib.ExitStack() as stack:
        stack.enter_context(phase("on a stack"))
        stack.enter_context(region("last"))
        assert _region_of_new_array() == "phase/on a stack/last"

    async def main() -> None:
        @contextlib.asynccontextmanager
        async def async_phase() -> AsyncGenerator[None]:
            with region("async"):
                yield

        async with async_phase():
            assert _region_of_new_array() == "async"

    asyncio.run(main())


def test_stack_that_is_handed_on() -> None:
    def generator() -> Generator[contextlib.ExitStack]:
        with contextlib.ExitStack() as stack:
            stack.enter_context(region("handed on"))
            yield stack.pop_all()

    stack, = generator()
    stack.close()
    assert not _in_generators


def test_left_in_another_order() -> None:
    first, second = region("first"), region("second")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert current_region() == "first/second"
    second.__exit__(None, None, None)
    assert current_region() is None
    # What nobody entered is nobody's.
    second.__exit__(None, None, None)


def test_other_context() -> None:
    with region("here"):
        context = contextvars.copy_context()
    assert context.run(current_region) == "here"

# }}}


# {{{ travelling

@pytest.mark.usefixtures("recording")
def test_sites_are_one_for_each_call_and_region() -> None:
    found: list[Any] = []
    for name in ("a", "b", "a", "b"):
        with region(name):
            for _ in range(2):
                found.append(created_at(_array()))
    assert {site.region for site in found} == {"a", "b"}
    assert len({id(site) for site in found}) == 2


@pytest.mark.usefixtures("recording")
def test_survives_copies_and_pickles() -> None:
    with region("rhs"):
        y = 2 * _array()
    sites = [created_at(item) for item in (
        ProvenanceCopyMapper()(y), copy.deepcopy(y), pickle.loads(pickle.dumps(y)),
        pp.through(ProvenanceCopyMapper())(y))]
    assert [site.region for site in sites] == ["rhs"] * 4


@pytest.mark.usefixtures("recording")
def test_transform_in_another_region() -> None:
    with region("built"):
        y = 2 * _array()

    class Doubling(ProvenanceCopyMapper):
        def map_placeholder(self, expr: Any, *args: Any) -> Any:
            return expr + expr

    with region("rewritten"):
        z = Doubling()(y)
    assert {created_at(node).region for node in _arrays(z)} == {"built"}


def _arrays(root: Any) -> list[Any]:
    from pytato_provenance._host import nodes_in_post_order
    return [node for node in nodes_in_post_order(root)
            if isinstance(node, host().array)]


@pytest.mark.usefixtures("recording")
def test_merged_nodes_carry_both() -> None:
    x = _array()
    with region("rhs"):
        first = x + 1
    with region("limiter"):
        second = x + 1
    merge = getattr(pt.transform, "deduplicate", ProvenanceCopyMapper())
    merged = pp.through(merge)(
        pt.make_dict_of_named_arrays({"a": first, "b": second}))
    for name in ("a", "b"):
        site = created_at(merged[name].expr)
        assert site.regions == ("limiter", "rhs")
        assert site.region is None
    assert merge_sites([created_at(first)]).region == "rhs"

# }}}


@pytest.mark.parametrize(("path", "pattern", "expected"), [
    ("rhs", "rhs", True), ("rhs/flux", "rhs", True), ("rhs", "rhs/flux", False),
    ("rhs2", "rhs", False), ("rhs2", "rhs*", True), ("rhs2/flux", "rhs?", True),
    ("rhs/flux", "*/flux", True), ("rhs/flux/faces", "*/flux", True),
    ("rhs/flux", "flux", False), ("a[1]", "a[1]", True), ("RHS", "rhs", False),
])
def test_patterns(path: str, pattern: str, expected: bool) -> None:
    assert matches(path, pattern) is expected
