"""Each example runs, in a process of its own, and finds its result right.

The lazy array context is a library, so it is tested as one, too.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest


ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"

# As ``python script.py``, on a host that is mended where it has to be.
RUN = """
import runpy, sys
from pathlib import Path
from pytato_provenance._released_pytato import mend_released_pytato
mend_released_pytato()
del sys.argv[0]
sys.path[0] = str(Path(sys.argv[0]).parent)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run_example(context: Any, name: str, *arguments: str, check: bool = True):
    """Run an example of that *name*, on the device of *context*."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
        ),
        "PYOPENCL_CTX": context.devices[0].platform.name,
    }
    result = subprocess.run(
        [sys.executable, "-c", RUN, str(EXAMPLES / name), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if check:
        assert result.returncode == 0, result.stdout + result.stderr
    return result


def test_heat(cl_ctx: Any):
    result = run_example(cl_ctx, "heat.py", "--calls", "10")
    assert "40 steps" in result.stdout


@pytest.mark.parametrize("order", [1, 3])
def test_advection(cl_ctx: Any, order: int):
    result = run_example(
        cl_ctx, "advection/main.py", "--order", str(order), "--elements", "12", "24"
    )
    last_line = result.stdout.splitlines()[-1]
    assert last_line.startswith("observed order of convergence:")
    assert float(last_line.split()[-1]) > order + 0.75


def test_loopy_call(cl_ctx: Any):
    result = run_example(cl_ctx, "loopy_call.py")
    assert "difference from numpy" in result.stdout


def test_wrong_result_is_a_failure(cl_ctx: Any):
    result = run_example(cl_ctx, "loopy_call.py", "--tolerance", "0", check=False)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "the iteration does not converge"


# {{{ array contexts


def has_lazy_context() -> bool:
    arraycontext = importlib.import_module("arraycontext")
    return hasattr(arraycontext, "PytatoPyOpenCLArrayContext")


needs_arraycontext = pytest.mark.skipif(
    importlib.util.find_spec("arraycontext") is None,
    reason="arraycontext is not installed",
)


@needs_arraycontext
def test_vortex(cl_ctx: Any):
    result = run_example(cl_ctx, "vortex.py", "--order", "2", "--elements", "6", "12")
    assert "observed order of convergence: 2." in result.stdout


@pytest.fixture
def lazy(queue: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module ``lazy_array_context``, and a context on the tests' device."""
    if importlib.util.find_spec("arraycontext") is None:
        pytest.skip("arraycontext is not installed")
    if has_lazy_context():
        pytest.skip("arraycontext has a lazy context of its own")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    module = importlib.import_module("lazy_array_context")
    yield module, module.LazyArrayContext(queue)
    sys.modules.pop("lazy_array_context")


@pytest.fixture
def pair() -> Any:
    """A container of two arrays, in an object array."""
    result = np.empty(2, dtype=object)
    result[0] = np.linspace(0.1, 1, 12).reshape(3, 4)
    result[1] = np.linspace(1, 2, 5)
    return result


def assert_same(actual: Any, expected: Any):
    assert actual.dtype == expected.dtype
    if expected.dtype.char == "O":
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14)
    else:
        np.testing.assert_allclose(actual, expected, rtol=1e-14)


def test_lazy_demonstration(lazy: Any, cl_ctx: Any):
    result = run_example(cl_ctx, "lazy_array_context.py")
    assert result.stdout.startswith("largest value")


def test_lazy_round_trips(lazy: Any, pair: Any):
    _, actx = lazy
    arrays = actx.from_numpy(pair)
    assert_same(actx.to_numpy(arrays), pair)

    frozen = actx.freeze(2 * arrays)
    assert frozen[0].queue is None
    assert_same(actx.to_numpy(actx.thaw(frozen) + 1), 2 * pair + 1)
    assert_same(actx.to_numpy(actx.clone().thaw(frozen)), 2 * pair)


def test_lazy_keeps_values_that_are_there(lazy: Any, pair: Any):
    _, actx = lazy
    arrays = actx.from_numpy(pair)
    assert actx.freeze(arrays)[0].base_data is arrays[0].data.base_data


@pytest.mark.parametrize("transposed", [False, True])
def test_lazy_takes_any_memory_order(lazy: Any, pair: Any, transposed: bool):
    _, actx = lazy
    values = pair[0].T if transposed else pair[0]
    assert_same(actx.to_numpy(1 * actx.from_numpy(values)), values)


@pytest.mark.parametrize("name", ["sqrt", "exp", "sin", "arctan", "log10", "abs"])
def test_lazy_numpy_functions(lazy: Any, pair: Any, name: str):
    _, actx = lazy
    function = getattr(np, name)
    result = actx.to_numpy(getattr(actx.np, name)(actx.from_numpy(pair)))
    for one, other in zip(result, pair, strict=True):
        np.testing.assert_allclose(one, function(other), rtol=1e-13)


