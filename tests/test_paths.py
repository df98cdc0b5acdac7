"""The compiled table of call paths and the one in Python: one description for both."""

from __future__ import annotations

import asyncio
import gc
import importlib
import subprocess
import sys
import threading
import traceback
import weakref
from typing import TYPE_CHECKING, Any

import pytest
from call_shapes import Shapes

from pytato_provenance.capture.paths import (
    PurePathTable,
    compiled_path_table,
    fastest_lookup,
)


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType

    from pytato_provenance.capture.paths import PathTable


@pytest.fixture(params=["pure", "compiled"])
def table(request: pytest.FixtureRequest) -> Iterator[PathTable[Any]]:
    cls: Callable[[], Any] | None = PurePathTable
    if request.param == "compiled":
        cls = compiled_path_table()
        if cls is None:
            pytest.skip("the compiled part was not built")
    made = cls()
    yield made
    made.clear()


def walked(max_frames: int = 0) -> tuple[tuple[int, int], ...]:
    """The path of the caller's caller by other means; its code objects by identity."""
    frames = [frame for frame, _ in traceback.walk_stack(sys._getframe(2))]
    chosen = frames[:max_frames] if max_frames else frames
    return tuple((id(frame.f_code), frame.f_lasti) for frame in chosen)


@pytest.mark.fuzz
@pytest.mark.parametrize("max_frames", [0, 2, 4])
def test_random_call_shapes(table: PathTable[Any], max_frames: int) -> None:
    """Two stacks have the same value if and only if their paths are the same."""
    values: dict[Any, object] = {}
    keep_codes: list[CodeType] = []
    count = 0

    def leaf() -> None:
        nonlocal count
        count += 1
        path = walked(max_frames)
        keep_codes.extend(f.f_code for f, _ in traceback.walk_stack(sys._getframe(1)))
        found = table.lookup(1, max_frames)
        assert found is values.get(path)
        if found is None:
            values[path] = value = object()
            assert table.add(1, max_frames, value) is value
        assert table.lookup(1, max_frames) is values[path]

    for seed in range(60):
        Shapes(seed, leaf).call(seed % 7)
    assert len(table) == len(values) > 20
    assert count > len(values)


@pytest.mark.fuzz
@pytest.mark.parametrize("max_frames", [1, 4])
def test_what_is_written_out_is_the_same(max_frames: int) -> None:
    table: PurePathTable[object] = PurePathTable()
    fast = fastest_lookup(table, max_frames)
    assert fast != table.lookup
    found = 0

    def leaf() -> None:
        nonlocal found
        value = table.lookup(1, max_frames)
        assert fast(1, max_frames) is value
        if value is None:
            table.add(2, max_frames, object())  # above the marked one
        else:
            found += 1

    table.mark(Shapes.call.__code__)
    for seed in range(60):
        Shapes(seed, leaf).call(seed % 7)
    assert found > 0
    # Not as many frames as that, or only marked ones.
    for frame, _ in traceback.walk_stack(sys._getframe()):
        table.mark(frame.f_code)
    assert fast(0, max_frames) is table.lookup(0, max_frames) is None
    thread = threading.Thread(target=leaf)
    thread.start()
    thread.join()


def test_caller_itself_is_the_first_frame(table: PathTable[str]) -> None:
    table.add(0, 1, "here")
    assert table.lookup(0, 1) is None, "another instruction of the same frame"

    def above() -> str | None:
        return table.lookup(1, 1) or (table.add(1, 1, "above") and None)

    assert [above() for _ in range(2)] == [None, "above"]
    assert len(table) == 2


def test_marked_code_is_passed_over_at_the_beginning(table: PathTable[str]) -> None:
    def probe(max_frames: int, above: int) -> str | None:
        return table.lookup(1, max_frames) or (
            table.add(1 + above, max_frames, "seen") and None
        )

    def look(max_frames: int, above: int) -> str | None:
        return probe(max_frames, above)

    def library(then: Callable[[], Any]) -> Any:
        return then()

    def one(max_frames: int, above: int) -> Any:
        return look(max_frames, above)

    def other(max_frames: int, above: int) -> Any:
        return look(max_frames, above)

    def clear_and_mark(*functions: Any) -> None:
        table.clear()
        for function in functions:
            table.mark(function.__code__)

    for n in range(1, 6):
        # Unmarked, the first frame is one like others.
        clear_and_mark()
        assert [one(n, 0), other(n, 0)] == [None, "seen" if n == 1 else None]
        clear_and_mark(look)
        for expected in (None, "seen"):
            found = [one(n, 1), other(n, 1), library(lambda n=n: look(n, 1))]
            assert found == [expected] * 3
        # What is kept is what was asked for, whatever is marked.
        clear_and_mark(look)
        assert [one(n, 0) for _ in range(2)] == [None, None]
        # Further up marks have no meaning, and for whole stacks neither.
        clear_and_mark(library)
        assert [library(lambda n=n: one(n, 0)) for _ in range(2)] == [None, "seen"]
        clear_and_mark(look)
        assert [one(0, 0) for _ in range(2)] == [None, "seen"]


def test_stack_not_deep_enough(table: PathTable[str]) -> None:
    assert table.lookup(100_000) is None
    assert table.add(100_000, 0, "nothing") == "nothing"
    assert table.lookup(200_000, 3) == "nothing"


def test_bad_arguments(table: PathTable[str]) -> None:
    for bad in [(-1,), (0, -1)]:
        with pytest.raises(ValueError, match="negative"):
            table.lookup(*bad)
    with pytest.raises(ValueError, match="negative"):
        table.add(0, -1, "value")
    with pytest.raises(TypeError):
        table.lookup()
    with pytest.raises(TypeError):
        table.lookup("0")
    with pytest.raises(TypeError):
        table.add(0, 0)
    with pytest.raises(TypeError):
        table.mark("code")
    assert len(table) == 0


