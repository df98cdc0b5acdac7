"""Switching recording on and off: scopes, threads, tasks, generators, and no trace."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import copy
import dataclasses
import inspect
import json
import pickle
import re
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import looking
import operations as ops
import pytato as pt
import pytest
from looking import number_of_sites, run_python, where

import pytato_provenance as pp
from pytato_provenance import _patching, instrument, scope as scope_module
from pytato_provenance.diagnostic import ProvenanceWarning, UsageError
from pytato_provenance.sites import UNKNOWN
from pytato_provenance.testing import assert_pristine


pytestmark = pytest.mark.usefixtures("disabled_afterwards")


def an_array() -> Any:
    return pt.make_placeholder(name="x", shape=(4,), dtype=float)


def is_recorded() -> bool:
    """Whether an array made here and now gets a site."""
    return number_of_sites(an_array()) == 1


# {{{ switching

def test_on_and_off():
    assert not pp.is_enabled()
    assert pp.created_at(an_array()) is None
    pp.enable()
    assert pp.is_enabled()
    assert where(pp.created_at(an_array()))[2] == "an_array"
    pp.disable()
    assert not pp.is_enabled()
    assert pp.created_at(an_array()) is None
    assert_pristine()


def test_twice_is_once_and_off_without_on_is_nothing():
    pp.disable()
    pp.enable()
    installed = pt.transform.Mapper.rec
    pp.enable()
    assert pt.transform.Mapper.rec is installed
    assert is_recorded()
    pp.disable()
    assert_pristine()
    pp.disable()
    assert_pristine()


@pytest.mark.parametrize("arguments", [
    {"capture": "no such"}, {"audit": "no such"}, {"annotate": "no such"},
    {"no_such_option": 3}, {"capture": "stack", "max_frames": 0}], ids=str)
def test_bad_arguments_change_nothing(arguments):
    with pytest.raises(UsageError):
        pp.enable(**arguments)
    assert not pp.is_enabled()
    assert_pristine()

    pp.enable()
    strategy = instrument.active_strategy()
    with pytest.raises(UsageError):
        pp.enable(**arguments)
    assert instrument.active_strategy() is strategy
    assert is_recorded()


def test_a_scope_refuses_bad_arguments():
    with pytest.raises(UsageError, match="audit"):
        pp.recording(audit="no such")


def test_another_strategy_takes_over_in_open_scopes():
    with pp.recording():
        pp.enable(capture="stack", max_frames=1)
        assert instrument.active_strategy().max_frames == 1
        assert len(pp.created_at(an_array()).user_frames) == 1
        pp.enable()
        assert instrument.active_strategy().max_frames == 1
        pp.enable(capture="stack", max_frames=2)
        assert len(pp.created_at(an_array()).user_frames) == 2


def test_a_missing_host_is_named():
    program = (
        "import sys; sys.modules['pytato'] = None\n"
        "import pytato_provenance\n"
        "for call in ('enable()', 'recording().__enter__()', 'created_at(3)'):\n"
        "    try:\n"
        "        exec('pytato_provenance.' + call)\n"
        "    except ImportError as error:\n"
        "        print(type(error).__name__, 'pytato' in str(error))\n")
    assert run_python("-c", program) == "HostMissingError True\n" * 3

# }}}


# {{{ scopes

def test_scopes_nest():
    assert not is_recorded()
    with pp.recording() as outer:
        assert isinstance(outer, pp.recording)
        assert is_recorded()
        with pp.recording(False):
            assert not is_recorded()
            assert not pp.is_enabled()
            with pp.recording():
                assert is_recorded()
            assert not is_recorded()
        assert is_recorded()
    assert not is_recorded()
    # The patches stay until they are taken out.
    with pytest.raises(AssertionError, match=r"Mapper\.rec is patched"):
        assert_pristine()


def test_exceptions_restore():
    with pp.recording():
        with pytest.raises(ZeroDivisionError), pp.recording(False):
            raise ZeroDivisionError
        assert is_recorded()
    assert not is_recorded()


def test_one_scope_can_be_entered_again():
    scope = pp.recording()
    with scope:
        with scope:
            assert is_recorded()
        assert is_recorded()
    assert not is_recorded()
    with scope:
        assert is_recorded()
    assert not is_recorded()


def test_scopes_that_overlap():
    one, other = pp.recording(), pp.recording(False)
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert not is_recorded()
    other.__exit__(None, None, None)
    assert not pp.is_enabled()

    other.__enter__()
    one.__enter__()
    other.__exit__(None, None, None)
    assert is_recorded()
    one.__exit__(None, None, None)
    assert scope_module._scope.get() is None
    one.__exit__(None, None, None)
    assert scope_module._scope.get() is None


def test_a_scope_within_enable():
    pp.enable()
    with pp.recording(False):
        assert not is_recorded()
    assert is_recorded()


def test_disable_ends_open_scopes():
    with pp.recording():
        with pp.recording():
            pp.disable()
            assert not pp.is_enabled()
            assert not is_recorded()
            assert_pristine()
        assert not is_recorded()
        pp.enable()
        assert is_recorded()
        with pp.recording(False):
            assert not is_recorded()
        pp.disable()
        with pp.recording():
            assert is_recorded()
        assert not is_recorded()
    assert not is_recorded()


def test_many_scopes_patch_once(monkeypatch):
    replaced: list[str] = []
    monkeypatch.setattr(
        _patching, "_replacement", lambda item, make=_patching._replacement: (
            replaced.append(str(item.point)), make(item))[1])
    with pp.recording():
        pass
    once = list(replaced)
    assert once
    before = attributes_by_identity()
    for _ in range(2000):
        with pp.recording():
            pass
    assert replaced == once
    assert changed(before, attributes_by_identity()) == set()

# }}}


# {{{ threads, tasks, generators

def test_a_scope_is_its_threads():
    with pp.recording(), ThreadPoolExecutor(1) as pool:
        assert not pool.submit(is_recorded).result()
        assert is_recorded()


def test_enable_is_everybodys():
    with ThreadPoolExecutor(1) as pool:
        assert not pool.submit(is_recorded).result()
        pp.enable()
        assert pool.submit(is_recorded).result()
        with pp.recording(False):
            assert pool.submit(is_recorded).result()
            assert not is_recorded()
        pp.disable()
        assert not pool.submit(is_recorded).result()


def test_one_scope_object_in_two_threads():
    scope = pp.recording()
    entered, left = threading.Event(), threading.Event()
    found = []

    def work():
        with scope:
            entered.set()
            left.wait(10)
            found.append(is_recorded())
        found.append(is_recorded())

    thread = threading.Thread(target=work)
    with scope:
        thread.start()
        assert entered.wait(10)
    assert not is_recorded()
    left.set()
    thread.join()
    assert found == [True, False]


def test_many_threads_get_their_own_lines():
    pp.enable()
    start = threading.Barrier(4)

    def work(number):
        namespace = {"pt": pt}
        source = "\n" * number + "def f(): return pt.make_placeholder("\
            "name='x', shape=(4,), dtype=float)\n"
        exec(compile(source, f"<thread {number}>", "exec"), namespace)
        start.wait()
        return {where(pp.created_at(namespace["f"]()))[:2] for _ in range(300)}

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [
            {(f"<thread {number}>", number + 1)} for number in range(4)]


def test_switching_from_many_threads():
    start = threading.Barrier(5)
    failures: list[object] = []

    def work(number):
        start.wait()
        try:
            for turn in range(40):
                if number == 0:
                    (pp.enable, pp.disable)[turn % 2]()
                elif number == 1:
                    pp.enable(capture="stack", max_frames=1 + turn % 3)
                else:
                    with pp.recording(turn % 3 != 0):
                        made = an_array() + 1
                        if number_of_sites(made) > 1:
                            failures.append(made)
                        site = pp.created_at(made)
                        if site is not None and site.user_frame.filename != __file__:
                            failures.append(site)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(5)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures
    pp.disable()
    assert_pristine()
    assert not is_recorded()


def test_a_scope_is_its_tasks():
    async def records(turns):
        with pp.recording():
            await turns()
            return is_recorded()

    async def does_not(turns):
        await turns()
        return is_recorded()

    async def main():
        async def turns():
            for _ in range(3):
                await asyncio.sleep(0)
        return await asyncio.gather(records(turns), does_not(turns), records(turns),
                                    does_not(turns))

    assert asyncio.run(main()) == [True, False, True, False]
    assert not is_recorded()


def test_a_task_started_in_a_scope_stays_in_it_until_disable():
    async def main():
        go = asyncio.Event()

        async def child():
            await go.wait()
            first = is_recorded()
            pp.disable()
            return first, is_recorded()

        with pp.recording():
            task = asyncio.create_task(child())
        assert not is_recorded()
        go.set()
        return await task

    assert asyncio.run(main()) == (True, False)


def test_a_generator_that_is_finalised_elsewhere():
    def generate():
        with pp.recording():
            yield is_recorded()

    context = contextvars.copy_context()
    generator = generate()
    assert context.run(next, generator)
    with pp.recording():
        generator.close()
        assert is_recorded()
    assert not is_recorded()

# }}}


# {{{ decorator

def test_decorated_function():
    @pp.recording()
    def function(a, *, b=2):
        """Text."""
        return a, b, is_recorded()

    assert function(1) == (1, 2, True)
    assert function.__name__ == "function"
    assert function.__doc__ == "Text."
    assert list(inspect.signature(function).parameters) == ["a", "b"]
    assert not is_recorded()

    @pp.recording()
    def recursive(depth):
        return is_recorded() and (depth == 0 or recursive(depth - 1))

    assert recursive(5)
    assert not is_recorded()


@pytest.mark.parametrize("thing", [3, None, int, "name"])
def test_what_cannot_be_decorated(thing):
    with pytest.raises(UsageError, match="decorates functions"):
        pp.recording()(thing)


def test_decorated_method_of_two_threads():
    class Thing:
        @pp.recording()
        def method(self):
            return is_recorded()

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(lambda _: Thing().method(), range(20)))


def test_decorated_to_switch_off():
    @pp.recording(False)
    def quiet():
        return is_recorded()

    pp.enable()
    assert not quiet()
    assert is_recorded()


def test_decorated_coroutine_function():
    @pp.recording()
    async def records():
        before = is_recorded()
        await asyncio.sleep(0)
        return before, is_recorded()

    assert inspect.iscoroutinefunction(records)

    async def main():
        async def beside():
            found = []
            for _ in range(4):
                found.append(is_recorded())
                await asyncio.sleep(0)
            return found

        results = await asyncio.gather(records(), beside())
        return results, is_recorded()

    assert asyncio.run(main()) == ([(True, True), [False] * 4], False)


def test_decorated_generator_function():
    log = []

    @pp.recording()
    def generate(first):
        try:
            got = yield first, is_recorded()
            try:
                yield got, is_recorded()
            except KeyError:
                log.append(("thrown", is_recorded()))
            yield "again", is_recorded()
            return is_recorded()
        finally:
            log.append(("closed", is_recorded()))

    assert inspect.isgeneratorfunction(generate) or True
    generator = generate(1)
    assert next(generator) == (1, True)
    assert not is_recorded()
    assert generator.send(2) == (2, True)
    assert not is_recorded()
    assert generator.throw(KeyError) == ("again", True)
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value is True
    assert log == [("thrown", True), ("closed", True)]

    generator = generate(1)
    next(generator)
    generator.close()
    assert log[-1] == ("closed", True)
    assert not is_recorded()

    with pytest.raises(ZeroDivisionError):
        generator = generate(1)
        next(generator)
        generator.throw(ZeroDivisionError)
    assert not is_recorded()

    def delegates():
        return (yield from generate(1))

    assert list(delegates()) == [(1, True), (None, True), ("again", True)]


def test_two_decorated_generators_interleave():
    @pp.recording()
    def on():
        for _ in range(3):
            yield is_recorded()

    @pp.recording(False)
    def off():
        for _ in range(3):
            yield is_recorded()

    assert list(zip(on(), off(), on())) == [(True, False, True)] * 3  # noqa: B905


def test_decorated_async_generator_function():
    log = []

    @pp.recording()
    async def generate():
        try:
            got = yield is_recorded()
            await asyncio.sleep(0)
            yield got, is_recorded()
        finally:
            log.append(is_recorded())

    async def main():
        generator = generate()
        assert await anext(generator) is True
        assert not is_recorded()
        assert await generator.asend(2) == (2, True)
        assert not is_recorded()
        with pytest.raises(StopAsyncIteration):
            await anext(generator)
        assert [item async for item in generate()] == [True, (None, True)]
        generator = generate()
        await anext(generator)
        await generator.aclose()
        generator = generate()
        await anext(generator)
        with pytest.raises(KeyError):
            await generator.athrow(KeyError)
        return is_recorded()

    assert asyncio.run(main()) is False
    assert log == [True] * 4

# }}}


# {{{ coverage, and no trace

IMPORTED_BEFORE = """
from pytato import make_placeholder, roll, stack, generate_loopy
from pytato.array import Array, make_index_lambda
import operations as ops
add = Array.__add__
import pytato_provenance as pp
pp.enable()
x = (ops.at(), make_placeholder(name="x", shape=(4,), dtype=float))[1]
y = (ops.at(), add(x, 1))[1]
z = (ops.at(), roll(y, 1))[1]
for array, (_, lineno, _) in zip((x, y, z), ops._lines, strict=True):
    print(pp.created_at(array).user_frame.lineno == lineno)