def test_lazy_numpy_rearrangements(lazy: Any, pair: Any):
    _, actx = lazy
    x = pair[0]
    ary = actx.from_numpy(x)
    for lazily, expected in [
        (actx.np.concatenate([ary, ary], axis=1), np.concatenate([x, x], axis=1)),
        (actx.np.stack([ary, 2 * ary], axis=1), np.stack([x, 2 * x], axis=1)),
        (actx.np.reshape(ary, (2, 6)), x.reshape(2, 6)),
        (actx.np.transpose(ary), x.T),
        (actx.np.sum(ary, axis=1), x.sum(axis=1)),
        (actx.np.max(ary), x.max()),
        (actx.np.min(ary), x.min()),
        (actx.np.conj(ary), x),
        (actx.np.where(actx.np.less(ary, 0.5), ary, 0.0), np.where(x < 0.5, x, 0)),
        (actx.einsum("ij,kj->ik", ary, ary), x @ x.T),
        (actx.zeros((2, 3), np.float64), np.zeros((2, 3))),
        (actx.empty_like(ary), np.zeros((3, 4))),
    ]:
        assert_same(actx.to_numpy(lazily), expected)

    with pytest.raises(AttributeError, match="no 'fftn' here"):
        _ = actx.np.fftn


def test_lazy_compile(lazy: Any, pair: Any):
    module, actx = lazy
    traces: list[Any] = []

    def affine(arrays: Any, factor: float) -> Any:
        traces.append(arrays)
        return factor * arrays[0] + 1

    compiled = actx.compile(affine)
    assert isinstance(compiled, module.CompiledFunction)
    arrays = actx.from_numpy(pair)
    for factor in (2.0, 3.0):
        result = compiled(arrays + 0, factor)
        assert_same(actx.to_numpy(result), factor * pair[0] + 1)
    assert len(traces) == 1

    ((program, _),) = compiled.traced.values()
    assert program.executor.entrypoint == "affine"

    compiled(arrays[::-1].copy(), 2.0)  # other shapes
    assert len(traces) == 2


def test_lazy_compile_returns_containers(lazy: Any, pair: Any):
    _, actx = lazy
    compiled = actx.compile(lambda arrays: arrays * arrays)
    assert_same(actx.to_numpy(compiled(actx.from_numpy(pair))), pair * pair)


def test_lazy_common_subexpressions_are_stored(lazy: Any, pair: Any):
    _, actx = lazy
    arraycontext = importlib.import_module("arraycontext")

    def square(ary: Any, tag: Any) -> Any:
        root = actx.tag(tag, actx.np.sqrt(ary + 1))
        return root * root

    def stored(tag: Any) -> int:
        compiled = actx.compile(lambda ary: square(ary, tag))
        result = actx.to_numpy(compiled(actx.from_numpy(pair[0])))
        np.testing.assert_allclose(result, pair[0] + 1, rtol=1e-14)
        ((program, _),) = compiled.traced.values()
        return len(program.executor.t_unit.default_entrypoint.instructions)

    assert stored(arraycontext.FirstAxisIsElementsTag()) == 1
    assert stored(arraycontext.CommonSubexpressionTag()) == 2


def test_lazy_call_loopy(lazy: Any, pair: Any):
    _, actx = lazy
    make_loopy_program = importlib.import_module("arraycontext").make_loopy_program
    lp = importlib.import_module("loopy")

    doubler = make_loopy_program(
        "{ [i]: 0 <= i < 5 }",
        "doubled[i] = 2 * ary[i]",
        [lp.GlobalArg("ary, doubled", shape=(5,)), ...],
        name="doubler",
    )
    ary = actx.from_numpy(pair[1])
    result = actx.call_loopy(doubler, ary=ary + 1)["doubled"]
    assert_same(actx.to_numpy(result), 2 * (pair[1] + 1))


def test_lazy_transforms_are_called(lazy: Any, pair: Any):
    module, actx = lazy
    seen: list[str] = []

    class Transforming(module.LazyArrayContext):
        def transform_dag(self, dag: Any) -> Any:
            seen.extend(dag)
            return super().transform_dag(dag)

        def transform_loopy_program(self, t_unit: Any) -> Any:
            seen.append(t_unit.default_entrypoint.name)
            return super().transform_loopy_program(t_unit)

    transforming = Transforming(actx.queue)
    ary = transforming.from_numpy(pair[1])
    assert_same(transforming.to_numpy(ary * ary), pair[1] ** 2)
    assert seen == ["frozen", "frozen_array"]


# }}}
