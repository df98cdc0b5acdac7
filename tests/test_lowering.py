"""Each statement of a generated kernel names the lines of what is fused into it."""

from __future__ import annotations

import inspect
import re
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any

import loopy as lp
import numpy as np
import pytato as pt
import pytest
from pytato.loopy import call_loopy
from random_programs import RandomProgram

from pytato_provenance import disable, enable, recording
from pytato_provenance._host import host
from pytato_provenance.diagnostic import (
    NotAnArrayError,
    ProvenanceWarning,
    UsageError,
)
from pytato_provenance.lowering import (
    MARKER,
    Contributors,
    Ledger,
    contributors,
    generate_loopy,
    kernel_source,
    strip_annotations,
)
from pytato_provenance.lowering.instruction_tags import (
    has_sites,
    statement_sites,
    without_sites,
)


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Imported before anything is switched on.
generate_early = pt.generate_loopy


@pytest.fixture(autouse=True)
def _no_failures_inside() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", ProvenanceWarning)
        yield
    disable()


@pytest.fixture
def annotating() -> None:
    enable(annotate=True)


def line_of(function: Any, text: str) -> int:
    """The number of the only line of *function* that contains *text*."""
    lines, first = inspect.getsourcelines(function)
    number, = (i for i, line in enumerate(lines, start=first) if text in line)
    return number


def linenos(sites: Iterable[Any]) -> set[int]:
    return {site.user_frame.lineno for site in sites}


def plain_code(bound: Any) -> str:
    return lp.generate_code_v2(without_sites(bound.program)).device_code()


