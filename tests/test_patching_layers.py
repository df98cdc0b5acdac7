"""Sets of patches that share an attribute come out in any order."""

from __future__ import annotations

import itertools
import sys
import types
from typing import TYPE_CHECKING, Any

import pytest

from pytato_provenance._patching import PatchPoint, PatchSet, left_behind


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _shout(word: str) -> Callable[[Any], Any]:
    def wrapper(original: Callable[..., list[str]]) -> Callable[..., list[str]]:
        def replacement(*args: Any) -> list[str]:
            return [word, *original(*args)]

        return replacement

    return wrapper


class _Base:
    def inherited(self) -> list[str]:
        return ["method"]


class _Derived(_Base):
    pass


@pytest.fixture
def module() -> Iterator[Any]:
    module: Any = types.ModuleType("patched_by_layers")
    module.function = lambda: ["function"]
    module.Derived = _Derived
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


@pytest.mark.parametrize("order", list(itertools.permutations("abc")), ids="".join)
def test_any_order(module: Any, order: tuple[str, ...]) -> None:
    function = module.function
    sets = {
        word: PatchSet([
            PatchPoint(module.__name__, path, _shout(word), "a test")
            for path in ("function", "Derived.inherited")])
        for word in "abc"}
    for patches in sets.values():
        patches.install()
    inside = list("cba")
    assert module.function() == [*inside, "function"]
    for word in order:
        sets[word].restore()
        inside.remove(word)
        assert module.function() == [*inside, "function"]
        assert _Derived().inherited() == [*inside, "method"]
        assert bool(left_behind()) == bool(inside)
    assert module.function is function
    assert "inherited" not in vars(_Derived)


def test_what_stands_in_a_class_is_the_same_object_each_time() -> None:
    # CPython may keep a pointer to it that it does not own.
    patches = PatchSet([PatchPoint(__name__, "_Base.inherited", _shout("one"), "")])
    patches.install()
    replacement = _Base.inherited
    patches.restore()
    assert _Base.inherited is not replacement
    patches.install()
    try:
        assert _Base.inherited is replacement
        assert _Derived().inherited() == ["one", "method"]
    finally:
        patches.restore()
