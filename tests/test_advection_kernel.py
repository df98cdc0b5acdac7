"""
The kernel of the advection example: above each statement stand exactly the lines that a
reader finds by hand, and what loopy adds names the operation that it serves.

The texts are kept in ``golden/``, one a host. They are written anew with::

    PYTATO_PROVENANCE_WRITE_GOLDEN=1 python -m pytest tests/test_advection_kernel.py
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytato as pt
import pytest

from pytato_provenance import (
    AnnotationOptions,
    contributors,
    disable,
    enable,
    kernel_source,
    strip_annotations,
)
from pytato_provenance._host import host
from pytato_provenance.lowering.instruction_tags import statement_sites
from pytato_provenance.lowering.source import annotated_source


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "advection"
GOLDEN = Path(__file__).resolve().parent / "golden"
MODULES = ("discretization", "operators", "physics", "time_stepping")

Lines = frozenset[tuple[str, int]]


@pytest.fixture
def program() -> Iterator[Any]:
    """Generated as the example does, on four elements."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        discretization, operators, physics, time_stepping = map(
            importlib.import_module, MODULES)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            enable(annotate=True)
            advection = physics.Advection(
                operators.Operators(discretization.Discretization(3, 4)), -1.25)
            state = pt.make_placeholder(name="state", shape=(16,), dtype=np.float64)
            yield pt.generate_loopy(time_stepping.rk4_step(advection.rate, state, 0.01))
    finally:
        disable()
        sys.path.remove(str(EXAMPLE))
        for name in MODULES:
            sys.modules.pop(name, None)


# {{{ by hand

def line(file: str, text: str) -> tuple[str, int]:
    """The only line of a file of the example that has *text*."""
    lines = (EXAMPLE / file).read_text().splitlines()
    number, = (number for number, line in enumerate(lines, 1) if text in line)
    return file, number


def by_hand() -> tuple[dict[str, Lines], dict[str, Lines]]:
    """What each output evaluates, and the arrays in a rate that may be stored."""
    operators, physics = "operators.py", "physics.py"
    elements = line(operators, "return pt.reshape(state, shape)")
    volume = line(operators, 'pt.einsum("ij,ej->ei"')
    lift = line(operators, 'pt.einsum("if,ef->ei"')
    flux = frozenset({
        line(operators, "return nodal_values[:, 0:1]"),
        line(operators, "pt.concatenate([left, right]"),
        line(operators, "left_neighbour = pt.roll"),
        line(operators, "right_neighbour = pt.roll"),
        line(operators, "pt.concatenate([left_neighbour"),
        line(physics, "leaving = "), line(physics, "entering = "),
        line(physics, "return leaving + entering")})
    rest = frozenset({
        line(physics, "transport = self.velocity"),
        line(physics, "return ops.to_state("),
        line(operators, "return pt.reshape(nodal_values,")})
    stages = {
        "rate1": frozenset(),
        "rate2": frozenset({line("time_stepping.py", "rate2 = ")}),
        "rate3": frozenset({line("time_stepping.py", "rate3 = ")}),
        "rate4": frozenset({line("time_stepping.py", "rate4 = ")}),
    }
    outputs: dict[str, Lines] = {}
    volumes: dict[str, Lines] = {}
    lifts: dict[str, Lines] = {}
    for name, stage in stages.items():
        volumes[name] = stage | {elements, volume}
        lifts[name] = stage | {elements, lift} | flux
        outputs[name] = (rest if reductions_are_stored()
                         else rest | volumes[name] | lifts[name])
    outputs["next_state"] = frozenset({
        line("time_stepping.py", "slope = "),
        line("time_stepping.py", "next_state = ")})
    return outputs, {
        **{f"volume of {name}": lines for name, lines in volumes.items()},
        **{f"lift of {name}": lines for name, lines in lifts.items()}}


def reductions_are_stored() -> bool:
    x = pt.make_placeholder(name="x", shape=(4,), dtype=np.float64)
    bound = pt.generate_loopy(pt.sum(x) + 1)
    return bool(bound.program["_pt_kernel"].temporary_variables)

