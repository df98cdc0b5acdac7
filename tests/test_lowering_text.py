"""Foreign text is data; our lines come out again, and nothing else does."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytato as pt
import pytest
from hypothesis import given, strategies as st

from pytato_provenance import disable, enable
from pytato_provenance.diagnostic import ProvenanceWarning
from pytato_provenance.lowering import kernel_source, strip_annotations
from pytato_provenance.lowering.text import MARKER, marker_for, one_line


if TYPE_CHECKING:
    from collections.abc import Iterator


HOSTILE = [
    "a */ b", "/* never closed", "ends in \\", "ends in \\  ", "trigraph ??/",
    "???/ three", "a\rb", "a\nb", "a\x0bb\x0cc\x85d\u2028e\u2029f", "\"quotes'",
    "lone \udc80 \ud800 surrogates", "\u202eright to left\u202c", "\u2066isolate",
    "nul \x00", "\ufeffmark", "tab\there", '#include "x"', MARKER, "é ☃ 𝄞 漢",
    "</script>", "%s %n {0}",
]


def check(text: str) -> None:
    assert len(text.splitlines()) <= 1
    assert text == text.strip()
    text.encode()
    assert text.isprintable()
    assert "??" not in text
    assert "*/" not in text
    assert "/*" not in text
    assert not text.endswith("\\")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile(text: str) -> None:
    check(one_line(text))
    check(one_line(text * 40, 50))


@given(st.text(st.characters(exclude_categories=())))
def test_anything(text: str) -> None:
    check(one_line(text))
    check(one_line(text, 10))


def test_harmless_text_is_kept() -> None:
    for text in ("u = u + dt*lap(u)  # café", "a\\b", "x / y * z", "<lambda>"):
        assert one_line(text) == text


def test_markers() -> None:
    assert marker_for(["int x;", "// <- not ours"]) == MARKER
    assert marker_for([f"  {MARKER} of the user"]) == "//<2-"
    assert marker_for([MARKER, "//<2- too"]) == "//<3-"


def _exec(filename: str, qualname: str, number: int) -> Any:
    source = f"def {qualname}(x):\n    return (x + {number}) * 2\n"
    namespace: dict[str, Any] = {}
    exec(compile(source, filename, "exec"), namespace)
    return namespace[qualname]


@pytest.fixture
def annotating() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", ProvenanceWarning)
        enable(annotate=True)
        yield
    disable()


def test_hostile_names_compile(annotating: None, queue: Any) -> None:
    import pyopencl as cl

    names = [text.replace("\x00", "0") for text in HOSTILE]
    x = pt.make_placeholder(name="x", shape=(4,), dtype=np.float64)
    outputs = {f"out{i}": _exec(f"<{name}>", f"f{i}", i + 2)(x)
               for i, name in enumerate(names)}
    bound = pt.generate_loopy(outputs)
    text = kernel_source(bound)
    assert len(set(text.split("\n")) - set(strip_annotations(text).split("\n"))) > (
        len(names))
    program = cl.Program(queue.context, text).build()
    assert program.get_info(cl.program_info.NUM_KERNELS) == 1


def test_marker_in_the_program(annotating: None) -> None:
    import loopy as lp
    from pytato.loopy import call_loopy

    kernel = lp.make_kernel(
        "{[i]: 0 <= i < 4}",
        [lp.CInstruction("i", f"{MARKER} a line of the user\nout[i] = 2*a[i];",
                         read_variables=frozenset({"a"}), assignees=("out[i]",))],
        [lp.GlobalArg("a", np.float64, (4,)),
         lp.GlobalArg("out", np.float64, (4,), is_input=False)],
        name="by_hand", target=lp.PyOpenCLTarget(),
        lang_version=lp.MOST_RECENT_LANGUAGE_VERSION)
    x = pt.make_placeholder(name="x", shape=(4,), dtype=np.float64)
    bound = pt.generate_loopy({"out": call_loopy(kernel, {"a": x})["out"] + 1})
    text = kernel_source(bound)
    plain = lp.generate_code_v2(bound.program).device_code()
    assert f"{MARKER} a line of the user" in plain
    assert strip_annotations(text) == plain
    assert strip_annotations(plain + "\n" + text) != plain + "\n" + plain
    both = text + "\n" + kernel_source(pt.generate_loopy(x + 1))
    assert strip_annotations(both).startswith(plain)
    assert "pytato_provenance" not in strip_annotations(both)
