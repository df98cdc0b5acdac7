"""What users' own tests may use."""

from __future__ import annotations

import doctest

import pytato as pt
import pytest
from looking import run_python

import pytato_provenance as pp
from pytato_provenance import testing
from pytato_provenance.testing import assert_pristine


pytestmark = pytest.mark.usefixtures("disabled_afterwards")


def test_pristine():
    assert_pristine()
    pp.enable()
    pp.disable()
    assert_pristine()


def test_recording_is_on():
    pp.enable()
    message = (r"(?s)recording is on here; .*'stack' runs; "
               r".*pytato\.transform\.Mapper\.rec is patched.*disable\(\)")
    with pytest.raises(AssertionError, match=message):
        assert_pristine()


def test_patched_though_nothing_records():
    with pp.recording():
        pass
    with pytest.raises(AssertionError, match="not pristine: the capture strategy"):
        assert_pristine()


def test_a_patch_that_was_left_behind(monkeypatch):
    with pp.recording():
        ours = pt.transform.Mapper.rec
    pp.disable()
    assert_pristine()
    with monkeypatch.context() as patch:
        patch.setattr(pt.transform.Mapper, "rec", ours)
        with pytest.raises(AssertionError, match=r"not pristine: .*Mapper\.rec is p"):
            assert_pristine()
    assert_pristine()


def test_it_imports_no_host():
    assert run_python("-c", (
        "import sys\n"
        "from pytato_provenance.testing import assert_pristine\n"
        "assert_pristine()\n"
        "print({'pytato', 'loopy'} & set(sys.modules))\n")) == "set()\n"


def test_the_fixture_of_its_documentation():
    assert "autouse=True" in (testing.assert_pristine.__doc__ or "")
    assert doctest.testmod(testing).failed == 0
