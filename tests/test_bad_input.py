"""What the public functions say about input of the wrong kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytato as pt
import pytest

import pytato_provenance as pp
from pytato_provenance.diagnostic import UsageError


if TYPE_CHECKING:
    from collections.abc import Callable


NO_ARRAYS = [3, None, "x", np.zeros(3), object()]

TAKE_ARRAYS: list[Callable[[Any], Any]] = [
    pp.created_at, pp.history_of, pp.explain, pp.generate_loopy,
    lambda dag: pp.audit(lambda x: x, dag),
    lambda dag: pp.through(lambda x: x)(dag)]

TAKE_OTHERS: list[Callable[[Any], Any]] = [
    pp.contributors, pp.kernel_source, pp.precompile, pp.wrap_array_context,
    pp.unwrap_array_context, pp.provenance_array_context]

TAKE_NAMES: list[Callable[[Any], Any]] = [
    pp.region, pp.register_library, pp.register_user, pp.register_library_set,
    pp.strip_annotations]


@pytest.mark.parametrize("function", TAKE_ARRAYS + TAKE_OTHERS)
@pytest.mark.parametrize("bad", NO_ARRAYS, ids=lambda bad: type(bad).__name__)
def test_no_array(function: Callable[[Any], Any], bad: object) -> None:
    with pytest.raises(UsageError):
        function(bad)


@pytest.mark.parametrize("function", TAKE_NAMES)
@pytest.mark.parametrize("bad", [3, None, np.zeros(3), b"x"],
                         ids=lambda bad: type(bad).__name__)
def test_no_name(function: Callable[[Any], Any], bad: object) -> None:
    with pytest.raises(UsageError):
        function(bad)


@pytest.mark.parametrize("bad", [3, None, "x"])
def test_no_transform(bad: Any) -> None:
    with pytest.raises(UsageError, match="a mapper or a function"):
        pp.through(bad)
    with pytest.raises(UsageError):
        pp.audit(bad, np.zeros(3))


def test_mixin_after_the_mapper() -> None:
    with pytest.raises(UsageError, match="before CopyMapper among the bases"):
        type("Late", (pt.transform.CopyMapper, pp.PreserveCreatedAtMixin), {})
    early = type("Early", (pp.PreserveCreatedAtMixin, pt.transform.CopyMapper), {})
    type("Derived", (early,), {})


@pytest.mark.parametrize(("arguments", "message"), [
    ({"capture": 3}, "unknown capture strategy 3"),
    ({"capture": []}, "unknown capture strategy"),
    ({"capture": ""}, "unknown capture strategy"),
    ({"max_frames": "four"}, "max_frames='four': pass at least 1"),
    ({"max_frames": 1.5}, "max_frames=1.5: pass at least 1"),
    ({"frames": 4}, "strategy 'stack' has no option 'frames'; it has max_frames and "),
    ({"capture": "site", "max_frames": 4}, "'site' has no option 'max_frames'; it has"),
    ({"history": 5}, "history=5: pass True or False"),
    ({"history": "no"}, "history='no': pass True or False"),
    ({"annotate": 1.0}, "annotate=1.0"),
    ({"annotate": np.zeros(2)}, "annotate="),
    ({"annotation_options": 3}, r"AnnotationOptions\(\.\.\.\), not 'int'"),
])
def test_enable(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        pp.enable(**arguments)
    assert not pp.is_enabled()


@pytest.mark.parametrize("bad", [5, "yes", []])
def test_recording(bad: Any) -> None:
    with pytest.raises(UsageError, match="pass True or False"):
        pp.recording(bad)
    with pytest.raises(UsageError, match="pass True or False"):
        pp.recording(history=bad)
