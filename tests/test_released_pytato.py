from __future__ import annotations

import inspect
import itertools
import subprocess
import sys
import threading
import types
import warnings

import loopy
import numpy as np
import pytest
import pytools.tag

from pytato_provenance import _released_pytato as mend
from pytato_provenance.diagnostic import HostMissingError, ProvenanceWarning


mend.mend_released_pytato()

import pytato as pt  # noqa: E402  (the released one imports quietly after the mend)
import pytato.array  # noqa: E402
import pytato.target.loopy.codegen as codegen  # noqa: E402


USED_AND_GONE = {
    name
    for name in ("bool8", "find_common_type", "NaN")
    if f"np.{name}" in inspect.getsource(pytato.array) and not hasattr(np, name)
}
needs_mend = pytest.mark.skipif(
    not USED_AND_GONE, reason="this pytato uses nothing that numpy took away"
)


@pytest.fixture(autouse=True)
def mended_afterwards():
    yield
    mend.unmend_released_pytato()
    mend.mend_released_pytato()


def snapshot():
    """Every attribute of the hosts' modules and of pytato's classes, by identity."""
    result = {}
    for module_name, module in sorted(sys.modules.items()):
        if module_name.partition(".")[0] not in {"pytato", "numpy", "loopy", "pytools"}:
            continue
        owners = [module]
        if module_name.startswith("pytato"):
            owners += [v for v in vars(module).values() if isinstance(v, type)]
        for owner in owners:
            for name, value in list(vars(owner).items()):
                # The second is filled by warnings as they come, mended or not.
                if name not in {"__doc__", "__warningregistry__"}:
                    result[owner, name] = value
    return result


def difference(before, after):
    missing = object()
    return {
        (getattr(owner, "__name__", owner), name)
        for owner, name in before.keys() | after.keys()
        if before.get((owner, name), missing) is not after.get((owner, name), missing)
    }


def test_touches_pytatos_own_namespaces_only_and_restores_them():
    mend.unmend_released_pytato()
    before = snapshot()
    assert mend.mend_released_pytato() == bool(USED_AND_GONE)
    expected = {
        ("pytato.array", "np"),
        ("pytato.target.loopy.codegen", "lp"),
        ("Array", "__init__"),
    }
    assert difference(before, snapshot()) == (expected if USED_AND_GONE else set())

    mend.unmend_released_pytato()
    assert difference(before, snapshot()) == set()
    mend.unmend_released_pytato()
    assert difference(before, snapshot()) == set()


def test_twice_is_once():
    mend.mend_released_pytato()
    before = snapshot()
    mend.mend_released_pytato()
    assert difference(before, snapshot()) == set()
    assert mend.is_mended() == bool(USED_AND_GONE)


@needs_mend
def test_every_name_that_went_away_is_there_again():
    for name in USED_AND_GONE:
        assert hasattr(pytato.array.np, name)
        assert not hasattr(np, name)


@needs_mend
@pytest.mark.parametrize(("view", "library"), [("np", np), ("lp", loopy)])
def test_a_view_answers_as_its_library(view, library, monkeypatch):
    module = pytato.array if view == "np" else codegen
    view = getattr(module, view)
    assert view is not library
    assert isinstance(view, types.ModuleType)
    assert library.__name__ in repr(view)
    for name in dir(library):
        if name != "GlobalArg" and name in vars(library):
            assert getattr(view, name) is getattr(library, name)

    with pytest.raises(AttributeError, match="no_such_name"):
        _ = view.no_such_name
    monkeypatch.setattr(library, "set_later", object(), raising=False)
    assert view.set_later is library.set_later
    view.set_through_the_view = 7
    assert library.set_through_the_view == 7
    del view.set_through_the_view
    assert not hasattr(library, "set_through_the_view")


def smallest_type_that_holds(dtypes):
    """What ``numpy.find_common_type`` did for array types."""
    for code in "?" + "bBhHiIlLqQ" + "efdg" + "FDG":
        if all(np.can_cast(dtype, code, "safe") for dtype in dtypes):
            return np.dtype(code)
    raise AssertionError


@needs_mend
def test_find_common_type():
    find_common_type = pytato.array.np.find_common_type
    dtypes = [np.dtype(code) for code in "?bBhHiIlLfdFD"]
    for pair in itertools.product(dtypes, dtypes):
        expected = smallest_type_that_holds(pair)
        assert find_common_type(pair, []) == expected
        assert find_common_type(array_types=pair, scalar_types=[]) == expected
    with pytest.raises(TypeError, match="array types"):
        find_common_type([np.float32], [np.float64])


