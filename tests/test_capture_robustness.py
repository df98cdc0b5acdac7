"""Every strategy under what programs do to a Python."""

from __future__ import annotations

import contextlib
import copy
import io
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytato as pt
import pytest

import pytato_provenance as pp
from pytato_provenance import call_tree


if TYPE_CHECKING:
    from collections.abc import Iterator

STRATEGIES = ["stack", "stack-pure", "site", "profile", "monitoring"]


def switch_on(strategy: str) -> None:
    name, _, pure = strategy.partition("-")
    if name == "monitoring" and not hasattr(sys, "monitoring"):
        pytest.skip("this Python has no sys.monitoring")
    if pure:
        pp.enable(capture=name, compiled=False)
    else:
        pp.enable(capture=name)


@pytest.fixture(params=STRATEGIES)
def strategy(request: pytest.FixtureRequest) -> Iterator[str]:
    switch_on(request.param)
    yield request.param
    pp.disable()


def placeholder(name: str) -> Any:
    return pt.make_placeholder(name=name, shape=(4, 4), dtype=np.float64)


X = placeholder("x")
Y = placeholder("y")


def here() -> tuple[str, int]:
    frame = sys._getframe(1)
    return frame.f_code.co_filename, frame.f_lineno


def line_of(array: Any) -> tuple[str, int]:
    site = pp.created_at(array)
    assert site is not None and site.user_frame is not None
    return site.user_frame.filename, site.user_frame.lineno


def run_python(*arguments: str, code: str, **kwargs: Any) -> str:
    """The output of another Python that has this package and host."""
    root = os.path.dirname(os.path.dirname(pp.__file__))
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, **kwargs)
    assert done.returncode == 0, done.stderr
    return done.stdout


# {{{ signals

@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")
def test_signals(strategy: str) -> None:
    """A handler makes arrays wherever it happens to interrupt."""
    wrong: list[Any] = []
    count = 0

    def handle(number: int, frame: object) -> None:
        nonlocal count
        count += 1
        made, line = X + Y, here()
        if line_of(made) != line:
            wrong.append((line_of(made), line))

    # The host imports some of itself when it is first used: not half way, please.
    for made in (X + Y, pt.sin(X), X[0] + Y[0]):
        assert pp.created_at(made) is not None
    old = signal.signal(signal.SIGALRM, handle)
    chance = random.Random(7)
    try:
        while count < 100:
            # Once, not at intervals: on a slow machine handlers would pile up.
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-5, 3e-4))
            made, line = pt.sin(X), here()
            if line_of(made) != line:
                wrong.append((line_of(made), line))
            made, line = X[0] + Y[0], here()
            if line_of(made) != line:
                wrong.append((line_of(made), line))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert not wrong

# }}}


# {{{ processes