"""


def test_names_imported_before():
    # The import below may need the mend; what matters is that it comes first.
    program = "import pytato_provenance; pytato_provenance.mend_released_pytato()\n"
    assert run_python("-c", program + IMPORTED_BEFORE) == "True\n" * 3


def test_importing_patches_nothing():
    program = (
        "import pytato_provenance as pp; pp.mend_released_pytato()\n"
        "import pytato, test_instrument as t\n"
        "before = t.attributes_by_identity()\n"
        "for name in pp.__all__: getattr(pp, name)\n"
        "from pytato_provenance.testing import assert_pristine; assert_pristine()\n"
        "print(t.changed(before, t.attributes_by_identity()))\n")
    assert run_python("-c", program) == "set()\n"


def host_modules() -> list[Any]:
    return [module for name, module in sorted(sys.modules.items())
            if name.partition(".")[0] in ("pytato", "loopy", "pyopencl", "pytools")
            and module is not None]


def attributes_by_identity() -> dict[tuple[str, str], Any]:
    """What is in the namespaces of the host's modules and of the classes in them."""
    found = {}
    for module in host_modules():
        found.update({(module.__name__, name): value
                      for name, value in vars(module).items()})
        for owner in list(vars(module).values()):
            if isinstance(owner, type) and owner.__module__.startswith("pytato"):
                found.update({(f"{owner.__module__}.{owner.__qualname__}", name): value
                              for name, value in vars(owner).items()})
    return found


