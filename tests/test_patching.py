"""Replacing attributes and putting the identical objects back."""

from __future__ import annotations

import inspect
import sys
import types
import warnings
from typing import Any

import pytest

from pytato_provenance._patching import PatchPoint, PatchSet, left_behind
from pytato_provenance.diagnostic import ProvenanceWarning
from pytato_provenance.patch_points import recording_points


class Meta(type):
    """Classes that can refuse an attribute."""

    def __setattr__(cls, name: str, value: Any) -> None:
        if name == "refuses" and callable(value) and hasattr(value, "__wrapped__"):
            raise RuntimeError("no")
        super().__setattr__(name, value)


class Base:
    def method(self, a: int, *, b: int = 2) -> tuple[int, int]:
        """Text."""
        return a, b

    @staticmethod
    def static() -> str:
        return "static"

    @classmethod
    def of_class(cls) -> str:
        return cls.__name__

    value = property(lambda self: 3)

    class Inner:
        attribute = "inner"


class Derived(Base):
    pass


class Stubborn(metaclass=Meta):
    def refuses(self) -> str:
        return "refused"


@pytest.fixture
def target():
    module: Any = types.ModuleType("a_target")
    module.function = lambda: "function"
    module.number = 5
    module.Base, module.Derived, module.Stubborn = Base, Derived, Stubborn
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]
    assert left_behind() == ()


def wrapped(original):
    def wrapper(*args, **kwargs):
        return "wrapped", original(*args, **kwargs)

    return wrapper


def point(path, wrapper=wrapped, needs=None):
    return PatchPoint("a_target", path, wrapper, "a reason", needs)


def test_in_and_out(target):
    before = {owner: dict(vars(owner)) for owner in (target, Base, Derived, Base.Inner)}
    patches = PatchSet([point("function"), point("Base.method"),
                        point("number", lambda original: original + 1),
                        point("Base.Inner.attribute", str.upper)])
    assert not patches.installed
    patches.install()
    assert patches.installed
    assert target.function() == ("wrapped", "function")
    assert Base().method(1) == Derived().method(1) == ("wrapped", (1, 2))
    assert (target.number, Base.Inner.attribute) == (6, "INNER")
    assert left_behind() == ("a_target.Base.Inner.attribute", "a_target.Base.method",
                             "a_target.function", "a_target.number")
    patches.install()
    assert target.function() == ("wrapped", "function")
    patches.restore()
    patches.restore()
    assert not patches.installed
    for owner, attributes in before.items():
        assert vars(owner).keys() == attributes.keys()
        assert all(vars(owner)[name] is value for name, value in attributes.items())


def test_an_inherited_attribute_is_deleted_again(target):
    patches = PatchSet([point("Derived.method")])
    patches.install()
    assert Derived().method(1) == ("wrapped", (1, 2))
    assert Base().method(1) == (1, 2)
    assert "method" in vars(Derived)
    patches.restore()
    assert "method" not in vars(Derived)


def test_descriptors_come_back_as_they_were(target):
    originals = [vars(Base)[name] for name in ("static", "of_class", "value")]
    patches = PatchSet([
        point("Base.static", lambda original: staticmethod(lambda: "ours")),
        point("Base.of_class", lambda original: classmethod(
            lambda cls: ("ours", original.__func__(cls)))),
        point("Base.value", lambda original: property(
            lambda self: original.__get__(self) + 1))])
    patches.install()
    assert (Derived.static(), Derived.of_class(), Base().value) == (
        "ours", ("ours", "Derived"), 4)
    patches.restore()
    assert [vars(Base)[name] for name in ("static", "of_class", "value")] == originals


def test_wrappers_keep_what_people_look_at(target):
    patches = PatchSet([point("Base.method")])
    original = Base.method
    patches.install()
    try:
        assert Base.method is not original
        assert inspect.unwrap(Base.method) is original
        assert Base.method.__name__ == "method"
        assert Base.method.__qualname__ == "Base.method"
        assert Base.method.__doc__ == "Text."
        assert Base.method.__module__ == original.__module__
        assert inspect.signature(Base.method) == inspect.signature(original)
    finally:
        patches.restore()


def test_a_point_that_needs_what_is_not_there(target):
    patches = PatchSet([point("function"), point("no_such", needs=lambda: False)])
    patches.install()
    assert left_behind() == ("a_target.function",)
    patches.restore()


@pytest.mark.parametrize("bad", [
    point("no_such"), point("Base.no_such"), point("no.such"),
    PatchPoint("no_such_module_of_anybody", "x", wrapped, ""),
    point("Base.method", lambda original: 1 / 0)], ids=str)
def test_none_if_one_cannot_be_found(target, bad):
    before = dict(vars(target))
    patches = PatchSet([point("function"), bad, point("Base.static")])
    with pytest.raises((AttributeError, ImportError, ZeroDivisionError)):
        patches.install()
    assert not patches.installed
    assert dict(vars(target)) == before
    assert left_behind() == ()


def test_none_if_one_cannot_be_set(target):
    before = dict(vars(target))
    patches = PatchSet([point("function"), point("Stubborn.refuses"), point("number")])
    with pytest.raises(RuntimeError, match="no"):
        patches.install()
    assert not patches.installed
    assert dict(vars(target)) == before
    assert Stubborn().refuses() == "refused"


def test_what_somebody_else_replaced_since_stays(target):
    original = target.function
    patches = PatchSet([point("function"), point("Base.method")])
    patches.install()
    ours = target.function

    def theirs():
        return "theirs", ours()

    target.function = theirs
    replaced = r"'a_target\.function' was replaced"
    with pytest.warns(ProvenanceWarning, match=replaced) as caught:
        patches.restore()
    assert len(caught) == 1
    assert target.function is theirs
    assert vars(Base)["method"].__name__ == "method"
    assert not hasattr(Base.method, "__wrapped__")
    # Nor does switching on again forget it.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        patches.install()
        patches.restore()
    assert target.function is theirs
    target.function = original


def test_every_row_of_the_table_says_why():
    for row in recording_points():
        assert row.reason, row
        assert str(row) == f"{row.module}.{row.path}"
    names = [str(row) for row in recording_points() if row.needs is None or row.needs()]
    assert len(names) == len(set(names))
    assert len(names) > 5
