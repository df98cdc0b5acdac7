"""After transformations of loopy's, every statement names its origin."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

import loopy as lp
import numpy as np
import pytato as pt
import pytest

from pytato_provenance import disable, enable
from pytato_provenance.diagnostic import ProvenanceWarning
from pytato_provenance.lowering import contributors, kernel_source, strip_annotations
from pytato_provenance.lowering.instruction_tags import (
    statement_sites,
    without_sites,
)
from pytato_provenance.lowering.source import annotated_source


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


N = 64


@pytest.fixture(autouse=True)
def _annotating() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", ProvenanceWarning)
        enable(annotate=True)
        yield
    disable()


def matrix_product() -> Any:
    a = pt.make_placeholder(name="a", shape=(N, N), dtype=np.float64)
    b = pt.make_placeholder(name="b", shape=(N, N), dtype=np.float64)
    shifted = b + 1
    product = pt.einsum("ij,jk->ik", a, shifted)
    return pt.generate_loopy({"out": product}).program


def two_sums() -> Any:
    a = pt.make_placeholder(name="a", shape=(N, N), dtype=np.float64)
    rows = pt.sum(a * 2, axis=1)
    largest = pt.amax(a, axis=1)
    return pt.generate_loopy({"out": rows - largest}).program


def line_of(function: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    number, = (i for i, line in enumerate(lines, first) if text in line)
    return number


def linenos(sites: Iterable[Any]) -> set[int]:
    return {site.user_frame.lineno for site in sites}


OF_PRODUCT = {line_of(matrix_product, "shifted = "),
              line_of(matrix_product, "product = ")}
OF_SUMS = {line_of(two_sums, "rows = "), line_of(two_sums, "largest = "),
           line_of(two_sums, "return ")}


def store_of(program: Any) -> Any:
    """The statement that evaluates the reduction."""
    insn, = (insn for insn in program.default_entrypoint.instructions
             if (sites := statement_sites(insn)) is not None and sites.reductions)
    return insn


def loops_of(program: Any) -> tuple[str, str, str]:
    store = store_of(program)
    reduction, = statement_sites(store).reductions[0][0]
    i, k = sorted(store.within_inames)
    return i, k, reduction


def check(program: Any, expected: set[int]) -> dict[str, set[int]]:
    """Every statement that loopy generates code for has a known origin, among the
    lines of the program, and those of the program all their lines."""
    plain = lp.generate_code_v2(without_sites(program)).device_code()
    assert strip_annotations(kernel_source(program)) == plain
    source = annotated_source(program)
    found: dict[str, set[int]] = {}
    assert source.statements
    for statement in source.statements:
        assert statement.origin is not None, statement.insn_id
        assert statement.origin.stored, statement.insn_id
        lines = linenos(statement.origin.sites)
        assert lines <= expected, statement.insn_id
        assert lines
        found[statement.insn_id] = lines
        assert statement.lines[0] > 1
    assert set().union(*found.values()) == expected
    return found


def with_one_domain(program: Any) -> Any:
    """Loopy cannot prefetch across several."""
    kernel = program.default_entrypoint
    return program.with_kernel(kernel.copy(domains=[
        kernel.combine_domains(tuple(range(len(kernel.domains))))]))


def bounds_are_stored(program: Any) -> bool:
    """Whether the bounds of reductions are data, which keeps loopy from much."""
    return any(sites.kind == "bound" for insn in program.default_entrypoint.instructions
               if (sites := statement_sites(insn)) is not None)


def generated(program: Any, transform: Any) -> Any:
    """What *transform* makes; a skip, where loopy cannot with bounds that are data."""
    try:
        transformed = transform(program)
        lp.generate_code_v2(without_sites(transformed))
    except (lp.LoopyError, AssertionError) as error:
        if not bounds_are_stored(program):
            raise
        pytest.skip(f"bounds of reductions are data: {str(error)[:80]}")
    return transformed


def split(program: Any) -> Any:
    i, k, _ = loops_of(program)
    tags = (None,)*4 if bounds_are_stored(program) else ("g.0", "l.1", "g.1", "l.0")
    program = lp.split_iname(program, i, 16, outer_tag=tags[0], inner_tag=tags[1])
    return lp.split_iname(program, k, 16, outer_tag=tags[2], inner_tag=tags[3])


def split_of_the_reduction(program: Any) -> Any:
    return lp.split_iname(split(program), loops_of(program)[2], 16)


def prefetched(program: Any) -> Any:
    i, k, reduction = loops_of(program)
    program = split_of_the_reduction(with_one_domain(program))
    outer = frozenset({f"{i}_outer", f"{k}_outer", f"{reduction}_outer"})
    return lp.add_prefetch(program, "a", [f"{reduction}_inner", f"{i}_inner"],
                           fetch_outer_inames=outer, default_tag="l.auto")


def precomputed(program: Any) -> Any:
    i, k, reduction = loops_of(program)
    program = split_of_the_reduction(with_one_domain(program))
    program = lp.extract_subst(
        program, "right", lp.symbolic.parse("b[x, y] + 1"), parameters="x, y")
    outer = frozenset({f"{i}_outer", f"{k}_outer", f"{reduction}_outer"})
    return lp.precompute(
        program, "right", [f"{reduction}_inner", f"{k}_inner"],
        precompute_outer_inames=outer, default_tag="l.auto")


def extracted(program: Any) -> Any:
    return lp.extract_subst(
        program, "right", lp.symbolic.parse("b[x, y] + 1"), parameters="x, y")


def prefetched_rows(program: Any) -> Any:
    store = store_of(program)
    i, = store.within_inames
    reductions = [iname for inames, _ in statement_sites(store).reductions
                  for iname in inames]
    return lp.add_prefetch(
        with_one_domain(lp.split_iname(program, i, 16)), "a",
        [f"{i}_inner", *reductions], fetch_outer_inames=frozenset({f"{i}_outer"}),
        default_tag=None)


def buffered(program: Any) -> Any:
    _, k, _ = loops_of(program)
    name, = store_of(program).assignee_var_names()
    return lp.buffer_array(program, name, [k], init_expression="0",
                           default_tag=None)


def duplicated(program: Any) -> Any:
    i, _, _ = loops_of(program)
    return lp.duplicate_inames(program, i, f"id:{store_of(program).id}")


def renamed(program: Any) -> Any:
    i, _, reduction = loops_of(program)
    return lp.rename_iname(lp.rename_iname(program, i, "row"), reduction, "inner")


def mapped(program: Any) -> Any:
    i, k, _ = loops_of(program)
    return lp.map_domain(
        program, __import__("islpy").BasicMap(
            f"{{[{i}, {k}] -> [u, v]: u = {i} and v = {k} + 1}}"))


def outward(program: Any) -> Any:
    _, _, reduction = loops_of(program)
    program = lp.split_iname(program, reduction, 16)
    return lp.split_reduction_outward(program, f"{reduction}_outer")


def inward(program: Any) -> Any:
    _, _, reduction = loops_of(program)
    program = lp.split_iname(program, reduction, 16)
    return lp.split_reduction_inward(program, f"{reduction}_inner")


def parallel(program: Any) -> Any:
    """A reduction in a tree, by the threads of a group."""
    return lp.tag_inames(program, {loops_of(program)[2]: "l.0"})


def privatized(program: Any) -> Any:
    _, k, _ = loops_of(program)
    program = lp.preprocess_program(program)
    accumulator, = (name for name in program.default_entrypoint.temporary_variables
                    if name.startswith("acc"))
    return lp.privatize_temporaries_with_inames(program, {k}, {accumulator})


def realized(program: Any) -> Any:
    return lp.realize_reduction(program)


def preprocessed(program: Any) -> Any:
    return lp.preprocess_program(split(program))


def unrolled(program: Any) -> Any:
    return lp.tag_inames(lp.split_iname(program, loops_of(program)[2], 4),
                         {f"{loops_of(program)[2]}_inner": "unr"})


TRANSFORMATIONS = [
    split, split_of_the_reduction, prefetched, precomputed, extracted, buffered,
    duplicated, renamed, mapped, outward, inward, parallel, realized, preprocessed,
    privatized, unrolled]


@pytest.mark.parametrize("transform", TRANSFORMATIONS)
def test_matrix_product(transform: Any) -> None:
    program = matrix_product()
    name = store_of(program).id
    transformed = generated(program, transform)
    found = check(transformed, OF_PRODUCT)
    if name in found:
        assert found[name] == OF_PRODUCT
    assert not contributors(transformed).lost


def test_prefetch() -> None:
    """What is fetched for a product is the product's."""
    program = generated(matrix_product(), prefetched)
    text = kernel_source(program)
    line = line_of(matrix_product, "product = ")
    lines = text.split("\n")
    fetch, = (i for i, text_line in enumerate(lines)
              if text_line.lstrip().startswith("a_fetch["))
    assert (f"loopy: fetch of a for test_lowering_transformations.py:{line} in "
            "matrix_product |") in lines[fetch - 1]
    declaration, = (i for i, text_line in enumerate(lines)
                    if text_line.lstrip().startswith("__local double a_fetch["))
    assert f"for test_lowering_transformations.py:{line} in" in lines[declaration - 1]


