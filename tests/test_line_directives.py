"""What compilers, debuggers and errors say of a statement is a line of the program."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
import traceback
import warnings
from typing import TYPE_CHECKING, Any

import loopy as lp
import numpy as np
import pytato as pt
import pytest
from pymbolic import var
from running import python

from pytato_provenance import (
    AnnotationOptions,
    disable,
    enable,
    kernel_source,
    strip_annotations,
)
from pytato_provenance.diagnostic import ProvenanceWarning
from pytato_provenance.lowering import MARKER, Ledger
from pytato_provenance.lowering.instruction_tags import without_sites
from pytato_provenance.lowering.text import line_directive


if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


HERE = os.path.basename(__file__)
DIRECTIVES = AnnotationOptions(line_directives=True, root=os.path.dirname(__file__))


@pytest.fixture(autouse=True)
def _no_failures_inside() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", ProvenanceWarning)
        yield
    disable()


def line_of(function: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    number, = (i for i, line in enumerate(lines, first) if text in line)
    return number


def many_statements() -> dict[str, Any]:
    state = pt.make_placeholder(name="state", shape=(10,), dtype=np.float64)
    outputs = {}
    for number in range(30):
        state = pt.sin(state)*number
        outputs[f"state{number}"] = state
    limited = state + 0.5
    outputs["limited"] = limited
    outputs["total"] = pt.sum(limited)
    return outputs


class Limiter(lp.ScalarCallable):
    """A function that nobody defines on the device."""

    def with_types(self, arg_id_to_dtype: Any, clbl_inf_ctx: Any) -> Any:
        return self.copy(name_in_target="limiter", arg_id_to_dtype={
            0: arg_id_to_dtype[0], -1: arg_id_to_dtype[0]}), clbl_inf_ctx

    def with_descrs(self, arg_id_to_descr: Any, clbl_inf_ctx: Any) -> Any:
        return self.copy(arg_id_to_descr=arg_id_to_descr), clbl_inf_ctx


def broken(program: Any) -> Any:
    """A user's transformation: it limits what is stored into ``limited``."""
    program = lp.register_callable(program, "limiter", Limiter("limiter"))
    kernel = program.default_entrypoint
    return program.with_kernel(kernel.copy(instructions=[
        insn.copy(expression=var("limiter")(insn.expression))
        if insn.id == "limited_store" else insn for insn in kernel.instructions]))


def error_of(program: Any, queue: Any) -> BaseException:
    with pytest.raises(Exception) as info:
        program.executor(queue.context)(queue, state=np.ones(10))
    return info.value


def said_of(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error))


# {{{ the text

def check_directives(text: str) -> list[tuple[int, str]]:
    """The line that a compiler gives each line of code: its own in the text, but for
    those of statements."""
    found = []
    lineno, file = 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        match = re.fullmatch(rf'#line (\d+) "(.*)" {re.escape(MARKER)}', line)
        if match is not None:
            lineno, file = int(match[1]), match[2]
            continue
        if file.endswith(".cl"):
            assert lineno == number
        elif file:
            found.append((lineno, file))
        lineno += 1
    return found


def test_text() -> None:
    enable(annotate=True)
    bound = pt.generate_loopy(many_statements())
    text = kernel_source(bound, DIRECTIVES)
    plain = lp.generate_code_v2(without_sites(bound.program)).device_code()
    assert strip_annotations(text) == plain
    found = check_directives(text)
    assert {file for _, file in found} == {HERE}
    lines = {lineno for lineno, _ in found}
    assert lines == {line_of(many_statements, "pt.sin(state)"),
                     line_of(many_statements, "limited = "),
                     line_of(many_statements, "pt.sum(limited)")}
    assert "#line" not in kernel_source(bound)


def test_absolute_paths() -> None:
    enable(annotate=True)
    bound = pt.generate_loopy(many_statements())
    assert __file__ not in kernel_source(bound, DIRECTIVES)
    text = kernel_source(bound, AnnotationOptions(
        line_directives=True, paths="absolute"))
    assert f'"{__file__}" {MARKER}' in text


@pytest.mark.parametrize("name", [
    'a"b', "a\\b", "a\nb", "a\r#error b", "a\\", "??/", "\udc80", "\u202e", "*/"])
def test_hostile_paths(name: str, queue: Any) -> None:
    import pyopencl as cl

    directive = line_directive(3, name, MARKER)
    assert len(directive.splitlines()) == 1
    source = f"{directive}\nkernel void f(global double *a) {{ a[0] = 1; }}"
    assert cl.Program(queue.context, source).build() is not None
    assert strip_annotations(source) == source.split("\n")[1]

# }}}


# {{{ what others say

def test_message_of_the_compiler(queue: Any) -> None:
    enable(annotate="embed", annotation_options=DIRECTIVES)
    program = broken(pt.generate_loopy(many_statements()).program)
    error = error_of(program, queue)
    number = line_of(many_statements, "limited = ")
    assert re.search(rf"{HERE}:{number}:\d+: .*limiter", str(error))
    if sys.version_info >= (3, 11):
        assert "statement 'limited_store' comes from" in said_of(error)


@pytest.mark.parametrize("mode", ["beside", "embed"])
def test_note_without_directives(mode: str, queue: Any) -> None:
    enable(annotate=mode)
    with Ledger() as ledger:
        program = broken(pt.generate_loopy(many_statements()).program)
        error = error_of(program, queue)
    assert HERE not in str(error)
    number = line_of(many_statements, "limited = ")
    expected = (f"stores {HERE}:{number} in many_statements | limited = state + 0.5")
    entry, = ledger.entries
    assert expected in "\n".join(entry.failures)
    if sys.version_info >= (3, 11):
        said = said_of(error)
        assert expected in said
        assert said.count("pytato_provenance:") == 1
        text = kernel_source(program) if mode == "embed" else (
            strip_annotations(kernel_source(program)))
        line, = re.findall(r"'limited_store' \(line (\d+) of the generated code\)",
                           said)
        assert "limiter(" in text.split("\n")[int(line) - 1]


