"""
Wrapping the array contexts of a program that is run as it is.

.. autofunction:: wrap_new_array_contexts

Importing this imports no host: that is for the program to do, when it sees fit.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import TYPE_CHECKING, Any

from pytato_provenance._patching import PatchPoint, PatchSet
from pytato_provenance.diagnostic import HostMissingError, UsageError


if TYPE_CHECKING:
    from collections.abc import Callable


_lock = threading.RLock()
_patches: PatchSet | None = None


def wrap_new_array_contexts(*, annotate: bool | str = True) -> None:
    """Wrap every array context that the program makes from now on, of those that build
    pytato expressions, until :func:`~pytato_provenance.disable`. The first one switches
    recording on, if nothing has before. Twice is once.

    :arg annotate: as for :func:`~pytato_provenance.enable`.
    :raises ~pytato_provenance.diagnostic.HostMissingError: without arraycontext.
    """
    global _patches

    def wrapping(original: Callable[..., None]) -> Callable[..., None]:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            if "pytato" not in sys.modules:
                # It computes by other means.
                return
            from pytato_provenance.array_context import wrap_array_context
            with contextlib.suppress(UsageError):
                wrap_array_context(self, annotate=annotate)
            _restore_when_disabled()

        return __init__

    with _lock:
        if _patches is None:
            patches = PatchSet([PatchPoint(
                "arraycontext.context", "ArrayContext.__init__", wrapping,
                "passed by every array context that is made")])
            try:
                patches.install()
            except ImportError as error:
                raise HostMissingError(
                    f"arraycontext cannot be imported ({error}); without it there are "
                    "no array contexts to wrap") from error
            _patches = patches
            if "pytato_provenance.instrument" in sys.modules:
                _restore_when_disabled()


def _restore_when_disabled() -> None:
    from pytato_provenance.instrument import when_disabled
    when_disabled(_restore)


def _restore() -> None:
    global _patches
    with _lock:
        if _patches is not None:
            _patches.restore()
            _patches = None
