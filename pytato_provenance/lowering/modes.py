"""
Whether, and how, programs that are generated here and now are annotated.

.. autoclass:: Mode
.. autofunction:: mode_of
.. autofunction:: current_mode
.. autofunction:: set_everywhere
.. autofunction:: annotating_here
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytato_provenance.annotation_options import (
    DEFAULT,
    AnnotationOptions,
    check_annotation,
)


if TYPE_CHECKING:
    from collections.abc import Generator


@dataclass(frozen=True)
class Mode:
    """
    .. attribute:: embed

        Whether comments go into what is compiled.

    .. attribute:: options
    """

    embed: bool = False
    options: AnnotationOptions = DEFAULT


_here: ContextVar[Mode | None] = ContextVar("pytato_provenance_annotate", default=None)
_everywhere: Mode | None = None


def mode_of(annotate: bool | str, options: AnnotationOptions | None) -> Mode | None:
    """
    :arg annotate: as in :func:`~pytato_provenance.enable`.
    :returns: what it asks for; *None*, if nothing.
    :raises ~pytato_provenance.diagnostic.UsageError: for a bad argument.
    """
    check_annotation(annotate, options)
    return Mode(annotate == "embed", options or DEFAULT) if annotate else None


def current_mode() -> Mode | None:
    """
    :returns: how; *None*, if not at all.
    """
    return _here.get() or _everywhere


def set_everywhere(mode: Mode | None) -> None:
    """Let all threads and tasks generate programs in this mode."""
    global _everywhere
    _everywhere = mode


@contextmanager
def annotating_here(mode: Mode) -> Generator[None]:
    """Let this thread or task do so, while it is open."""
    token = _here.set(mode)
    try:
        yield
    finally:
        _here.reset(token)
