"""Sites in pytato's own graphs."""

from __future__ import annotations

import html
import os
import re
import traceback
from typing import Any

import operations as ops
import pytato as pt
import pytest
from pytato import get_dot_graph

import pytato_provenance as pp
from pytato_provenance.sites import UNKNOWN, merge_sites, synthetic_site
from pytato_provenance.tags import with_site
from pytato_provenance.tooltips import tooltip


pytestmark = pytest.mark.usefixtures("disabled_afterwards")

HERE = os.path.basename(__file__)


def tooltips(graph: str) -> list[str]:
    """What a reader of the DOT language finds in the attributes of that name."""
    found = re.findall(r'tooltip="((?:[^"\\]|\\.)*)"', graph, re.DOTALL)
    return [html.unescape(text).replace("\\\\", "\\") for text in found]


def without_tooltips(graph: str) -> str:
    return re.sub(r' tooltip="(?:[^"\\]|\\.)*"', "", graph)


def without_addresses(graph: str) -> str:
    return re.sub(r"0x[0-9a-f]+", "0x", graph)


def small_dag() -> tuple[Any, list[tuple[int, str]]]:
    """Three nodes; the line and the source of each."""
    lines = []

    def here() -> None:
        frame = traceback.extract_stack()[-2]
        lines.append((frame.lineno, frame.line))

    x = pt.make_placeholder(name="x", shape=(4,), dtype=float); here()  # noqa: E702
    y = x + 1; here()  # noqa: E702
    z = pt.roll(y, 2); here()  # noqa: E702
    return pt.make_dict_of_named_arrays({"out": z}), lines


@pytest.fixture
def plain_graph() -> str:
    """pytato's own, of arrays that nothing recorded."""
    return get_dot_graph(small_dag()[0])


def test_each_node_shows_its_line(plain_graph):
    with pp.recording():
        dag, lines = small_dag()
        graph = get_dot_graph(dag)
    assert tooltips(graph) == [
        f"{HERE}:{lineno} in small_dag: {source}" for lineno, source in lines]
    assert os.path.dirname(__file__) not in graph

    pp.disable()
    assert without_addresses(without_tooltips(graph)) == (
        without_addresses(without_tooltips(plain_graph)))


def test_without_sites_it_is_pytatos_own(plain_graph):
    dag, _ = small_dag()
    plain = get_dot_graph(dag)
    pp.enable()
    assert get_dot_graph(dag) == plain
    pp.disable()
    assert get_dot_graph(dag) == plain
    assert without_addresses(plain) == without_addresses(plain_graph)
    assert [text for text in tooltips(plain) if text != "<unknown>"] == []


@pytest.mark.skipif(not ops.IS_RELEASED, reason="reads our tag by itself, on or off")
def test_when_switched_off_it_is_pytatos_own(plain_graph):
    with pp.recording():
        dag, _ = small_dag()
        assert get_dot_graph(dag) != plain_graph
    pp.disable()
    assert get_dot_graph(dag) == plain_graph


def test_show_dot_graph(monkeypatch):
    shown: list[str] = []
    module = __import__("pymbolic.imperative.utils" if ops.IS_RELEASED
                        else "pytools.graphviz", fromlist=["show_dot"])
    monkeypatch.setattr(module, "show_dot", lambda code, **kwargs: shown.append(code))
    with pp.recording():
        dag, _ = small_dag()
        pt.show_dot_graph(dag)
        expected = get_dot_graph(dag)
    assert shown == [expected]
    assert len(tooltips(expected)) == 3


def two_lines(x: Any) -> Any:
    first = x + 1
    second = x + 1
    return first, second


def test_equal_nodes_show_all_lines():
    with pp.recording():
        x = pt.make_placeholder(name="x", shape=(4,), dtype=float)
        first, second = two_lines(x)
        both = first * second
        if not ops.IS_RELEASED:
            # This host refuses to draw what it has not merged.
            both = pp.through(pt.transform.deduplicate)(both)
        graph = get_dot_graph(both)
    start = two_lines.__code__.co_firstlineno
    expected = (f"{HERE}:{start + 1} in two_lines: first = x + 1; "
                f"also {HERE}:{start + 2} in two_lines: second = x + 1")
    assert tooltips(graph).count(expected) == 1
    assert len(tooltips(graph)) == 3


HOSTILE = ['quote".py', "back\\slash\\", "new\nline", "tag</script><b>&amp;", "star*/",
           "\u202emark", "half\ud800", "trigraph??/", '\\"', "]", "tab\t\x1b[31m"]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_hostile_names_stay_text(name):
    namespace: dict[str, Any] = {}
    exec(compile("def f(x): return x + 1", f"<{name}>", "exec"), namespace)
    function = namespace["f"]
    function.__code__ = function.__code__.replace(co_name=name)
    x = pt.make_placeholder(name="x", shape=(4,), dtype=float)
    plain = get_dot_graph(function(x))
    with pp.recording():
        graph = get_dot_graph(function(x))
    graph.encode()
    assert "\x1b" not in graph
    shown = tooltips(graph)[-1]
    assert shown.isprintable()
    assert ":1 in " in shown
    # Nothing ended a string or a line: the rest is what it is without.
    assert without_addresses(without_tooltips(graph)) == (
        without_addresses(without_tooltips(plain)))
    assert graph.count("\n") == plain.count("\n")


@pytest.mark.skipif(ops.IS_RELEASED, reason="draws no calls")
def test_calls_show_their_line():
    pp.enable()
    inputs = ops.Inputs()
    call = inputs.loopy_call
    result = call["twice"]
    graph = get_dot_graph(result)
    assert len(tooltips(graph)) == 3  # argument, call, result
    assert all(": self." in text for text in tooltips(graph))

    graph = get_dot_graph(inputs.traced["_0"])
    assert "<unknown>" not in tooltips(graph)
    assert any("self.traced = " in text for text in tooltips(graph))


@pytest.mark.skipif(ops.IS_RELEASED, reason="has no creation tag of its own")
def test_the_hosts_own_tags_are_still_shown():
    pt.set_traceback_tag_enabled(True)
    try:
        dag, lines = small_dag()
        plain = get_dot_graph(dag)
        pp.enable()
        assert get_dot_graph(dag) == plain
        assert f":{lines[0][0]}, in small_dag" in tooltips(plain)[0]
    finally:
        pt.set_traceback_tag_enabled(False)
        pp.disable()


def test_tooltip_of_any_site():
    with pp.recording():
        sites = []
        for number in range(8):
            namespace = {"pt": pt}
            exec(compile(f"\nx = pt.make_placeholder(name='x{number}', shape=(), "
                         "dtype=float)", f"<cell {number}>", "exec"), namespace)
            sites.append(pp.created_at(namespace["x"]))
    assert tooltip(sites[0]) == "<cell 0>:2 in <module>"
    assert tooltip(merge_sites(sites[:2])) == (
        "<cell 0>:2 in <module>; also <cell 1>:2 in <module>")
    assert tooltip(merge_sites(sites)).endswith(
        "; also <cell 4>:2 in <module>; also 3 more")
    assert tooltip(UNKNOWN) == "unknown"
    assert tooltip(synthetic_site("lower")) == "synthetic (made by lower)"


def test_an_unknown_site_says_so():
    with pp.recording():
        dag, _ = small_dag()
        unknown = with_site(dag._data["out"], UNKNOWN)
        assert "unknown" in tooltips(get_dot_graph(unknown))