def test_deep_recursion(table: PathTable[str]) -> None:
    def down(levels: int, value: str) -> str | None:
        return down(levels - 1, value) if levels else probe(value)

    def probe(value: str) -> str | None:
        return table.lookup(1) or (table.add(1, 0, value) and None)

    old = sys.getrecursionlimit()
    sys.setrecursionlimit(8000)
    try:
        for levels in (0, 1, 200, 254, 255, 256, 257, 1000, 5000):
            found = []
            for _ in range(2):
                found.append(down(levels, str(levels)))
            assert found == [None, str(levels)]
    finally:
        sys.setrecursionlimit(old)
    assert len(table) == 9


def test_growth(table: PathTable[int]) -> None:
    source = "\n".join(f"    if i == {i}: return look({i})" for i in range(500))
    scope: dict[str, Any] = {}
    found: list[int | None] = []

    def look(i: int) -> None:
        value = table.lookup(1)
        found.append(value)
        if value is None:
            table.add(1, 0, i)

    exec(f"def branches(i, look):\n{source}", scope)
    empty = table.__sizeof__()
    for _ in range(2):
        for i in range(500):
            scope["branches"](i, look)
    assert found == [None] * 500 + list(range(500))
    assert len(table) == 500
    assert table.__sizeof__() > empty + 500 * 12


def test_first_value_stays_in_all_threads(table: PathTable[object]) -> None:
    barrier = threading.Barrier(8)
    seen: list[object] = []

    def work() -> None:
        barrier.wait()
        for _ in range(200):
            value = step()
        seen.append(value)

    def step() -> object:
        value = table.lookup(1)
        return table.add(1, 0, object()) if value is None else value

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, seen))) == 1
    assert len(table) == 1


def test_clear_while_others_look(table: PathTable[str]) -> None:
    stop = threading.Event()
    wrong: list[object] = []

    def step(i: int) -> None:
        value = table.lookup(1)
        if value is None:
            value = table.add(1, 0, "value")
        if value != "value":
            wrong.append(value)

    def work() -> None:
        while not stop.is_set():
            [step(i) for i in range(3)]

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(200):
        table.clear()
    stop.set()
    thread.join()
    assert not wrong


def test_coroutine_has_the_caller_of_the_moment(table: PathTable[str]) -> None:
    def steps() -> Iterator[str | None]:
        while True:
            yield probe()

    def probe() -> str | None:
        return table.lookup(1) or (table.add(1, 0, "seen") and None)

    def one(generator: Iterator[str | None]) -> str | None:
        return next(generator)

    def other(generator: Iterator[str | None]) -> str | None:
        return next(generator)

    generator = steps()
    found = []
    for _ in range(2):
        found.append((one(generator), other(generator)))
    assert found == [(None, None), ("seen", "seen")]

    async def wait() -> str | None:
        await asyncio.sleep(0)
        return probe()

    async def main() -> list[str | None]:
        return [await wait() for _ in range(3)]

    assert asyncio.run(main()) == [None, "seen", "seen"]


def test_code_stays_while_a_path_names_it(table: PathTable[str]) -> None:
    scope: dict[str, Any] = {}
    exec("def f(look): return look()", scope)
    function = scope.pop("f")
    code = weakref.ref(function.__code__)

    def look() -> str:
        return table.add(1, 0, "value")

    function(look)
    del function, scope
    gc.collect()
    assert code() is not None
    table.clear()
    gc.collect()
    assert code() is None
    assert len(table) == 0


def test_no_frame_is_kept(table: PathTable[str]) -> None:
    class Local:
        pass

    def frame() -> weakref.ref[Local]:
        local = Local()
        table.add(0, 0, "value")
        table.lookup(0)
        return weakref.ref(local)

    assert frame()() is None


def test_cycles_through_a_value_are_collected() -> None:
    cls = compiled_path_table() or PurePathTable

    class Value:
        pass

    for make in (cls, PurePathTable):
        value: Any = Value()
        value.table = make()
        value.table.add(0, 0, value)
        reference = weakref.ref(value)
        del value
        gc.collect()
        assert reference() is None


def test_values_that_use_the_table_when_they_die(table: PathTable[Any]) -> None:
    class Value:
        def __del__(self) -> None:
            assert table.lookup(0) is None
            table.add(0, 0, "from a finaliser")

    table.add(0, 0, Value())
    table.clear()
    gc.collect()
    assert len(table) == 1


INTERPRETERS = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"


def test_compiled_part_refuses_subinterpreters() -> None:
    cls = compiled_path_table()
    interpreters = pytest.importorskip(INTERPRETERS)
    if cls is None:
        pytest.skip("the compiled part was not built")
    path = importlib.import_module("pytato_provenance.capture._walk").__file__
    code = f"""if True:
        import importlib.util
        spec = importlib.util.spec_from_file_location(
            "pytato_provenance.capture._walk", {path!r})
        try:
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
        except ImportError as error:
            assert "subinterpreter" in str(error), error
        else:
            raise AssertionError("imported")
        """
    identity = interpreters.create()
    try:
        failed = interpreters.run_string(identity, code)
    finally:
        interpreters.destroy(identity)
    assert failed is None, failed


def test_pure_where_the_compiled_part_is_missing() -> None:
    code = (
        "import sys; sys.modules['pytato_provenance.capture._walk'] = None\n"
        "from pytato_provenance.capture import paths\n"
        "assert paths.compiled_path_table() is None\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