# }}}


def lines_of(sites: Iterable[Any]) -> Lines:
    return frozenset((os.path.basename(site.user_frame.filename),
                      site.user_frame.lineno) for site in sites)


def lines_in(comments: list[str]) -> Lines:
    """The lines that comments name; the callers apart."""
    found = set()
    file = ""
    for comment in comments:
        match = re.match(r".*?(\S*):(\d+) +in ", comment.partition(" <")[0])
        assert match is not None, comment
        file = match[1] or file
        found.add((file, int(match[2])))
    return frozenset(found)


def comments_above(text: str, lineno: int) -> list[str]:
    lines = text.split("\n")
    found: list[str] = []
    while (above := lines[lineno - 2].lstrip()).startswith("//<-"):
        found.insert(0, above[5:])
        lineno -= 1
    return found


def test_stored_statements(program: Any) -> None:
    outputs, reductions = by_hand()
    source = annotated_source(program)
    found = contributors(program).statements
    kinds = {insn.id: sites for insn in program.program["_pt_kernel"].instructions
             if (sites := statement_sites(insn)) is not None}
    seen: set[str] = set()
    others: list[Lines] = []
    for statement in source.statements:
        sites = kinds.get(statement.insn_id)
        if sites is None or sites.kind != "store":
            continue
        comments = comments_above(source.text, statement.lines[0])
        # Nothing is cut off, and the comment is what the data says.
        assert lines_in(comments) == lines_of(found[statement.insn_id])
        if sites.variable in outputs:
            seen.add(sites.variable)
            assert lines_in(comments) == outputs[sites.variable], sites.variable
        else:
            others.append(lines_in(comments))
    assert seen == {*outputs}
    if reductions_are_stored():
        assert sorted(map(sorted, others)) == sorted(map(sorted, reductions.values()))
    else:
        assert not others


def test_what_loopy_adds(program: Any) -> None:
    """Each start and step of a reduction names its einsum, and the stage it is for."""
    source = annotated_source(program)
    einsums = {line("operators.py", 'pt.einsum("ij,ej->ei"'),
               line("operators.py", 'pt.einsum("if,ef->ei"')}
    stages = [f"time_stepping.py:{line('time_stepping.py', f'rate{i} = ')[1]}"
              for i in (1, 2, 3, 4)]
    counts: dict[tuple[str, str], int] = {}
    for statement in source.statements:
        assert statement.origin is not None
        if not statement.origin.by_loopy:
            continue
        comments = comments_above(source.text, statement.lines[0])
        head = re.match(r"loopy: (start|step) of the reduction for .* < (\S+) ",
                        comments[0])
        assert head is not None, comments[0]
        assert lines_in(comments[:1]) <= einsums
        assert (len(comments) == 1) is (head[1] == "start")
        counts[head[1], head[2]] = counts.get((head[1], head[2]), 0) + 1
    assert counts == {(kind, stage): 2 for kind in ("start", "step")
                      for stage in stages}


def test_text(program: Any) -> None:
    """As it was when somebody last read it."""
    text = kernel_source(program, AnnotationOptions(root=str(EXAMPLE)))
    # But for the line of this file.
    text = re.sub(rf"({Path(__file__).name}):\d+", r"\1:00", text)
    assert str(EXAMPLE) not in text
    # Before Python 3.11 there are no columns, and no names of classes.
    form = "" if sys.version_info >= (3, 11) else "_plain"
    golden = GOLDEN / f"advection_{host().name}{form}.cl"
    comments = "\n".join(
        line for line in text.split("\n") if line.lstrip().startswith("//<-"))
    if os.environ.get("PYTATO_PROVENANCE_WRITE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        golden.write_text(text + "\n")
    expected = golden.read_text().rstrip("\n")
    # What loopy writes is loopy's affair, and that of its version.
    assert comments == "\n".join(
        line for line in expected.split("\n") if line.lstrip().startswith("//<-"))
    assert "//<-" not in strip_annotations(text)