def changed(before: dict[Any, Any], after: dict[Any, Any]) -> set[str]:
    return {".".join(key) for key, value in before.items()
            if after.get(key, ops) is not value}


NO_TRACE = """
import json, sys
import pytato_provenance as pp
pp.mend_released_pytato()
import pytato as pt, loopy, pyopencl
import test_instrument as t
import operations as ops
before = t.attributes_by_identity()
if sys.argv[1] == "plugin":
    pp.enable()
inputs = ops.Inputs()
for operation in ops.MAKES.operations:
    operation.call(inputs)
pt.get_dot_graph(inputs.lam)
pt.generate_loopy(inputs.lam)
if sys.argv[1] == "plugin":
    with pp.recording():
        pt.transform.CopyMapper()(inputs.lam)
    pp.disable()
else:
    pt.transform.CopyMapper()(inputs.lam)
after = t.attributes_by_identity()
print(json.dumps([sorted(t.changed(before, after)),
                  sorted(".".join(key) for key in after.keys() - before.keys())]))
"""


def test_after_disable_every_attribute_is_the_identical_object():
    changed_with, new_with = json.loads(run_python("-c", NO_TRACE, "plugin"))
    changed_without, new_without = json.loads(run_python("-c", NO_TRACE, "control"))
    assert set(changed_with) <= set(changed_without)
    assert set(new_with) <= set(new_without)


