"""What comments look like, and the options for that."""

from __future__ import annotations

import inspect
import os
import random
import re
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytato as pt
import pytest

from pytato_provenance import (
    AnnotationOptions,
    contributors,
    disable,
    enable,
    generate_loopy,
    kernel_source,
    region,
    strip_annotations,
)
from pytato_provenance.diagnostic import ProvenanceWarning, UsageError
from pytato_provenance.lowering.text import MARKER, line_directive, one_line


if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = os.path.basename(__file__)
HAS_COLUMNS = sys.version_info >= (3, 11)


@pytest.fixture(autouse=True)
def _annotating() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", ProvenanceWarning)
        enable(annotate=True)
        yield
    disable()


def line_of(function: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    number, = (i for i, line in enumerate(lines, first)
               if line.lstrip().startswith(text))
    return number


def above(text: str, start: str) -> list[str]:
    """The comments above the line of code that begins with *start*."""
    found: list[str] = []
    for line in text.split("\n"):
        if line.lstrip().startswith(MARKER):
            found.append(line.strip()[len(MARKER) + 1:])
        elif line.lstrip().startswith(start):
            return found
        else:
            found = []
    raise LookupError(start)


def placeholder(name: str = "x") -> Any:
    return pt.make_placeholder(name=name, shape=(10,), dtype=np.float64)


def comments(outputs: Any, options: AnnotationOptions | None = None,
             start: str = "out[") -> list[str]:
    bound = pt.generate_loopy(outputs)
    text = kernel_source(bound, options)
    assert strip_annotations(text) == strip_annotations(
        kernel_source(bound, AnnotationOptions(line_directives=True, columns=True)))
    return above(text, start)


# {{{ callers

def twice(x: Any) -> Any:
    return 2*x


def inner(x: Any) -> Any:
    return twice(x)


def test_callers_tell_arrays_apart() -> None:
    x = placeholder()
    first = inner(x)
    second = pt.sin(inner(first))
    number = line_of(twice, "return 2*x")
    this = test_callers_tell_arrays_apart
    callers = line_of(this, "first = "), line_of(this, "second = ")
    outputs = {"first": first, "second": second}
    assert comments({"out": first, "second": second}, start="out[") == [
        f"stores {HERE}:{number} in twice < {HERE}:{callers[0]} | return 2*x"]
    shown = comments(outputs, start="second[")
    assert shown[1] == (f"inlines {HERE}:{number} in twice < {HERE}:{callers[1]}"
                        " | return 2*x")
    assert "<" not in comments(outputs, AnnotationOptions(callers=False),
                               start="first[")[0]


def test_callers_are_shown_only_where_they_tell() -> None:
    assert comments({"out": inner(placeholder())}) == [
        f"stores {HERE}:{line_of(twice, 'return 2*x')} in twice | return 2*x"]


def test_callers_of_one_place_are_joined() -> None:
    x = placeholder()
    a = inner(x)
    b = inner(a + 1)
    c = inner(b + 1)
    this = test_callers_of_one_place_are_joined
    shown, = (line for line in comments({"out": pt.sin(c)}) if " in twice <" in line
              and not line.startswith("stores"))
    assert " < " + ", ".join(
        f"{HERE}:{line_of(this, f'{name} = inner')}" for name in "abc") in shown


def recursive(x: Any, depth: int) -> Any:
    if not depth:
        return x + 1
    return recursive(x, depth - 1)


def test_recursion() -> None:
    x = placeholder()
    for depth in (3, 50, 7):
        x = recursive(x, depth)
    shown = comments({"out": x})
    assert len("".join(shown)) < 800

# }}}


# {{{ text

def test_text_of_expressions() -> None:
    a, b = placeholder("a"), placeholder("b")
    c, d = a*b + 1, a*2 - b*3
    this = test_text_of_expressions
    lineno = line_of(this, "c, d = ")
    text = "a*b + 1" if HAS_COLUMNS else "c, d = a*b + 1, a*2 - b*3"
    assert comments({"out": c, "d": d}) == [
        f"stores {HERE}:{lineno} in test_text_of_expressions | {text}"]
    whole = a*b + 1
    assert comments({"out": whole})[0].endswith("| whole = a*b + 1")


def test_expressions_over_several_lines() -> None:
    x = placeholder()
    total = pt.sum(
        pt.stack([
            x,
            x,
        ]),
        axis=0,
    )
    shown = comments({"out": total})[0]
    if HAS_COLUMNS:
        assert shown.endswith("| total = pt.sum(pt.stack([x, x,]), axis=0,)")
    assert "axis" not in comments({"out": total}, AnnotationOptions(width=30))[0]


def test_columns() -> None:
    x = placeholder()
    y = pt.sin(x) + pt.cos(x)
    lineno = line_of(test_columns, "y = pt.sin")
    options = AnnotationOptions(columns=True)
    where = f"{lineno}:9-29" if HAS_COLUMNS else f"{lineno}"
    assert comments({"out": y}, options)[0].startswith(f"stores {HERE}:{where} in ")


def test_no_text() -> None:
    y = placeholder() + 1
    assert comments({"out": y}, AnnotationOptions(text=False)) == [
        f"stores {HERE}:{line_of(test_no_text, 'y = ')} in test_no_text"]

# }}}


# {{{ the cap

def chain(length: int) -> Any:
    source = "def chain(x):\n" + "".join(
        f"    x = x + {number}\n" for number in range(1, length)) + "    return 2*x\n"
    namespace: dict[str, Any] = {}
    exec(compile(source, "chain.py", "exec"), namespace)
    return namespace["chain"](placeholder())


def test_cap() -> None:
    outputs = {"out": chain(60)}
    shown = comments(outputs)
    assert shown[0].startswith("stores chain.py:61 in chain")
    assert len(shown) == 14
    assert shown[-1].split() == ["and", "47", "more", "in", "chain.py"]
    assert len(comments(outputs, AnnotationOptions(most=0))) == 60
    assert len(comments(outputs, AnnotationOptions(most=30))) == 32
    # Nothing is hidden from the data.
    found = contributors(pt.generate_loopy(outputs))
    assert len(found.statements["out_store"]) == 60


def test_a_little_more_is_shown() -> None:
    assert len(comments({"out": chain(15)})) == 15

# }}}


# {{{ the rest

def test_names_of_files(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(path: str) -> Any:
        namespace: dict[str, Any] = {}
        exec(compile("def f(x): return x + 1", path, "exec"), namespace)
        return namespace["f"]

    first, second = tmp_path / "a" / "same.py", tmp_path / "b" / "same.py"
    y = made(str(second))(pt.sin(made(str(first))(placeholder())))
    shown = "\n".join(comments({"out": y}))
    assert "a/same.py:1" in shown
    assert "b/same.py:1" in shown
    assert str(tmp_path) not in shown
    monkeypatch.chdir(tmp_path)
    relative = AnnotationOptions(paths="relative")
    assert "stores b/same.py:1 in f" in comments({"out": y}, relative)[0]
    below = AnnotationOptions(paths="relative", root=str(tmp_path / "b"))
    assert "stores same.py:1 in f" in comments({"out": y}, below)[0]
    absolute = AnnotationOptions(paths="absolute")
    assert f"stores {second}:1 in f" in comments({"out": y}, absolute)[0]


def test_grouping() -> None:
    y = chain(3)
    grouped = comments({"out": y})
    assert sum("chain.py" in line for line in grouped) == 2
    assert all("chain.py" in line for line in comments(
        {"out": y}, AnnotationOptions(group_by_file=False)))


def test_header_and_variables() -> None:
    bound = pt.generate_loopy({"out": pt.sum(placeholder())})
    full = kernel_source(bound)
    assert full.startswith(f"{MARKER} pytato_provenance: _pt_kernel, made in {HERE}\n")
    assert above(full, "double acc")[-1].startswith("loopy: accumulator for ")
    brief = kernel_source(bound, AnnotationOptions(header=False, variables=False))
    assert not brief.startswith(MARKER)
    assert not above(brief, "double acc")
    assert strip_annotations(brief) == strip_annotations(full)


def test_regions() -> None:
    x = placeholder()
    with region("setup"):
        x = pt.sin(x)
    with region("loop"):
        x = pt.cos(x)
    text = kernel_source(pt.generate_loopy({"out": x}))
    assert f"{MARKER} Regions: loop, setup\n" in text
    assert "[loop] |" in above(text, "out[")[0]
    assert "[setup] |" in above(text, "out[")[1]


def test_options_travel_with_the_program() -> None:
    options = AnnotationOptions(text=False)
    y = placeholder() + 1
    assert "|" not in kernel_source(generate_loopy(y, annotation_options=options))
    enable(annotate=True, annotation_options=options)
    bound = pt.generate_loopy(y)
    enable(annotate=True)
    assert "|" not in kernel_source(bound)
    assert "|" in kernel_source(bound, AnnotationOptions())


def test_parse() -> None:
    assert AnnotationOptions.parse("") == AnnotationOptions()
    assert AnnotationOptions.parse(
        "columns,no-text, most=20,paths=relative,root=x,line-directives") == (
            AnnotationOptions(columns=True, text=False, most=20, paths="relative",
                              root="x", line_directives=True))


@pytest.mark.parametrize("text", [
    "colour", "most", "most=many", "no-most", "text=yes", "paths=somewhere", "root"])
def test_bad_text(text: str) -> None:
    with pytest.raises(UsageError):
        AnnotationOptions.parse(text)


@pytest.mark.parametrize("given", [
    {"most": -1}, {"most": True}, {"width": "wide"}, {"text": 1}, {"paths": "none"},
    {"root": 3}])
def test_bad_options(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"^{next(iter(given))}="):
        AnnotationOptions(**given)


def test_bad_options_of_functions() -> None:
    y = placeholder() + 1
    for call in (lambda: kernel_source(pt.generate_loopy(y), "columns"),
                 lambda: generate_loopy(y, annotation_options="columns"),
                 lambda: enable(annotate=True, annotation_options="columns")):
        with pytest.raises(UsageError, match="AnnotationOptions"):
            call()


def test_hostile_names(queue: Any) -> None:
    """Five hundred of them, as comments and as directives, change nothing."""
    import pyopencl as cl

    alphabet = ["*/", "/*", "\\", "??/", "\r", "\n", '"', "'", "\ud800", "\u202e",
                "\u2028", "\0", "#error", "//", "a", " ", "\t", "{", "%s", "</script>"]
    rng = random.Random(5)
    lines = ["kernel void f(global int *a) {"]
    for number in range(500):
        name = "".join(rng.choices(alphabet, k=rng.randint(1, 8)))
        lines += [line_directive(number + 1, name, MARKER),
                  f"{MARKER} {one_line(name)}", f"a[{number}] = {number};"]
    source = "\n".join([*lines, "}"])
    assert strip_annotations(source) == "\n".join(
        line for line in lines if line.startswith(("kernel", "a["))) + "\n}"
    program = cl.Program(queue.context, source).build()
    result = np.zeros(500, np.int32)
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, result.nbytes)
    program.f(queue, (1,), None, buffer)
    cl.enqueue_copy(queue, result, buffer)
    assert np.array_equal(result, np.arange(500))
    assert not re.search(r"[\0-\x08\x0b-\x1f]", source)

# }}}
