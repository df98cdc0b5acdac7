"""Finding nodes and their sites without the code under test where that is possible."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import operations as ops
import pytato as pt

from pytato_provenance import _host, scope as _scope


if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytato_provenance import CreationSite


def nodes_in(value: Any) -> list[Any]:
    """Every node in *value*, whatever holds them."""
    if isinstance(value, tuple | list):
        return [node for item in value for node in nodes_in(item)]
    if isinstance(value, dict):
        return nodes_in(list(value.values()))
    types = _host.host().node_types
    if isinstance(value, types):
        return _host.nodes_in_post_order(value)
    if isinstance(value, _host.host().part_types):
        return nodes_in(list(_host.fields_of(value).values()))
    return []


@contextmanager
def nothing_fails_inside() -> Iterator[None]:
    """Failures of ours are a warning for the program; for a test they are failures."""
    _scope._warned.clear()
    yield
    failed = set(_scope._warned)
    _scope._warned.clear()
    assert not failed


def arrays_in(value: Any) -> list[Any]:
    return [node for node in nodes_in(value) if isinstance(node, pt.Array)]


def number_of_sites(array: Any) -> int:
    """How many creation tags *array* has, by looking at where this host keeps them."""
    if ops.IS_RELEASED:
        assert not any("CreatedAt" in type(tag).__name__ for tag in array.tags)
        return int(hasattr(array.tags, "created_at"))
    return sum("CreatedAt" in type(tag).__name__ for tag in array.non_equality_tags)


def where(site: CreationSite | None) -> ops.Line:
    """File, line and function of the user's frame, which is the innermost."""
    assert site is not None
    frame = site.user_frame
    assert frame is not None
    # Nothing of the host, nor of ours, lies beneath the user's frame.
    assert site.frames[0] is frame
    return frame.filename, frame.lineno, frame.qualname.rpartition(".")[2]


def run_python(*args: str, timeout: int = 120) -> str:
    """The output of a new interpreter that finds the package and these tests."""
    here = os.path.dirname(__file__)
    path = os.pathsep.join([here, os.path.dirname(here),
                            *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, timeout=timeout,
        env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    return done.stdout
