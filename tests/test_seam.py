"""The compiled seam answers the common case, and leaves every doubt to Python."""

from __future__ import annotations

import functools
import gc
import inspect
import weakref
from contextvars import ContextVar, copy_context
from types import SimpleNamespace
from typing import Any

import pytest

from pytato_provenance.capture.paths import (
    PurePathTable,
    compiled_path_table,
    compiled_seam,
)


pytestmark = pytest.mark.skipif(
    compiled_seam() is None, reason="the compiled part was not built")

def make_seam(*arguments: Any) -> Any:
    cls = compiled_seam()
    assert cls is not None
    return cls(*arguments)


SITE = SimpleNamespace(tag_set=frozenset({"known"}))


class Setting:
    """A seam with the state that it reads."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        table = compiled_path_table()
        assert table is not None
        self.table = table()
        self.scope = ContextVar[Any]("scope", default=None)
        self.origin = ContextVar[Any]("origin", default=None)
        self.everywhere = SimpleNamespace(quick=(self.table.lookup, 0))
        self.scope_globals = {"_everywhere": self.everywhere}
        self.region_globals: dict[str, Any] = {"ever_opened": False}

        def slow(stacklevel: int = 1) -> str:
            self.asked.append(stacklevel)
            return "slow"

        self.slow = slow
        self.seam = make_seam(
            slow, self.scope, self.scope_globals, self.origin, self.region_globals)


@pytest.fixture
def setting() -> Setting:
    return Setting()


def call(setting: Setting, add: bool, site: Any = SITE) -> Any:
    # One instruction for both: the path is the same.
    return (setting.table.add if add else setting.seam)(*((0, 0, site) * add))


def ask(setting: Setting, known: bool = True) -> Any:
    """Ask the seam at a place whose path is known or not."""
    answer = None
    for add in (True, False):
        if known or not add:
            answer = call(setting, add)
    return answer


def test_common_case(setting: Setting) -> None:
    assert ask(setting) is SITE.tag_set
    assert setting.asked == []


def test_unknown_path(setting: Setting) -> None:
    assert ask(setting, known=False) == "slow"
    assert setting.asked == [1]
    assert setting.seam(stacklevel=3) == "slow"
    assert setting.seam(2) == "slow"
    assert setting.asked == [1, 3, 2]


@pytest.mark.parametrize("change", [
    lambda s: s.region_globals.update(ever_opened=True),
    lambda s: s.region_globals.clear(),
    lambda s: s.scope_globals.clear(),
    lambda s: setattr(s.everywhere, "quick", None),
    lambda s: delattr(s.everywhere, "quick"),
    lambda s: setattr(s.everywhere, "quick", (s.table.lookup,)),
    lambda s: setattr(s.everywhere, "quick", (s.table.lookup, "limit")),
    lambda s: setattr(s.everywhere, "quick", (PurePathTable().lookup, 0)),
    lambda s: setattr(s.everywhere, "quick", (len, 0)),
    lambda s: s.origin.set("a node"),
    lambda s: s.scope.set(SimpleNamespace(quick=None)),
    lambda s: s.scope.set(SimpleNamespace()),
    lambda s: s.table.clear(),
])
def test_every_doubt(setting: Setting, change: Any) -> None:
    def run() -> None:
        answers = []
        for step in ("add", "ask", "ask after the change"):
            if step == "ask after the change":
                change(setting)
            answers.append(call(setting, step == "add"))
        assert answers == [SITE, SITE.tag_set, "slow"]
        assert setting.asked == [1]

    copy_context().run(run)


@pytest.mark.parametrize("site", [SimpleNamespace(tag_set=None), SimpleNamespace(), 3])
def test_sites_that_are_not_ready(setting: Setting, site: Any) -> None:
    answer = None
    for add in (True, False):
        answer = call(setting, add, site)
    assert answer == "slow"


def test_scope_of_this_context(setting: Setting) -> None:
    def run() -> None:
        setting.scope.set(SimpleNamespace(quick=(setting.table.lookup, 0)))
        setting.everywhere.quick = None
        assert ask(setting) is SITE.tag_set

    copy_context().run(run)


def test_errors_of_the_slow_one(setting: Setting) -> None:
    def fails() -> None:
        raise KeyError("of the slow one")

    seam = make_seam(fails, setting.scope, setting.scope_globals, setting.origin,
                     setting.region_globals)
    with pytest.raises(KeyError, match="of the slow one"):
        seam()


def test_it_looks_like_what_it_stands_for(setting: Setting) -> None:
    functools.wraps(setting.slow)(setting.seam)
    assert setting.seam.__wrapped__ is setting.slow
    assert setting.seam.__name__ == "slow"
    assert inspect.signature(setting.seam) == inspect.signature(setting.slow)


def test_cycles_are_collected() -> None:
    setting = Setting()
    setting.seam.setting = setting
    reference = weakref.ref(setting)
    del setting
    gc.collect()
    assert reference() is None


def test_bad_arguments(setting: Setting) -> None:
    for arguments in [(), (1, 2, 3, 4, 5), (len, setting.scope, {}, setting.origin)]:
        with pytest.raises(TypeError):
            make_seam(*arguments)
