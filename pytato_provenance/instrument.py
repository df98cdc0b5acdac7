"""
Switching recording on and off.

.. autofunction:: enable
.. autofunction:: disable
.. autofunction:: is_enabled
.. autoclass:: recording
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pytato_provenance import scope as _scope
from pytato_provenance._patching import PatchSet
from pytato_provenance._released_pytato import mend_released_pytato
from pytato_provenance.annotation_options import check_annotation
from pytato_provenance.capture import CaptureStrategy, make_strategy
from pytato_provenance.decoration import decorated
from pytato_provenance.diagnostic import UsageError
from pytato_provenance.patch_points import recording_points
from pytato_provenance.scope import (
    OFF,
    Scope,
    capture_with,
    current_scope,
    end_all_scopes,
    enter,
    leave,
)


if TYPE_CHECKING:
    from types import TracebackType

    from pytato_provenance.annotation_options import AnnotationOptions


F = TypeVar("F", bound=Callable[..., Any])

_lock = threading.RLock()
_patches: PatchSet | None = None
_strategy: CaptureStrategy | None = None
_when_disabled: list[Callable[[], None]] = []


def _install(capture: str | None, options: dict[str, Any]) -> CaptureStrategy:
    """Patch the host and start the strategy, unless that is done."""
    global _patches, _strategy
    with _lock:
        strategy = _strategy
        if strategy is None or options or capture not in (None, strategy.name):
            if capture is None:
                capture = "stack" if strategy is None else strategy.name
            strategy = make_strategy(capture, **options)
            strategy.start()
        try:
            if _patches is None:
                mend_released_pytato()
                patches = PatchSet(recording_points())
                patches.install()
                try:
                    _watch_programs()
                except BaseException:
                    patches.restore()
                    raise
                _patches = patches
        except BaseException:
            if strategy is not _strategy:
                strategy.stop()
            raise
        if _strategy is not None and _strategy is not strategy:
            capture_with(strategy)
            _strategy.stop()
        _strategy = strategy
        return strategy


def _watch_programs() -> None:
    # Not at the top: it is about loopy, and needs this module.
    from pytato_provenance.compilation.patch_points import recording_started
    recording_started()


def enable(*, capture: str | None = None, annotate: bool | str = False,
           annotation_options: AnnotationOptions | None = None,
           history: bool = False, audit: str | None = None,
           **capture_options: Any) -> None:
    """Record the creation site of every array that is made from now on, in every
    thread. Twice is once.

    :arg capture: how sites are taken: one of
        :func:`~pytato_provenance.capture.strategy_names`; ``"stack"`` by default.
    :arg annotate: *True* or ``"beside"`` keeps for each generated kernel an annotated
        text (see :func:`~pytato_provenance.kernel_source`) and leaves what is compiled
        alone; ``"embed"`` puts the comments into what is compiled. *False* stops
        that, unless a :class:`~pytato_provenance.lowering.Ledger` is open.
    :arg annotation_options: what the comments look like.
    :arg history: whether transforms leave a history on the nodes that they make.
    :arg audit: ``"warn"`` or ``"raise"`` checks each transform that runs through this
        package for lost sites.
    :arg capture_options: of the strategy, such as ``max_frames``.
    :raises ~pytato_provenance.diagnostic.UsageError: for a bad argument, or if the host
        is missing. Nothing is changed then.
    """
    _check(audit, history)
    check_annotation(annotate, annotation_options)
    with _lock:
        strategy = _install(capture, capture_options)
        _set_annotation(annotate, annotation_options)
        _scope.set_everywhere(Scope(record=True, capture=strategy,
                                    history=history, audit=audit))


def _set_annotation(annotate: bool | str,
                    options: AnnotationOptions | None = None) -> None:
    if annotate:
        from pytato_provenance.lowering import annotate_programs
        annotate_programs(annotate, options)
    elif "pytato_provenance.lowering" in sys.modules:
        from pytato_provenance.lowering import annotate_programs, ledger
        if ledger.is_any_open():
            # Somebody waits for programs, such as the command line for those of a
            # program that switches recording on by itself.
            annotate_programs(options=options)
        else:
            _stop_annotating()


def _stop_annotating() -> None:
    if "pytato_provenance.lowering" in sys.modules:
        from pytato_provenance.lowering import stop_annotating
        stop_annotating()


def disable() -> None:
    """Stop recording everywhere, scopes that are open included, and put back every
    attribute of the host. The mend of the released host has a lifetime of its own and
    stays. Without :func:`enable`, nothing happens."""
    global _patches, _strategy
    with _lock:
        _scope.set_everywhere(OFF)
        end_all_scopes()
        _stop_annotating()
        if _patches is not None:
            _patches.restore()
            _patches = None
        if _strategy is not None:
            _strategy.stop()
            _strategy = None
        callbacks = tuple(_when_disabled)
        _when_disabled.clear()
    for callback in callbacks:
        callback()


def when_disabled(callback: Callable[[], None]) -> None:
    """Have *callback* called, once, by the next :func:`disable`.

    :arg callback: takes back what was changed for the sake of recording. Given twice it
        is called once.
    """
    with _lock:
        if callback not in _when_disabled:
            _when_disabled.append(callback)


def is_enabled() -> bool:
    """
    :returns: whether an array made here and now would be recorded.
    """
    return _patches is not None and current_scope().record


def active_strategy() -> CaptureStrategy | None:
    """
    :returns: the capture strategy that runs, if one does.
    """
    return _strategy


def _check(audit: object, history: object) -> None:
    if audit is not None and audit not in ("warn", "raise"):
        raise UsageError(f"audit={audit!r}: pass None, 'warn' or 'raise'")
    if history is not None and not isinstance(history, bool):
        raise UsageError(f"history={history!r}: pass True or False")


class recording:  # noqa: N801
    """A scope in which arrays are recorded, in this thread or async task only.

    A context manager, which can be entered again and nested, and a decorator for
    functions, coroutine functions and generators of both kinds. The first scope patches
    the host; the patches stay until :func:`disable`, scopes after that only switch a
    context variable.

    A ``with`` block around a ``yield`` stays open while the generator is suspended, as
    every context variable does (that is what ``contextlib.contextmanager`` builds on);
    a decorated generator records in its own code only.

    :arg record: *False* makes a scope in which nothing is recorded.
    :arg history: as in :func:`enable`.
    :arg audit: as in :func:`enable`.
    :raises ~pytato_provenance.diagnostic.UsageError: for a bad argument.
    """

    def __init__(self, record: bool = True, *, history: bool | None = None,
                 audit: str | None = None) -> None:
        _check(audit, history)
        if not isinstance(record, bool):
            raise UsageError(f"recording({record!r}): pass True or False")
        self._record = record
        self._history = history
        self._audit = audit

    def __enter__(self) -> recording:
        changes: dict[str, Any] = {"record": self._record}
        if self._record:
            strategy = _strategy if _patches is not None else None
            if strategy is None:
                strategy = _install(None, {})
            changes["capture"] = strategy
        if self._history is not None:
            changes["history"] = self._history
        if self._audit is not None:
            changes["audit"] = self._audit
        enter(self, **changes)
        return self

    def __exit__(self, exc_type: type[BaseException] | None,
                 exc: BaseException | None, tb: TracebackType | None) -> None:
        leave(self)

    def __call__(self, function: F) -> F:
        if not callable(function) or isinstance(function, type):
            raise UsageError(
                f"recording() decorates functions, not '{type(function).__name__}'")
        return decorated(function, lambda: recording(
            self._record, history=self._history, audit=self._audit))