def statements_of(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each line of *text* that is not ours, with our lines right above it."""
    comments: list[str] = []
    for line in text.split("\n"):
        if line.lstrip().startswith(MARKER):
            comments.append(line.strip()[len(MARKER) + 1:])
        else:
            yield line.strip(), comments
            comments = []


def kernel_of(bound: Any) -> Any:
    return bound.program["_pt_kernel"]


# {{{ the set of each statement

def reductions_are_stored() -> bool:
    x = pt.make_placeholder(name="x", shape=(4,), dtype=np.float64)
    return bool(kernel_of(pt.generate_loopy(pt.sum(x) + 1)).temporary_variables)


def generate_random(program: RandomProgram) -> Any:
    outputs = program.run({"pt": pt, "np": np})
    if hasattr(pt.transform, "deduplicate"):
        outputs = pt.transform.deduplicate(pt.make_dict_of_named_arrays(outputs))
    try:
        return pt.generate_loopy(outputs)
    except ValueError as error:
        # The development host's own, recording or not.
        if "cache collision" in str(error):
            return None
        raise


@pytest.mark.parametrize("first_seed", range(0, 60, 10))
def test_random_programs(annotating: None, first_seed: int) -> None:
    stored = reductions_are_stored()
    for seed in range(first_seed, first_seed + 10):
        program = RandomProgram(seed, can_tag=host().has_non_equality_tags)
        bound = generate_random(program)
        if bound is None:
            continue
        expected = program.expected(reductions_are_stored=stored)
        found = contributors(bound).statements
        temporaries: Counter[Any] = Counter()
        for insn in kernel_of(bound).instructions:
            sites = statement_sites(insn)
            assert sites is not None
            lines = linenos(found[insn.id])
            if sites.kind == "copy":
                assert lines == program.lines_of_array(sites.variable), seed
            elif sites.variable in program.outputs:
                assert lines == expected[sites.variable], seed
            elif sites.kind == "store":
                temporaries[frozenset(lines)] += 1
        for name, lines in expected.items():
            if name not in program.outputs:
                assert temporaries.pop(frozenset(lines), 0), seed
        # What is left is the outputs that are stored before they are copied.
        assert set(temporaries) <= {frozenset(expected[name])
                                    for name in program.outputs}, seed


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5, 6])
def test_text_of_random_programs(annotating: None, seed: int) -> None:
    program = RandomProgram(seed)
    bound = generate_random(program)
    text = kernel_source(bound)
    assert strip_annotations(text) == plain_code(bound)
    expected = program.expected(reductions_are_stored=reductions_are_stored())
    seen = set()
    for line, comments in statements_of(text):
        match = re.match(r"(out\d)(\[.*?\])? = ", line)
        if match and not comments[0].startswith("copies"):
            seen.add(match.group(1))
            assert {int(number) for comment in comments
                    for number in re.findall(r":(\d+) +in", comment)
                    } == expected[match.group(1)]
    assert seen

# }}}


# {{{ a program by hand

def laplacian(u: Any) -> Any:
    east = pt.roll(u, 1, axis=0)
    west = pt.roll(u, -1, axis=0)
    return east + west - 2*u


def build() -> dict[str, Any]:
    x = pt.make_placeholder(name="x", shape=(6, 6), dtype=np.float64)
    y = laplacian(x)
    z = (
        x + 1
    ) + 2
    total = pt.sum(z)
    return {"y": y, "scaled": y * total, "same_as_x": x}


def expected_of_y() -> set[int]:
    return {line_of(laplacian, "east = "), line_of(laplacian, "west = "),
            line_of(laplacian, "return ")}


def _is_one_line(found: set[int], function: Any, text: str) -> bool:
    return found == {line_of(function, text)}


def check(found: Contributors) -> None:
    statements = {insn_id: linenos(sites)
                  for insn_id, sites in found.statements.items()}
    of_sum = {line_of(build, "x + 1"), line_of(build, "z = ("),
              line_of(build, "total = ")}
    assert statements["y_store"] == expected_of_y()
    assert _is_one_line(statements["same_as_x_store"], build, "x = ")
    of_scaled = {line_of(build, "return ")}
    if not found.temporaries:
        of_scaled |= of_sum
    else:
        assert linenos(found.temporaries["_pt_temp"]) == {line_of(build, "total = ")}
        assert statements["_pt_temp_store"] == of_sum
    assert statements["scaled_store"] == of_scaled
    assert linenos(found.arguments["x"]) == {line_of(build, "x = ")}
    assert linenos(found.arguments["y"]) == {line_of(laplacian, "return ")}
    stores = {iname: why.statement for iname, why in found.inames.items()
              if why.kind == "store"}
    assert stores["y_dim0"] == stores["y_dim1"] == "y_store"
    reductions = [why for why in found.inames.values() if why.kind == "reduction"]
    assert len(reductions) == 2
    assert all(linenos(why.sites) == of_sum for why in reductions)


def test_contributors(annotating: None) -> None:
    check(contributors(pt.generate_loopy(build())))
    check(contributors(generate_early(build())))


def test_own_generate_loopy() -> None:
    with recording():
        outputs = build()
    bound = generate_loopy(outputs)
    # The site of what lowering makes is that of what it lowers, recording or not.
    check(contributors(bound))
    assert not has_sites(pt.generate_loopy(outputs).program)
    disable()
    assert not has_sites(pt.generate_loopy(outputs).program)
    assert not has_sites(generate_loopy(outputs, annotate=False).program)
    text = kernel_source(bound)
    assert "laplacian" in text
    assert strip_annotations(text) == plain_code(bound)


def test_annotated_text(annotating: None) -> None:
    bound = pt.generate_loopy(build())
    text = kernel_source(bound)
    assert kernel_source(bound) == text
    assert strip_annotations(text) == plain_code(bound)
    assert all(line.lstrip().startswith(MARKER)
               for line in set(text.split("\n")) - set(plain_code(bound).split("\n")))
    name = "test_lowering.py"
    of_y, = (comments for code_line, comments in statements_of(text)
             if code_line.startswith("y["))
    _, east, west, result = map(str.strip, inspect.getsource(laplacian).splitlines())
    where = "in laplacian |"
    assert of_y == [
        f"stores {name}:{line_of(laplacian, 'return ')} {where} {result}",
        f"inlines {name}:{line_of(laplacian, 'east = ')} {where} {east}",
        f"{' '*8}{' '*len(name)}:{line_of(laplacian, 'west = ')} {where} {west}"]
    updates = [comments for line, comments in statements_of(text)
               if re.match(r"(acc\w+) = \1 \+", line)]
    assert len(updates) == 1
    of_sum = line_of(build, "total = ")
    assert updates[0][0] == (
        f"loopy: step of the reduction for {name}:{of_sum} in build"
        " | total = pt.sum(z)")
    assert {int(number) for comment in updates[0][1:]
            for number in re.findall(r":(\d+) in build", comment)} == {
                line_of(build, "x + 1"), line_of(build, "z = (")}
    starts = [comments for line, comments in statements_of(text)
              if re.match(r"acc\w+ = \(", line)]
    assert starts == [[updates[0][0].replace("step", "start")]]
    declared = [comments for line, comments in statements_of(text)
                if re.match(r"double acc\w+;", line)]
    assert declared[0][-1] == updates[0][0].replace("step of the reduction",
                                                    "accumulator")
    top, = (comments for _, comments in statements_of(text)
            if any(comment.startswith("input") for comment in comments))
    assert re.fullmatch(r"input +x +test_lowering.py:\d+ in build +\| x = pt.make_.*",
                        top[0])


def test_numbers_do_not_change(queue: Any) -> None:
    outputs = build()
    x = np.random.default_rng(1).random((6, 6))
    _, plain = pt.generate_loopy(outputs)(queue, x=x)
    with recording():
        outputs = build()
    for annotate in (True, "embed"):
        bound = generate_loopy(outputs, annotate=annotate)
        _, annotated = bound(queue, x=x)
        for name, value in plain.items():
            assert np.array_equal(value, annotated[name])


def test_what_is_compiled(queue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyopencl as cl

    compiled: list[str] = []
    original = cl.Program

    def program(context: Any, source: str, *args: Any) -> Any:
        compiled.append(source)
        return original(context, source, *args)

    monkeypatch.setattr(cl, "Program", program)
    x = np.ones((6, 6))
    plain = pt.generate_loopy(build())
    plain(queue, x=x)
    enable(annotate=True)
    beside = pt.generate_loopy(build())
    beside(queue, x=x)
    enable(annotate="embed")
    embedded = pt.generate_loopy(build())
    embedded(queue, x=x)
    off, on, within = compiled
    assert off == on == strip_annotations(within)
    assert within == kernel_source(embedded)
    assert strip_annotations(kernel_source(beside)) == off

# }}}


# {{{ what users call and transform

def call_by_hand() -> dict[str, Any]:
    kernel = lp.make_kernel(
        "{[i, j]: 0 <= i, j < 6}", "out[i] = sum(j, a[i, j]*factor)",
        [lp.GlobalArg("a", np.float64, (6, 6)),
         lp.GlobalArg("out", np.float64, (6,), is_input=False),
         lp.ValueArg("factor", np.float64)],
        name="row_sum", target=lp.PyOpenCLTarget(),
        lang_version=lp.MOST_RECENT_LANGUAGE_VERSION)
    x = pt.make_placeholder(name="x", shape=(6, 6), dtype=np.float64)
    s = pt.make_placeholder(name="s", shape=(), dtype=np.float64)
    shifted = x + 1
    doubled = 2*s
    called = call_loopy(kernel, {"a": shifted, "factor": doubled})
    result = called["out"]
    return {"out": 3*result}


def test_call_of_a_kernel(annotating: None) -> None:
    bound = pt.generate_loopy(call_by_hand())
    found = contributors(bound)
    statements = {insn_id: linenos(sites)
                  for insn_id, sites in found.statements.items()}
    of_call = line_of(call_by_hand, "called = ")
    assert statements["call_row_sum"] == {of_call, line_of(call_by_hand, "doubled = ")}
    assert statements["_pt_temp_store"] == {line_of(call_by_hand, "shifted = ")} or (
        statements["_pt_temp_0_store"] == {line_of(call_by_hand, "shifted = ")})
    assert statements["out_store"] == {line_of(call_by_hand, "return ")}
    assert {min(linenos(sites)) for sites in found.temporaries.values()} == {
        line_of(call_by_hand, "shifted = "), of_call}
    text = kernel_source(bound)
    assert strip_annotations(text) == plain_code(bound)
    of_callee = [comments for line, comments in statements_of(text)
                 if line.startswith("out[i] = ")]
    assert len(of_callee) == 1
    assert of_callee[0][0].startswith(
        f"statement of row_sum, called from test_lowering.py:{of_call} in")


def test_transformed(annotating: None) -> None:
    x = pt.make_placeholder(name="x", shape=(64, 64), dtype=np.float64)
    product = pt.einsum("ij,jk->ik", x, x + 1)
    bound = pt.generate_loopy({"out": product})
    kernel = kernel_of(bound)
    stored = next(insn for insn in kernel.instructions
                  if (sites := statement_sites(insn)) is not None
                  and sites.reductions)
    before = statement_sites(stored)
    i, k = sorted(stored.within_inames)
    kernel = lp.split_iname(kernel, i, 16)
    kernel = lp.split_iname(kernel, k, 16)
    bound = bound.copy(program=bound.program.with_kernel(kernel)) if hasattr(
        bound, "copy") else bound.program.with_kernel(kernel)
    after = contributors(bound)
    assert before is not None
    assert set(after.statements[stored.id]) == before.sites
    text = kernel_source(bound)
    updates = [comments for line, comments in statements_of(text)
               if re.match(r"(acc\w+) = \1 \+", line)]
    assert len(updates) == 1
    assert updates[0][0].startswith("loopy: step of the reduction for")


def test_other_targets(annotating: None) -> None:
    x = pt.make_placeholder(name="x", shape=(6, 6), dtype=np.float64)
    bound = pt.generate_loopy({"out": pt.sum(x, axis=1) + 1})
    for target in (lp.OpenCLTarget(), lp.CTarget(), lp.ExecutableCTarget(),
                   lp.CudaTarget(), lp.ISPCTarget()):
        program = bound.program.copy(target=target, callables_table=type(
            bound.program.callables_table)({
                name: item.copy(subkernel=item.subkernel.copy(target=target))
                for name, item in bound.program.callables_table.items()}))
        text = kernel_source(program)
        assert "| bound = pt.generate_loopy" in text
        assert strip_annotations(text) == lp.generate_code_v2(program).device_code()

# }}}


# {{{ bad input, and what was never recorded

def test_bad_input() -> None:
    with pytest.raises(NotAnArrayError, match="'int'"):
        generate_loopy(3)
    with pytest.raises(NotAnArrayError, match="'str'"):
        generate_loopy({"out": "x"})
    x = pt.make_placeholder(name="x", shape=(4,), dtype=np.float64)
    with pytest.raises(UsageError, match="annotate"):
        generate_loopy(x + 1, annotate="inside")
    for function in (kernel_source, contributors):
        with pytest.raises(UsageError, match="bound program"):
            function(x)
    with pytest.raises(UsageError, match="text of a kernel"):
        strip_annotations(None)


def test_not_recorded() -> None:
    bound = pt.generate_loopy(build())
    text = kernel_source(bound)
    assert "no creation sites are known" in text
    assert strip_annotations(text) == plain_code(bound)
    assert not contributors(bound).statements
    outputs = build()
    enable(annotate=True)
    later = pt.generate_loopy({"y": outputs["y"] + 1})
    kinds = {site.kind for site in contributors(later).statements["y_store"]}
    assert kinds == {"known", "unknown"}
    assert "unknown" in kernel_source(later)

# }}}


def test_ledger(annotating: None, queue: Any) -> None:
    pt.generate_loopy(build())
    with Ledger() as ledger:
        first = pt.generate_loopy(build())
        second = generate_early(build())
        second(queue, x=np.ones((6, 6)))
    pt.generate_loopy(build())
    assert [entry.generated for entry in ledger.entries] == [
        first.program, second.program]
    assert [len(entry.compiled) for entry in ledger.entries] == [0, 1]
    assert ledger.entries[0].number < ledger.entries[1].number
    text, = (kernel_source(program) for program in ledger.entries[1].programs)
    assert text == kernel_source(second)