@needs_mend
@pytest.mark.parametrize("is_output_only", [True, False])
def test_global_arg(is_output_only):
    arg = codegen.lp.GlobalArg(
        "a", shape=(3,), dtype=np.float64, order="C", is_output_only=is_output_only
    )
    assert isinstance(arg, loopy.ArrayArg)
    assert arg.is_output is is_output_only
    assert arg.is_input is not is_output_only
    plain = codegen.lp.GlobalArg("a", shape=(3,), dtype=np.float64)
    assert plain == loopy.GlobalArg("a", shape=(3,), dtype=np.float64)


@needs_mend
def test_construction_is_quiet_and_otherwise_as_before():
    tags = frozenset([pytools.tag.Tag()])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = pt.make_placeholder(name="x", shape=(3,), dtype=np.float64)
        tagged = pt.make_placeholder(
            name="x", shape=(3,), dtype=np.float64, tags=tags
        )
        assert pytools.tag.Taggable.__init__ is not pt.Array.__init__
        with pytest.raises(DeprecationWarning):  # pytools' own class is as it was
            pytools.tag.Taggable()
    assert plain.tags == frozenset()
    assert tagged.tags is tags
    mended = pt.Array.__init__
    assert inspect.signature(mended) == inspect.signature(pytools.tag.Taggable.__init__)

    mend.unmend_released_pytato()
    assert "__init__" not in vars(pt.Array)
    with pytest.warns(DeprecationWarning, match="Taggable constructor"):
        pt.make_placeholder(name="x", shape=(3,), dtype=np.float64)


# The NaN constant in the released one's maximum and minimum, and what comes of it.
@pytest.mark.filterwarnings("ignore:Encountered a NaN while hashing")
@pytest.mark.filterwarnings("ignore:Encountered 'bare' floating point NaN value")
@pytest.mark.filterwarnings("ignore:.*key collision in cache")
def test_runs(queue):
    x_np = np.array([1.0, np.nan, -3.0, 4.0])
    y_np = np.array([2.0, 0.0, np.nan, -4.0])
    x = pt.make_placeholder(name="x", shape=(4,), dtype=np.float64)
    y = pt.make_placeholder(name="y", shape=(4,), dtype=np.float64)
    for result, expected in [
        (pt.minimum(x, y), np.minimum(x_np, y_np)),
        (pt.maximum(x, y), np.maximum(x_np, y_np)),
        (pt.einsum("i,i->i", x, y), x_np * y_np),
        (pt.where(pt.less(x, y), x, y), np.where(x_np < y_np, x_np, y_np)),
    ]:
        _, (out,) = pt.generate_loopy(result)(queue, x=x_np, y=y_np)
        np.testing.assert_array_equal(out, expected)


@needs_mend
def test_what_was_replaced_later_stays(monkeypatch):
    theirs = object()
    with monkeypatch.context() as patch:
        patch.setattr(pytato.array, "np", theirs)
        with pytest.warns(ProvenanceWarning, match=r"pytato\.array\.np' was replaced"):
            mend.unmend_released_pytato()
        assert pytato.array.np is theirs
        assert codegen.lp is loopy
    pytato.array.np = np


def test_from_many_threads_at_once():
    mend.unmend_released_pytato()
    before = snapshot()
    start = threading.Barrier(8)
    failures = []

    def work(number):
        start.wait()
        try:
            for _ in range(20):
                if number % 2:
                    mend.unmend_released_pytato()
                else:
                    mend.mend_released_pytato()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    mend.unmend_released_pytato()
    assert difference(before, snapshot()) == set()


def run_python(*args):
    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, timeout=120
    )


def test_importing_it_imports_no_host_and_the_mend_imports_quietly():
    program = (
        "import sys\n"
        "import pytato_provenance._released_pytato as mend\n"
        "assert not {'pytato', 'loopy', 'numpy'} & set(sys.modules)\n"
        "mend.mend_released_pytato()\n"
        "assert 'pytato' in sys.modules\n"
        "import warnings\n"
        "filters = warnings.filters\n"
        "assert any('numpy.dtype' in str(f[1]) for f in filters), 'of numpy'\n"
        "assert not any('pytato' in str(f[3]) for f in filters), 'of the mend'\n"
    )
    done = run_python("-W", "default::DeprecationWarning", "-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_host_that_is_missing_is_named(monkeypatch):
    import importlib.util

    find_spec = importlib.util.find_spec
    monkeypatch.delitem(sys.modules, "pytato")
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda n: None if n == "pytato" else find_spec(n)
    )
    mend.unmend_released_pytato()
    with pytest.raises(HostMissingError, match="pytato is not installed"):
        mend.mend_released_pytato()