def test_wrappers_that_were_taken_meanwhile_are_inert():
    pp.enable()
    places = [item for layers in _patching._layers.values() for item in layers
              if not item.lasting]
    assert len(places) > 4
    wrappers = {str(item.point): vars(item.owner)[item.name] for item in places}
    inputs = ops.Inputs()
    pp.disable()

    class Meanwhile(pt.transform.CopyMapper):
        pass

    # What a user's module has by name, or has derived from, it has for good.
    owners = {str(item.point): (item.owner, item.name) for item in places}
    with pytest.MonkeyPatch.context() as patch:
        for name, wrapper in wrappers.items():
            patch.setattr(*owners[name], wrapper)
        known = {id(node) for node in looking.nodes_in(list(vars(inputs).values()))}
        for operation in ops.MAKES.operations:
            for node in looking.arrays_in(operation.call(inputs)):
                assert id(node) in known or number_of_sites(node) == 0, operation
        plain = an_array() * 2
        assert number_of_sites(Meanwhile()(plain)) == 0
        assert set(re.findall('tooltip=".*?"', pt.get_dot_graph(plain))) <= {
            'tooltip="&lt;unknown&gt;"'}


def test_wrappers_look_like_what_they_wrap():
    before = attributes_by_identity()
    pp.enable()
    after = attributes_by_identity()
    patched = [(value, after[key]) for key, value in before.items()
               if after[key] is not value]
    assert len(patched) > 3
    for original, wrapper in patched:
        assert wrapper.__wrapped__ is original
        assert wrapper.__name__ == original.__name__
        assert wrapper.__doc__ == original.__doc__
        assert inspect.signature(wrapper) == inspect.signature(original)

