"""
Replacing attributes, and putting the identical objects back.

.. autoclass:: PatchPoint
.. autoclass:: PatchSet
.. autofunction:: left_behind

Knows nothing of what is patched.
"""

from __future__ import annotations

import importlib
import threading
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from pytato_provenance.diagnostic import ProvenanceWarning


@dataclass(frozen=True)
class PatchPoint:
    """An attribute to replace.

    .. attribute:: module

        The importable name of a module.

    .. attribute:: path

        The dotted path of the attribute in the module.

    .. attribute:: wrapper

        Takes the original and returns its replacement.

    .. attribute:: reason
    .. attribute:: needs

        A probe: without it the point does not exist on this host.
    """

    module: str
    path: str
    wrapper: Callable[[Any], Any]
    reason: str
    needs: Callable[[], bool] | None = None

    def __str__(self) -> str:
        return f"{self.module}.{self.path}"


@dataclass
class _Resolved:
    point: PatchPoint
    owner: Any
    name: str
    owned: bool
    """Whether the owner itself had the attribute, rather than inheriting it."""
    original: Any
    replacement: Any = None


_ABSENT = object()

# Every attribute that was ever patched, with the last replacement: few, and what lets
# left_behind() answer without a walk through all modules.
_ever_patched: dict[tuple[int, str], _Resolved] = {}


def left_behind() -> tuple[str, ...]:
    """
    :returns: the attributes that hold a replacement of ours now, by name: none, when
        every :class:`PatchSet` but the lasting ones is restored.
    """
    return tuple(sorted(
        str(item.point) for item in tuple(_ever_patched.values())
        if vars(item.owner).get(item.name, _ABSENT) is item.replacement))


def _resolve(point: PatchPoint) -> _Resolved:
    owner: Any = importlib.import_module(point.module)
    *parents, name = point.path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    original = vars(owner).get(name, _ABSENT)
    owned = original is not _ABSENT
    if not owned:
        original = getattr(owner, name)
    return _Resolved(point, owner, name, owned, original)


def _replacement(resolved: _Resolved) -> Any:
    original = resolved.original
    replacement = resolved.point.wrapper(original)
    if replacement is not original and callable(original) and (
            not isinstance(original, type)):
        try:
            wraps(original)(replacement)
        except (AttributeError, TypeError):
            pass
    return replacement


class PatchSet:
    """Patches that go in together and come out together.

    :arg lasting: they are meant to stay, so :func:`left_behind` does not name them.

    .. automethod:: install
    .. automethod:: restore
    .. autoattribute:: installed
    """

    def __init__(self, points: Iterable[PatchPoint], *, lasting: bool = False) -> None:
        self.points = tuple(points)
        self._lasting = lasting
        self._done: list[_Resolved] = []
        self._lock = threading.RLock()

    @property
    def installed(self) -> bool:
        """Whether the patches are in."""
        return bool(self._done)

    def install(self) -> None:
        """Replace every attribute; none, if one of them cannot be. Twice is once."""
        with self._lock:
            if self._done:
                return
            resolved = [_resolve(point) for point in self.points
                        if point.needs is None or point.needs()]
            for item in resolved:
                item.replacement = _replacement(item)
            try:
                for item in resolved:
                    if not self._lasting:
                        _ever_patched[id(item.owner), item.name] = item
                    setattr(item.owner, item.name, item.replacement)
                    self._done.append(item)
            except BaseException:
                self.restore()
                raise

    def restore(self) -> None:
        """Put back what was there, in reverse. What somebody else has replaced since
        is left alone, with a warning."""
        with self._lock:
            while self._done:
                item = self._done.pop()
                current = vars(item.owner).get(item.name, _ABSENT)
                if current is not item.replacement:
                    warnings.warn(
                        f"'{item.point}' was replaced by somebody else while it was "
                        "patched and is left as it is; undo that patch, then ours",
                        ProvenanceWarning, stacklevel=3)
                elif item.owned:
                    setattr(item.owner, item.name, item.original)
                else:
                    delattr(item.owner, item.name)