def test_note_on_an_error_of_loopy(queue: Any) -> None:
    enable(annotate=True)
    program = pt.generate_loopy(many_statements()).program
    # All others would have to use the axis too.
    error = error_of(lp.tag_inames(program, {"limited_dim0": "l.0"}), queue)
    assert isinstance(error, lp.LoopyError)
    statement, = re.findall(r"\b(\w+_store\w*)", str(error))[:1]
    if sys.version_info >= (3, 11):
        number = line_of(many_statements, "pt.sum(limited)" if "state" not in statement
                         else "pt.sin(state)")
        assert f"statement '{statement}' come" in said_of(error)
        assert f" {HERE}:{number} in many_statements" in said_of(error)


def test_note_on_an_error_of_pytato(monkeypatch: pytest.MonkeyPatch) -> None:
    from pytato.target.loopy import codegen

    original = codegen.CodeGenMapper.map_index_lambda

    def map_index_lambda(self: Any, expr: Any, *args: Any) -> Any:
        if expr.shape == (7,):
            raise NotImplementedError("seven")
        return original(self, expr, *args)

    monkeypatch.setattr(codegen.CodeGenMapper, "map_index_lambda", map_index_lambda)
    enable(annotate=True)
    x = pt.make_placeholder(name="x", shape=(7,), dtype=np.float64)
    failing = pt.sin(x)
    with pytest.raises(NotImplementedError, match="seven") as info:
        pt.generate_loopy({"out": failing})
    if sys.version_info >= (3, 11):
        number = line_of(test_note_on_an_error_of_pytato, " = pt.sin" + "(x)")
        assert said_of(info.value).splitlines()[1:] == [
            "pytato_provenance: while code was generated for the IndexLambda created "
            f"at {HERE}:{number} in test_note_on_an_error_of_pytato"]
    disable()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="errors have no notes")
def test_note_on_an_error_of_preprocessing(monkeypatch: pytest.MonkeyPatch) -> None:
    from pytato.codegen import CodeGenPreprocessor

    original = CodeGenPreprocessor.map_index_lambda

    def map_index_lambda(self: Any, expr: Any, *args: Any) -> Any:
        if expr.shape == (7,):
            raise NotImplementedError("seven")
        return original(self, expr, *args)

    monkeypatch.setattr(CodeGenPreprocessor, "map_index_lambda", map_index_lambda)
    enable(annotate=True)
    x = pt.make_placeholder(name="x", shape=(7, 2), dtype=np.float64)
    failing = pt.sin(x[:, 0])
    with pytest.raises(NotImplementedError, match="seven") as info:
        pt.generate_loopy({"out": pt.stack([failing, x[:, 1]])})
    number = line_of(test_note_on_an_error_of_preprocessing, " = pt.sin" + "(x[")
    assert said_of(info.value).splitlines()[1:] == [
        "pytato_provenance: while code was generated for the IndexLambda created "
        f"at {HERE}:{number} in test_note_on_an_error_of_preprocessing"]
    disable()


def test_errors_reach_the_user_untouched(queue: Any) -> None:
    plain = error_of(broken(pt.generate_loopy(many_statements()).program), queue)
    enable(annotate=True)
    noted = error_of(broken(pt.generate_loopy(many_statements()).program), queue)
    assert type(noted) is type(plain)

    def comparable(error: BaseException) -> str:
        return re.sub(r"tempfile_\w+|0x\w+", "", str(error))

    assert comparable(noted) == comparable(plain)

# }}}


SCRIPT = """\
import numpy as np, loopy as lp, pyopencl as cl
import pytato_provenance as pp
pp.mend_released_pytato()
import pytato as pt
pp.enable(annotate="embed",
          annotation_options=pp.AnnotationOptions(line_directives=True))
x = pt.make_placeholder(name="x", shape=(10,), dtype=np.float64)
y = pt.sin(x)
z = y*3
total = pt.sum(x)
bound = pt.generate_loopy({"y": y, "z": z, "total": total})
program = lp.set_options(bound.program, build_options=["-g", "-cl-opt-disable"])
context = cl.create_some_context(interactive=False)
assert "Portable" in context.devices[0].platform.name
program.executor(context)(cl.CommandQueue(context), x=np.ones(10))
"""


def test_line_table(tmp_path: Path, queue: Any) -> None:
    """What debuggers and profilers read."""
    if "Portable" not in queue.device.platform.name or not shutil.which("readelf"):
        pytest.skip("needs PoCL and readelf")
    (tmp_path / "driver.py").write_text(SCRIPT)
    cache = tmp_path / "cache"
    done = python(tmp_path, "driver.py", POCL_CACHE_DIR=str(cache),
                  POCL_LEAVE_KERNEL_COMPILER_TEMP_FILES="1", PYTHONWARNINGS="ignore")
    assert done.returncode == 0, done.stderr
    library, = cache.rglob("_pt_kernel.so")
    table = subprocess.run(
        ["readelf", "--debug-dump=decodedline", library], check=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    found = {int(line) for line in re.findall(r"^driver\.py +(\d+) ", table, re.M)}
    lines = SCRIPT.split("\n")
    assert found == {number for number, line in enumerate(lines, 1)
                     if line.startswith(("y = ", "z = ", "total = "))}