@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_while_other_threads_capture(strategy: str) -> None:
    """Whoever holds a lock at that moment does not exist in the child."""
    if strategy == "profile" and sys.version_info < (3, 12):
        pytest.skip("functools.cached_property, which the host uses, holds a lock")

    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            scope: dict[str, Any] = {"X": X, "Y": Y}
            exec("def f(): return X + Y", scope)
            scope["f"]()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(8):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    signal.alarm(20)  # a deadlock ends the child
                    made, line = X + Y, here()
                    if line_of(made) == line:
                        exec("made = X + Y", {"X": X, "Y": Y})
                        call_tree.forget_dead_code()
                        status = 0
                finally:
                    os._exit(status)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def make_in_worker(i: int) -> tuple[Any, tuple[str, int]]:
    return (X + Y, here())


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_process_pool(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    pp.enable()
    try:
        context = multiprocessing.get_context(method)
        if method == "spawn":
            pool = context.Pool(2, initializer=pp.enable)
        else:
            pool = context.Pool(2)
        with pool:
            results = pool.map(make_in_worker, range(6))
    finally:
        pp.disable()
    if method == "fork":
        # What is on a spawned process's command line differs, in its columns.
        assert len({pp.created_at(array) for array, _ in results}) == 1
    assert {line_of(array) for array, _ in results} == {line for _, line in results}


def test_optimised() -> None:
    names = ["stack", "site", "profile"]
    if hasattr(sys, "monitoring"):
        names.append("monitoring")
    output = run_python("-O", code=f"""
        import pytato as pt, numpy as np
        import pytato_provenance as pp
        for name in {names}:
            pp.enable(capture=name)
            x = pt.make_placeholder(name="x", shape=(4,), dtype=np.float64)
            y = x + 1
            z = y[0]
            print([str(pp.created_at(a)) for a in (x, y, z)])
            pp.disable()
            print(pp.created_at(x + x))
        """)
    assert output.splitlines() == [
        "['<string>:6 in <module>', '<string>:7 in <module>', "
        "'<string>:8 in <module>']", "None"] * len(names)


def test_without_positions() -> None:
    output = run_python("-X", "no_debug_ranges", code="""
        import pytato as pt, numpy as np
        import pytato_provenance as pp
        pp.enable()
        x = pt.make_placeholder(name="x", shape=(4,), dtype=np.float64)
        frame = pp.created_at(x).user_frame
        print(frame.lineno, frame.colno, frame.end_colno)
        """)
    assert output.split() == ["5", "None", "None"]


INTERPRETERS = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"


def test_subinterpreters_are_refused() -> None:
    """In a process of its own: what a subinterpreter imports need not survive it."""
    pytest.importorskip(INTERPRETERS)
    output = run_python(code=f"""
        import sys
        import {INTERPRETERS} as interpreters
        inner = '''if True:
            import sys
            sys.path[:] = {{path!r}}
            from pytato_provenance.capture import make_strategy
            from pytato_provenance.diagnostic import CaptureUnavailableError
            try:
                make_strategy("stack")
            except CaptureUnavailableError as error:
                assert "subinterpreter" in str(error) and "main" in str(error)
            else:
                raise AssertionError("not refused")
            from pytato_provenance.capture.paths import compiled_path_table
            assert compiled_path_table() is None
        '''.format(path=sys.path)
        made = interpreters.create()
        print(interpreters.run_string(made, inner))
        """)
    assert output.strip() == "None"

# }}}


# {{{ recursion

def test_at_the_recursion_limit(strategy: str) -> None:
    """Wherever the host itself gets through, so does it with us; never an error of
    ours, never a wrong line."""
    deepest = {}
    wrong: list[Any] = []

    def down(levels: int) -> None:
        try:
            made, line = X + Y, here()
        except RecursionError:
            return
        deepest[recorded] = levels
        if recorded and pp.created_at(made).kind == "known" and line_of(made) != line:
            wrong.append((line_of(made), line))
        down(levels + 1)

    old = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    try:
        for recorded in (True, False):
            with pp.recording(recorded), contextlib.suppress(RecursionError):
                down(0)
    finally:
        sys.setrecursionlimit(old)
    assert not wrong
    # Frames of ours beneath the host's: the profile function and its helpers most.
    assert deepest[True] >= deepest[False] - 12

# }}}


# {{{ threads

def test_threads_while_code_dies(strategy: str) -> None:
    """Tables are cleared and paths forgotten while others look them up."""
    stop = threading.Event()
    wrong: list[Any] = []

    def work(i: int) -> None:
        try:
            n = 0
            while not stop.is_set() or n < 20:
                n += 1
                made, line = X + Y, here()
                if line_of(made) != line:
                    wrong.append((line_of(made), line))
                scope: dict[str, Any] = {"X": X, "Y": Y}
                exec("\n" * (n % 7) + "def f(): return X + Y", scope)
                if line_of(scope["f"]()) != ("<string>", n % 7 + 1):
                    wrong.append(n)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(60):
        call_tree.forget_dead_code()
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_switching_strategies_leaves_nothing() -> None:
    before = len(call_tree._caches)
    for _ in range(3):
        for name in ("stack", "site", "profile"):
            pp.enable(capture=name)
            made, line = X + Y, here()
            assert line_of(made) == line
        pp.disable()
    assert len(call_tree._caches) == before
    assert sys.getprofile() is None


def test_strategies_give_one_site(strategy: str) -> None:
    """One way through the program is one site, whoever took it."""
    def make() -> Any:
        return X + Y

    sites: list[Any] = []
    for name in (strategy, "stack", "stack-pure", strategy):
        switch_on(name)
        sites.append([pp.created_at(make()) for _ in range(2)])
    for one, other in sites:
        assert one is other
    assert sites[0][0] is sites[3][0]
    assert sites[1][0] is sites[2][0]

# }}}


# {{{ copies

def build() -> Any:
    result = X
    for _ in range(50):
        result = result + Y * 2
    return result


def test_pickles_are_small(strategy: str) -> None:
    tagged = build()
    with pp.recording(False):
        untagged = build()
    size, plain = len(pickle.dumps(tagged)), len(pickle.dumps(untagged))
    # One stack, once: the loop's line is one site or two.
    stacks: set[Any] = set()
    node = tagged
    while hasattr(node, "bindings"):
        stacks.add(pp.created_at(node))
        node = next(iter(node.bindings.values()))
    once = sum(len(pickle.dumps(site)) for site in stacks)
    assert size <= 1.1 * plain + 2 * once
    again = pickle.loads(pickle.dumps(tagged))
    assert pp.created_at(again) is pp.created_at(tagged)


def test_stacks_are_shared_in_pickles(strategy: str) -> None:
    arrays = [X + Y for _ in range(100)]
    stream = io.BytesIO()
    pickle.Pickler(stream).dump([pp.created_at(array) for array in arrays])
    assert len(stream.getvalue()) < len(pickle.dumps(pp.created_at(arrays[0]))) + 300


def test_deepcopy(strategy: str) -> None:
    made = build()
    assert pp.created_at(copy.deepcopy(made)) is pp.created_at(made)
    assert pp.created_at(copy.copy(made)) is pp.created_at(made)

# }}}