def test_prefetch_and_two_reductions() -> None:
    program = generated(two_sums(), lambda program: program if (
        bounds_are_stored(program)) else prefetched_rows(program))
    found = check(program, OF_SUMS)
    source = annotated_source(program)
    steps = {frozenset(linenos(statement.origin.stored))
             for statement in source.statements
             if statement.origin is not None
             and "step of the reduction" in statement.origin.title}
    # Each of the two reductions has its own line, and no other.
    assert steps == {frozenset({line_of(two_sums, "rows = ")}),
                     frozenset({line_of(two_sums, "largest = ")})}
    assert len(found) >= 5


def test_fused_kernels() -> None:
    x = pt.make_placeholder(name="x", shape=(N,), dtype=np.float64)
    first = pt.generate_loopy({"first": pt.sin(x)}).program
    second = pt.generate_loopy({"second": pt.cos(x)}).program
    fused = lp.fuse_kernels([first, second])
    found = contributors(fused)
    lines = {name: linenos(sites) for name, sites in found.statements.items()}
    source, start = inspect.getsourcelines(test_fused_kernels)
    for name in ("first", "second"):
        number = start + next(i for i, line in enumerate(source)
                              if f'{{"{name}": ' in line)
        assert lines[f"{name}_store"] == {number}
    assert not found.lost