# }}}


# {{{ what a program can see

def test_switched_on_half_way():
    old = an_array() + 1
    with pp.recording():
        new = old * 2
        again = old * 2
    assert pp.created_at(old) is None
    assert pp.created_at(new.bindings["_in0"]) is None
    assert where(pp.created_at(new))[2] == "test_switched_on_half_way"
    assert pp.created_at(new) is not pp.created_at(again)
    untagged = old * 2
    assert new == again == untagged
    assert hash(new) == hash(again) == hash(untagged)
    assert len({new, again, untagged}) == 1
    with pp.recording():
        copied = pp.ProvenanceCopyMapper()(new)
        assert copied == new or ops.IS_RELEASED  # inputs compare by identity there
        assert pp.created_at(copied) is pp.created_at(new)
        assert pp.created_at(copied.bindings["_in0"]) is None
        pt.get_dot_graph(copied)
        pt.generate_loopy(copied)


@pytest.mark.skipif(ops.IS_RELEASED, reason="has no creation tag of its own")
def test_together_with_the_hosts_own_tags():
    made_before = an_array() + 1
    pt.set_traceback_tag_enabled(True)
    try:
        made_by_host = an_array() + 1
        pp.enable()
        inputs = ops.Inputs()
        for table in (ops.MAKES, ops.GIVES_BACK, ops.TAKES_OVER):
            for operation in table.operations:
                for node in looking.arrays_in(operation.call(inputs)):
                    assert number_of_sites(node) == 1, operation
        # The host's own tag is a site as well.
        assert where(pp.created_at(made_by_host))[2] == (
            "test_together_with_the_hosts_own_tags")
        both = pt.roll(made_by_host, 1) * (made_before - 3)
        both = pt.transform.deduplicate(both)
        for transform in (pt.transform.CopyMapper(), pt.transform.deduplicate,
                          pp.ProvenanceCopyMapper(), pp.through(lambda dag: dag)):
            result = transform(both)
            assert number_of_sites(result) == 1
        assert number_of_sites(made_before.copy(axes=made_before.axes)) == 1
        # Rebuilt in place of one that has no site: the host's assertion stays silent.
        rebuilt = pt.transform.map_and_copy(
            made_before, lambda node: node.copy(tags=node.tags | {ops.FOREIGN}))
        assert pp.created_at(rebuilt) is UNKNOWN
    finally:
        pp.disable()
        pt.set_traceback_tag_enabled(False)


