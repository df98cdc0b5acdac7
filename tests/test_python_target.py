"""What the development host generates for JAX, annotated by statement."""

from __future__ import annotations

import inspect
import itertools
import re
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


if TYPE_CHECKING:
    from collections.abc import Iterator

if not hasattr(pt, "generate_jax"):
    pytest.skip("this host does not generate Python", allow_module_level=True)
pytest.importorskip("jax")


def build() -> dict[str, Any]:
    x = pt.make_placeholder(name="x", shape=(6, 4), dtype=np.float64)
    root = pt.sqrt(x)
    rolled = pt.roll(root, 1, axis=0)
    shifted = rolled + 1
    return {
        "total": pt.sum(shifted, axis=0),
        "product": x.T @ shifted}


# What the host calls for each, and the line that asks for it.
LINES = {"sqrt": "root = ", "roll": "rolled = ", "+": "shifted = ", ".sum(": "total",
         ".T": "product", "einsum": "product"}


@pytest.fixture
def annotating() -> Iterator[None]:
    enable(annotate=True)
    yield
    disable()


def line_of(text: str) -> int:
    lines, first = inspect.getsourcelines(build)
    number, = (i for i, line in enumerate(lines, first) if text in line)
    return number


def test_each_statement(annotating: None) -> None:
    program = pt.generate_jax(build())
    text = kernel_source(program)
    assert strip_annotations(text) == program.program
    lines = text.split("\n")
    seen = set()
    for above, line in itertools.pairwise(lines):
        for call, source in LINES.items():
            if call in line and " = " in line and "<-" not in line:
                seen.add(call)
                assert re.match(r"    #<- stores test_python_target.py:"
                                rf"{line_of(source)} in build \|", above), line
    assert seen == {*LINES}


def test_contributors(annotating: None) -> None:
    program = pt.generate_jax(build())
    found = contributors(program)
    assert {site.user_frame.lineno for site in found.arguments["x"]} == {
        line_of("x = pt.make")}
    by_line = {site.user_frame.lineno for sites in found.statements.values()
               for site in sites}
    assert by_line == {line_of(source) for source in LINES.values()}


def test_equal_arrays(annotating: None) -> None:
    x = pt.make_placeholder(name="x", shape=(6,), dtype=np.float64)
    first = pt.sin(x)
    second = pt.sin(x)
    outputs = pt.transform.deduplicate(
        pt.make_dict_of_named_arrays({"first": first, "second": second}))
    program = pt.generate_jax(outputs)
    sites, = (sites for name, sites in contributors(program).statements.items()
              if f"{name} = _pt_jnp.sin" in program.program)
    assert len({site.user_frame.lineno for site in sites}) == 2
    assert kernel_source(program, AnnotationOptions(header=False)).count("#<-") == 2


def test_same_code_and_numbers() -> None:
    plain = pt.generate_jax(build())
    assert "no creation sites are known" in kernel_source(plain)
    enable(annotate=True)
    program = pt.generate_jax(build())
    disable()
    assert program.program == plain.program
    x = np.random.default_rng(1).random((6, 4))
    for name, value in plain(x=x).items():
        assert np.array_equal(value, program(x=x)[name])
    assert "test_python_target" in kernel_source(program)
