"""Every public operation of the host: whose line does it get?"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING

import operations as ops
import pytato as pt
import pytest
from looking import arrays_in, nodes_in, number_of_sites, run_python, where

import pytato_provenance as pp
from pytato_provenance import _host
from pytato_provenance.capture import strategy_names
from pytato_provenance.diagnostic import CaptureUnavailableError
from pytato_provenance.patch_points import NOT_HOOKED
from pytato_provenance.tags import site_of


if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def inputs() -> Iterator[ops.Inputs]:
    pp.enable()
    try:
        yield ops.Inputs()
    finally:
        pp.disable()


@pytest.mark.parametrize("operation", ops.MAKES.operations, ids=str)
def test_new_nodes_are_created_at_the_calling_line(operation, inputs):
    before = {id(node) for node in nodes_in(list(vars(inputs).values()))}
    result, lines = ops.lines_of(lambda: operation.call(inputs))
    line, = lines
    new = [node for node in arrays_in(result) if id(node) not in before]
    assert new, "makes no node"
    for node in new:
        assert number_of_sites(node) == 1, node
        assert where(pp.created_at(node)) == line, node


@pytest.mark.parametrize("capture", strategy_names())
def test_whatever_the_strategy(capture):
    try:
        pp.enable(capture=capture)
    except CaptureUnavailableError as error:
        pytest.skip(str(error))
    try:
        inputs = ops.Inputs()
        before = {id(node) for node in nodes_in(list(vars(inputs).values()))}
        wrong = []
        for operation in ops.MAKES.operations:
            result, lines = ops.lines_of(lambda o=operation: o.call(inputs))
            for node in arrays_in(result):
                if id(node) not in before and where(pp.created_at(node)) != lines[0]:
                    wrong.append((str(operation), str(pp.created_at(node))))
    finally:
        pp.disable()
    assert not wrong


@pytest.mark.parametrize("operation", ops.GIVES_BACK.operations, ids=str)
def test_an_array_that_comes_back_keeps_its_site(operation, inputs):
    before = {id(node): site_of(node) for node in nodes_in(list(vars(inputs).values()))}
    result = operation.call(inputs)
    assert isinstance(result, pt.Array)
    assert id(result) in before
    assert site_of(result) is before[id(result)]
    for node in nodes_in(result):
        assert site_of(node) is before[id(node)]


@pytest.mark.parametrize("operation", ops.TAKES_OVER.operations, ids=str)
def test_a_node_that_takes_anothers_site(operation, inputs):
    before = {id(node) for node in nodes_in(list(vars(inputs).values()))}
    result, other = operation.call(inputs)
    assert id(result) not in before
    assert number_of_sites(result) == 1
    assert site_of(result) is site_of(other)
    assert site_of(other) is not None


@pytest.mark.parametrize("operation", ops.REFUSES.operations, ids=str)
def test_what_the_host_refuses_stays_refused(operation, inputs):
    with pytest.raises(Exception) as recorded:
        operation.call(inputs)
    with pp.recording(False), pytest.raises(type(recorded.value)) as plain:
        operation.call(inputs)
    assert recorded.value.args == plain.value.args


def test_all_of_one_user_facing_call_that_spans_lines(inputs):
    first = ops.traceback.extract_stack()[-1].lineno
    made = pt.stack([
        inputs.x + 1,
        inputs.y * 2,
    ])
    last = ops.traceback.extract_stack()[-1].lineno
    assert first + 1 == where(pp.created_at(made))[1]
    assert [where(pp.created_at(a))[1] for a in made.arrays] == [first + 2, first + 3]
    assert last == first + 5


@pytest.mark.skipif(ops.IS_RELEASED, reason="no traced functions")
def test_a_traced_function_has_its_own_lines(inputs):
    def body(v):
        ops.at()
        doubled = v + v; ops.at()  # noqa: E702
        return {"out": doubled * v}

    def noted():
        ops.at(); return pt.trace_call(body, inputs.v)  # noqa: E702

    result, (call, _, doubled, *_) = ops.lines_of(noted)
    definition = result["out"].call.function
    product = definition.returns["out"]
    placeholder = definition.get_placeholder("in__pt_0")
    assert where(pp.created_at(placeholder)) == call
    assert where(pp.created_at(product.bindings["_in0"])) == doubled
    assert where(pp.created_at(product))[1] == doubled[1] + 1
    assert pp.created_at(result["out"]) is pp.created_at(product)
    # The way from the traced function back to the caller is in the stack.
    names = [frame.qualname.rpartition(".")[2]
             for frame in pp.created_at(product).frames]
    assert names.index("body") < names.index("trace_call") < names.index("noted")


OPTIMIZED = """
import operations as ops
import pytato_provenance as pp
from looking import arrays_in, nodes_in, number_of_sites
assert False, "not optimized"

def attempt(operation):
    try:
        return ops.lines_of(lambda: operation.call(inputs)), None
    except Exception as error:
        return (None, None), (type(error), error.args)

