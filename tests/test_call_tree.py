"""The interned call tree: small, shared, and it lets go."""

from __future__ import annotations

import gc
import os
import sys
import threading
import tracemalloc
import weakref
from types import FrameType, TracebackType
from typing import Any

import pytato as pt
import pytest
from looking import run_python

import pytato_provenance as pp
from pytato_provenance import call_tree
from pytato_provenance.call_tree import CallNode, forget_dead_code, intern_stack
from pytato_provenance.sites import UNKNOWN, CreationSite


pytestmark = pytest.mark.usefixtures("disabled_afterwards")


def here() -> CreationSite:
    return intern_stack(sys._getframe(1))


def reachable(*roots: Any) -> list[Any]:
    """What is held by *roots*, apart from modules, classes and functions."""
    found: list[Any] = []
    seen: set[int] = set()
    pending = list(roots)
    while pending:
        item = pending.pop()
        if id(item) in seen or isinstance(item, type | type(sys)) or callable(item):
            continue
        seen.add(id(item))
        found.append(item)
        pending.extend(gc.get_referents(item))
    return found


def test_one_site_a_stack():
    sites = {here() for _ in range(5)}
    assert len(sites) == 1
    assert intern_stack(None) is UNKNOWN
    assert intern_stack(sys._getframe(), 0) is UNKNOWN
    site = here()
    assert site.frames[0].qualname == "test_one_site_a_stack"


def test_a_limit():
    def inner():
        return intern_stack(sys._getframe(), 2)

    site = inner()
    assert [frame.qualname.rpartition(".")[2] for frame in site.frames] == [
        "inner", "test_a_limit"]


def test_identical_functions_in_two_files():
    sites = []
    for name in ("<one file>", "<another file>"):
        namespace: dict[str, Any] = {"here": here}
        exec(compile("def f(): return here()", name, "exec"), namespace)
        sites.append(namespace["f"]())
    # Their code is equal, by the equality that code objects have.
    assert [site.frames[0].filename for site in sites] == [
        "<one file>", "<another file>"]


@pytest.mark.parametrize("iteration", range(3))
def test_specialised_instructions_do_not_multiply(iteration):
    """Before 3.13 an instruction moves on when it is specialised or traced."""
    def loop(values):
        return [values[0] for _ in range(60)]

    class Values:
        def __getitem__(self, index):
            return here()

    assert len(set(loop(Values()))) == 1
    trace = sys.gettrace()
    sys.settrace(lambda *args: None)
    try:
        traced = set(loop(Values()))
    finally:
        sys.settrace(trace)
    assert len(traced) == 1


def count(node: CallNode) -> int:
    number, pending = 0, [node]
    while pending:
        node = pending.pop()
        number += 1
        pending.extend(node.children.values())
    return number


def test_memory_grows_by_lines_not_by_arrays():
    source = "def f(n):\n" + "".join(
        f"    a{i} = pt.make_placeholder(name='x', shape=(), dtype=float)\n"
        for i in range(100))
    namespace: dict[str, Any] = {"pt": pt}
    exec(compile(source, "<hundred lines>", "exec"), namespace)

    def run(times, depth=10):
        if depth:
            run(times, depth - 1)
        else:
            for _ in range(times):
                namespace["f"](0)

    pp.enable()
    counts, grown = [], []
    tracemalloc.start()
    for times in (1, 30, 30):
        run(times)
        gc.collect()
        counts.append(count(call_tree._root))
        grown.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert counts[0] == counts[1] == counts[2]
    assert grown[2] - grown[0] < 20_000


def test_executed_code_is_forgotten():
    gc.collect()
    forget_dead_code()
    before, known = count(call_tree._root), len(call_tree._records)
    kept = []
    for i in range(50):
        namespace: dict[str, Any] = {"here": here}
        exec(compile(f"def f(): return here() # {i}", f"<exec {i}>", "exec"), namespace)
        site = namespace["f"]()
        if i == 7:
            kept.append(site)
    assert len(call_tree._records) >= known + 50
    del namespace, site
    gc.collect()
    assert forget_dead_code() >= 49
    assert len(call_tree._records) <= known + 6
    assert count(call_tree._root) <= before + 12
    # What is still asked for is whole.
    assert str(kept[0]) == "<exec 7>:1 in f"
    assert len(kept[0].frames) > 3


def test_the_sweep_comes_by_itself(monkeypatch):
    monkeypatch.setattr(call_tree, "_next_sweep", 0)
    monkeypatch.setattr(call_tree, "_SWEEP_AFTER", 20)
    before = len(call_tree._records)
    for i in range(200):
        namespace: dict[str, Any] = {"here": here}
        exec(compile("def f(): return here()", f"<sweep {i}>", "exec"), namespace)
        namespace["f"]()
        if i % 20 == 0:
            gc.collect()  # a function and its globals are a cycle
    assert len(call_tree._records) < before + 80


def test_no_frame_and_no_local_is_held():
    class Local:
        pass

    def function():
        local = Local()
        return here(), weakref.ref(local)

    site, local = function()
    _ = site.frames, site.user_frame, str(site), site.sort_key()
    assert local() is None
    held = reachable(site, call_tree._root, call_tree._records)
    assert len(held) > 10
    assert not [item for item in held if isinstance(item, FrameType | TracebackType)]
    assert not [item for item in held if isinstance(item, pt.Array | Local)]


def test_sites_die_with_the_code(monkeypatch):
    namespace: dict[str, Any] = {"here": here}
    exec(compile("def f(): return here()", "<dying>", "exec"), namespace)
    site = weakref.ref(namespace["f"]())
    del namespace
    gc.collect()
    forget_dead_code()
    assert site() is None


def test_from_many_threads():
    start = threading.Barrier(6)
    found: list[CreationSite] = []

    def recurse(depth):
        return here() if depth == 0 else recurse(depth - 1)

    def work():
        start.wait()
        for depth in range(40):
            found.append(recurse(depth % 7))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 240
    assert len(set(found)) == 7


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_while_another_thread_interns():
    program = (
        "import os, threading, warnings; warnings.simplefilter('ignore')\n"
        "import pytato_provenance as pp; pp.enable()\n"
        "import pytato as pt, pickle\n"
        "from pytato_provenance import call_tree, sites, source\n"
        "held, release = threading.Event(), threading.Event()\n"
        "def work():\n"
        "    with call_tree._lock, sites._lock, source._lock:\n"
        "        held.set(); release.wait()\n"
        "thread = threading.Thread(target=work); thread.start(); held.wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    x = pt.make_placeholder(name='x', shape=(), dtype=float)\n"
        "    pickle.dumps(pp.created_at(x))\n"
        "    pp.disable()\n"
        "    os._exit(7)\n"
        "release.set(); thread.join()\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n")
    assert run_python("-c", program, timeout=60) == "7\n"
