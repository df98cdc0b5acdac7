"""Every public operation of the host: whose line does it get?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import operations as ops
import pytato as pt
import pytest

import pytato_provenance as pp
from pytato_provenance import _host
from pytato_provenance.tags import site_of


if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytato_provenance import CreationSite


def nodes_in(value: Any) -> list[Any]:
    """Every node in *value*, whatever holds them."""
    if isinstance(value, tuple | list):
        return [node for item in value for node in nodes_in(item)]
    if isinstance(value, dict):
        return nodes_in(list(value.values()))
    types = _host.host().node_types
    if isinstance(value, types):
        return _host.nodes_in_post_order(value)
    if isinstance(value, _host.host().part_types):
        return nodes_in(list(_host.fields_of(value).values()))
    return []


def arrays_in(value: Any) -> list[Any]:
    return [node for node in nodes_in(value) if isinstance(node, pt.Array)]


def number_of_sites(array: Any) -> int:
    """How many creation tags *array* has, by looking at where this host keeps them."""
    if ops.IS_RELEASED:
        assert not any("CreatedAt" in type(tag).__name__ for tag in array.tags)
        return int(hasattr(array.tags, "created_at"))
    return sum("CreatedAt" in type(tag).__name__ for tag in array.non_equality_tags)


def where(site: CreationSite | None) -> ops.Line:
    assert site is not None
    frame = site.user_frame
    assert frame is not None
    # Nothing of the host, nor of ours, lies beneath the user's frame.
    assert site.frames[0] is frame
    return frame.filename, frame.lineno, frame.qualname.rpartition(".")[2]


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
    with pytest.raises(AssertionError) as recorded:
        operation.call(inputs)
    with pp.recording(False), pytest.raises(AssertionError) as plain:
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
    names = [frame.qualname.rpartition(".")[2] for frame in pp.created_at(product).frames]
    assert names.index("body") < names.index("trace_call") < names.index("noted")


def test_nothing_is_recorded_while_off(inputs):
    pp.disable()
    known = {id(node) for node in nodes_in(list(vars(inputs).values()))}
    for operation in ops.MAKES.operations:
        for node in arrays_in(operation.call(inputs)):
            assert id(node) in known or number_of_sites(node) == 0, operation