@pytest.mark.parametrize("kind", ["off", "on"])
def test_host_exceptions_reach_the_user_untouched(kind):
    x = an_array()
    failing = {
        "broadcast": lambda: x + pt.make_placeholder(name="y", shape=(5,), dtype=int),
        "reshape": lambda: pt.reshape(x, (3,)),
        "index": lambda: x[1, 2, 3],
        "stack": lambda: pt.stack([]),
        "operand": lambda: x + "text",
        "missing": lambda: pt.make_placeholder(),
        "entry": lambda: pt.make_dict_of_named_arrays({"a": x})["b"],
        "mapper": lambda: pt.transform.CopyMapper()(object()),
    }
    plain = {}
    for name, call in failing.items():
        with pytest.raises(Exception) as caught:
            call()
        plain[name] = caught.value
    with pp.recording(kind == "on"):
        for name, call in failing.items():
            with pytest.raises(type(plain[name])) as caught:
                call()
            assert caught.value.args == plain[name].args or name == "mapper"
            assert caught.value.__cause__ is None
            assert (caught.value.__context__ is None) == (
                plain[name].__context__ is None)


def capture_fails_with(error):
    class Strategy:
        limit = 0

        def lookup(self, skip, limit):
            raise error

    scope_module.set_everywhere(
        dataclasses.replace(scope_module.current_scope(), capture=Strategy()))


def test_a_failure_of_ours_is_an_unknown_site_and_one_warning(monkeypatch):
    monkeypatch.setattr(scope_module, "_warned", set())

    pp.enable()
    capture_fails_with(LookupError("a defect"))
    with pytest.warns(ProvenanceWarning, match=r"LookupError: a defect") as caught:
        made = [an_array() + 1 for _ in range(3)]
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert [pp.created_at(array) for array in made] == [UNKNOWN] * 3
    assert made[0] == made[1] or ops.IS_RELEASED


def test_a_failure_of_ours_is_none_of_the_programs_under_strict_warnings(monkeypatch):
    monkeypatch.setattr(scope_module, "_warned", set())

    pp.enable()
    capture_fails_with(LookupError("a defect"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pp.created_at(an_array()) is UNKNOWN


def test_what_may_interrupt_still_does():
    pp.enable()
    capture_fails_with(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        an_array()


def test_results_are_what_they_are_without(queue):
    import numpy as np

    def program():
        x = pt.make_placeholder(name="x", shape=(6,), dtype=np.float64)
        return pt.generate_loopy(pt.make_dict_of_named_arrays(
            {"out": pt.roll(x, 2) * pt.sin(x) + pt.sum(x)}))

    data = np.arange(6.0)
    _, plain = program()(queue, x=data)
    with pp.recording():
        _, recorded = program()(queue, x=data)
    np.testing.assert_array_equal(plain["out"], recorded["out"])


def test_equality_hash_and_pickle_do_not_see_it():
    def dag(n=[]):  # noqa: B006
        n[:] = n or [an_array()]
        return pt.roll(n[0] + 1, 1) * 2

    plain = dag()
    with pp.recording():
        recorded = dag()
    assert plain == recorded
    assert hash(plain) == hash(recorded)
    assert plain.tags == recorded.tags
    assert repr(plain) == repr(recorded) or ops.IS_RELEASED
    for copied in (pickle.loads(pickle.dumps(recorded)), copy.deepcopy(recorded)):
        assert pp.created_at(copied) is pp.created_at(recorded)
        assert number_of_sites(copied) == 1

# }}}


def test_one_line_within_and_without_a_region():
    pp.enable()
    regions = []
    without = contextlib.nullcontext()
    for context in (without, pp.region("in"), without):
        with context:
            regions.append(pp.created_at(an_array()).region)
    assert regions == [None, "in", None]


def test_a_worker_process(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing, sys\n"
        "import pytato_provenance as pp\n"
        "pp.enable()\n"
        "import pytato as pt\n"
        "def work(number):\n"
        "    x = pt.make_placeholder(name='x', shape=(4,), dtype=float)\n"
        "    return x + number\n"
        "if __name__ == '__main__':\n"
        "    context = multiprocessing.get_context(sys.argv[1])\n"
        "    with context.Pool(1) as pool:\n"
        "        made = pool.map(work, range(2))\n"
        "    sites = [pp.created_at(array) for array in made]\n"
        "    print(*sites, sites[0] is sites[1], sep='; ')\n")
    for method in ("fork", "spawn"):
        output = run_python("-W", "ignore", str(program), method)
        assert output == "program.py:7 in work; program.py:7 in work; True\n", method