def test_lost_statement() -> None:
    x = pt.make_placeholder(name="x", shape=(N,), dtype=np.float64)
    doubled = 2 * x
    bound = pt.generate_loopy({"doubled": doubled, "out": pt.sin(doubled)})
    kernel = bound.program.default_entrypoint
    writer = next(insn for insn in kernel.instructions
                  if "doubled" in insn.assignee_var_names())
    kernel = lp.assignment_to_subst(
        bound.program.with_kernel(kernel.copy(
            args=[arg for arg in kernel.args if arg.name != "doubled"],
            temporary_variables={
                **kernel.temporary_variables,
                "doubled": lp.TemporaryVariable("doubled", np.float64, (N,))})),
        "doubled")
    found = contributors(kernel)
    assert [*found.lost] == [writer.id]
    source, start = inspect.getsourcelines(test_lost_statement)
    number = start + next(i for i, line in enumerate(source) if "doubled = 2" in line)
    assert linenos(found.lost[writer.id]) == {number}
    text = kernel_source(kernel)
    assert (f"transformed away: {writer.id}, of test_lowering_transformations.py:"
            f"{number} in ") in text


def test_inlined_callee() -> None:
    from pytato.loopy import call_loopy

    callee = lp.make_kernel(
        "{[i]: 0 <= i < 64}", "out[i] = 2*a[i]",
        [lp.GlobalArg("a", np.float64, (N,)),
         lp.GlobalArg("out", np.float64, (N,), is_input=False)],
        name="twice", target=lp.PyOpenCLTarget(),
        lang_version=lp.MOST_RECENT_LANGUAGE_VERSION)
    x = pt.make_placeholder(name="x", shape=(N,), dtype=np.float64)
    called = call_loopy(callee, {"a": pt.sin(x)})["out"]
    program = pt.generate_loopy({"out": called + 1}).program
    inlined = lp.inline_callable_kernel(program, "twice")
    found = contributors(inlined)
    source, start = inspect.getsourcelines(test_inlined_callee)
    number = start + next(i for i, line in enumerate(source) if "called = " in line)
    # loopy gives what it inlines the tags of the call.
    assert not found.lost
    name, = (insn.id for insn in inlined.default_entrypoint.instructions
             if insn.id.endswith("insn"))
    assert linenos(found.statements[name]) == {number}
    assert (f"call of twice: test_lowering_transformations.py:{number} in"
            in kernel_source(inlined))