pp.enable()
inputs = ops.Inputs()
before = {id(node) for node in nodes_in(list(vars(inputs).values()))}
sound = 0
for operation in ops.MAKES.operations:
    (result, lines), error = attempt(operation)
    with pp.recording(False):
        if error != attempt(operation)[1]:
            print(operation, error)
    new = [node for node in arrays_in(result) if id(node) not in before]
    for node in new:
        site = pp.created_at(node)
        frame = site and site.frames and site.frames[0]
        if number_of_sites(node) != 1 or (frame.filename, frame.lineno) != lines[0][:2]:
            print(operation, node, site, lines)
    if not new and error is None:
        print(operation, "makes no node")
    sound += error is None
for operation in ops.TAKES_OVER.operations:
    (result, _), error = attempt(operation)
    if error is None:
        node, other = result
        if number_of_sites(node) != 1 or (
                ops.site_beside(node) is not ops.site_beside(other)):
            print(operation, ops.site_beside(node), ops.site_beside(other))
pp.disable()
for operation in ops.MAKES.operations:
    for node in arrays_in(attempt(operation)[0][0]):
        if id(node) not in before and number_of_sites(node):
            print("after disable", operation)
print(sound > 0.9 * len(ops.MAKES.operations))
"""


def test_all_of_it_without_assertions_in_the_host():
    assert run_python("-O", "-c", OPTIMIZED) == "True\n"


def test_nothing_is_recorded_while_off(inputs):
    pp.disable()
    known = {id(node) for node in nodes_in(list(vars(inputs).values()))}
    for operation in ops.MAKES.operations:
        for node in arrays_in(operation.call(inputs)):
            assert id(node) in known or number_of_sites(node) == 0, operation


# {{{ nothing is forgotten

COVERED = {name for table in ops.TABLES for operation in table.operations
           for name in operation.covers}

# What every Python class has; constructors are called by the operations on classes.
OF_ANY_CLASS = {*dir(object), "__abstractmethods__", "__annotations__", "__dict__",
                "__module__", "__orig_bases__", "__parameters__", "__post_init__",
                "__setstate__", "__static_attributes__", "__firstlineno__", "__slots__",
                "__weakref__", "__array_priority__", "__class_getitem__"}


def public_names():
    yield from (f"pytato.{name}" for name in pt.__all__)
    for info in pkgutil.walk_packages(pt.__path__, "pytato."):
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if not name.startswith("_") and inspect.isfunction(value) and (
                    value.__module__ == module.__name__
                    and getattr(pt, name, None) is not value):
                yield f"{module.__name__}.{name}"


def members():
    """Operators, methods and properties of every class of arrays and of what holds
    arrays, those that a class inherits from the ecosystem's base classes included."""
    host = _host.host()
    classes = [*host.array_types, host.container, *host.container.__subclasses__(),
               *host.part_types]
    if host.function_definition is not None:
        classes.append(host.function_definition)
    for cls in classes:
        if not cls.__module__.startswith("pytato."):
            continue
        for base in cls.__mro__:
            if not base.__module__.startswith(("pytato.", "pytools.")):
                continue
            for name, value in vars(base).items():
                private = name.startswith("_") and not name.startswith("__")
                if not private and hasattr(value, "__get__"):
                    yield base.__name__, name


def is_accounted_for(name):
    if name in COVERED or name in NOT_HOOKED:
        return True
    module = name.rpartition(".")[0]
    while module:
        if f"{module}.*" in NOT_HOOKED:
            return True
        module = module.rpartition(".")[0]
    return False


def test_every_public_name_is_tested_or_listed_with_a_reason():
    forgotten = [name for name in public_names() if not is_accounted_for(name)]
    assert not forgotten, ", ".join(forgotten)


def test_every_member_is_tested_or_listed_with_a_reason():
    forgotten = {f"{cls}.{name}" for cls, name in members()
                 if name not in OF_ANY_CLASS
                 and not is_accounted_for(f"{cls}.{name}")
                 and not is_accounted_for(f"Array.{name}")}
    assert not forgotten, ", ".join(sorted(forgotten))


def test_an_addition_upstream_fails(monkeypatch):
    monkeypatch.setattr(pt, "__all__", (*pt.__all__, "brand_new"))
    monkeypatch.setattr(pt.Array, "__divmod__", lambda self, other: self, raising=False)
    monkeypatch.setattr(pt.Array, "cbrt", property(lambda self: self), raising=False)
    with pytest.raises(AssertionError, match="brand_new"):
        test_every_public_name_is_tested_or_listed_with_a_reason()
    with pytest.raises(AssertionError, match=r"(?s)Array.__divmod__.*Array.cbrt"):
        test_every_member_is_tested_or_listed_with_a_reason()


def test_nothing_is_both_tested_as_made_and_listed():
    made = {name for operation in ops.MAKES.operations for name in operation.covers}
    assert made & NOT_HOOKED.keys() == set()
    assert all(NOT_HOOKED.values())

# }}}
