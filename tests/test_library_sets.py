"""Ready sets of libraries, on packages made up of empty files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from pytato_provenance import frames, register_library_set
from pytato_provenance.diagnostic import UsageError
from pytato_provenance.library_sets import LIBRARY_SETS, library_set_names


if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Packages of the sets' names, that cannot be imported."""
    for name in LIBRARY_SETS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in LIBRARY_SETS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    libraries = frames._registry._libraries
    saved = libraries.directories, libraries.files
    yield tmp_path
    libraries.directories, libraries.files = saved
    frames._registry.version += 1


def test_of_grudge_the_plumbing_but_not_the_models(packages: Path) -> None:
    grudge = packages / "grudge"
    for name in ("op.py", "geometry/metrics.py", "models/euler.py", "driver.py"):
        (grudge / name).parent.mkdir(exist_ok=True)
        (grudge / name).write_text("")
    assert register_library_set("grudge") == ("grudge.geometry", "grudge.op")
    assert not frames.is_user_code(str(grudge / "op.py"))
    assert not frames.is_user_code(str(grudge / "geometry/metrics.py"))
    assert frames.is_user_code(str(grudge / "models/euler.py"))
    assert frames.is_user_code(str(grudge / "driver.py"))
    assert "grudge" not in sys.modules


@pytest.mark.parametrize("name", LIBRARY_SETS)
def test_each_set_is_found(packages: Path, name: str) -> None:
    modules = LIBRARY_SETS[name]
    for module in modules:
        (packages / (module.replace(".", "/") + ".py")).write_text("")
    assert register_library_set(name) == modules
    for module in modules:
        path = str(packages / (module.replace(".", "/") + ".py"))
        assert not frames.is_user_code(path)


def test_the_equations_are_the_users() -> None:
    modules = {module for names in LIBRARY_SETS.values() for module in names}
    for equations in ("grudge.models", "mirgecom.euler", "mirgecom.navierstokes",
                      "mirgecom.inviscid", "mirgecom.viscous", "mirgecom.eos",
                      "mirgecom.boundary", "mirgecom.wave"):
        assert equations not in modules


@pytest.mark.parametrize("name", ["pytential", "", None, ["grudge"]])
def test_an_unknown_set(name: Any) -> None:
    with pytest.raises(UsageError, match=", ".join(library_set_names())):
        register_library_set(name)


def test_a_set_of_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    with pytest.raises(UsageError, match="not installed"):
        register_library_set("mirgecom")
