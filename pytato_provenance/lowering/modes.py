"""
Whether, and how, programs that are generated here and now are annotated.

.. autofunction:: current_mode
.. autofunction:: set_everywhere
.. autofunction:: annotating_here
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from collections.abc import Generator


_here: ContextVar[str | None] = ContextVar("pytato_provenance_annotate", default=None)
_everywhere: str | None = None


def current_mode() -> str | None:
    """
    :returns: ``"beside"``, ``"embed"`` or *None*.
    """
    return _here.get() or _everywhere


def set_everywhere(mode: str | None) -> None:
    """Let all threads and tasks generate programs in this mode."""
    global _everywhere
    _everywhere = mode


@contextmanager
def annotating_here(mode: str) -> Generator[None]:
    """Let this thread or task do so, while it is open."""
    token = _here.set(mode)
    try:
        yield
    finally:
        _here.reset(token)
