"""
Replacing attributes, and putting the identical objects back.

.. autoclass:: PatchPoint
.. autoclass:: PatchSet
.. autofunction:: left_behind

Knows nothing of what is patched.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
import warnings
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

from pytato_provenance.diagnostic import ProvenanceWarning


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


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


@dataclass(eq=False)
class _Resolved:
    point: PatchPoint
    owner: Any
    name: str
    owned: bool
    """Whether the owner itself had the attribute, rather than inheriting it."""
    lasting: bool
    original: Any
    replacement: Any = None

    @property
    def key(self) -> tuple[int, str]:
        return id(self.owner), self.name


_ABSENT = object()

# Every attribute that was ever patched, with the last replacement: few, and what lets
# left_behind() answer without a walk through all modules.
_ever_patched: dict[tuple[int, str], _Resolved] = {}

# What is in now, the outermost last: sets that share an attribute come out in any
# order.
_layers: dict[tuple[int, str], list[_Resolved]] = {}
_lock = threading.RLock()


def left_behind() -> tuple[str, ...]:
    """
    :returns: the attributes that hold a replacement of ours now, by name: none, when
        every :class:`PatchSet` but the lasting ones is restored.
    """
    with _lock:
        found = {str(item.point) for item in _ever_patched.values()
                 if vars(item.owner).get(item.name, _ABSENT) is item.replacement}
        found.update(str(item.point) for layers in _layers.values() for item in layers
                     if not item.lasting)
    return tuple(sorted(found))


def _resolve(point: PatchPoint, lasting: bool) -> _Resolved:
    owner: Any = importlib.import_module(point.module)
    *parents, name = point.path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    original = vars(owner).get(name, _ABSENT)
    owned = original is not _ABSENT
    if not owned:
        original = getattr(owner, name)
    return _Resolved(point, owner, name, owned, lasting, original)


# CPython keeps pointers to some methods of a class (`__getitem__`, `__init__`) that it
# does not own; after a thousand changes of the class 3.13 no longer resets them. What
# they pointed to has to be alive, and to do what it did.
_kept: dict[tuple[int, str, Callable[[Any], Any], int], tuple[Any, Any]] = {}


def _replacement(resolved: _Resolved) -> Any:
    original = resolved.original
    if not isinstance(resolved.owner, type):
        return _made(resolved, original)
    key = (*resolved.key, resolved.point.wrapper, id(original))
    if key not in _kept:
        _kept[key] = original, _made(resolved, original)
    return _kept[key][1]


def _made(resolved: _Resolved, original: Any) -> Any:
    replacement = resolved.point.wrapper(original)
    if replacement is not original and callable(original) and (
            not isinstance(original, type)):
        with contextlib.suppress(AttributeError, TypeError):
            wraps(original)(replacement)
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

    @property
    def installed(self) -> bool:
        """Whether the patches are in."""
        return bool(self._done)

    def install(self) -> None:
        """Replace every attribute; none, if one of them cannot be. Twice is once."""
        with _lock:
            if self._done:
                return
            resolved = [_resolve(point, self._lasting) for point in self.points
                        if point.needs is None or point.needs()]
            for item in resolved:
                item.replacement = _replacement(item)
            try:
                for item in resolved:
                    if not self._lasting:
                        _ever_patched[item.key] = item
                    setattr(item.owner, item.name, item.replacement)
                    _layers.setdefault(item.key, []).append(item)
                    self._done.append(item)
            except BaseException:
                self.restore()
                raise

    def restore(self) -> None:
        """Put back what was there, in reverse. Patches of other sets around ours stay
        in, and are wrapped anew around what was there. What somebody else has replaced
        since is left alone, with a warning."""
        with _lock:
            while self._done:
                _take_out(self._done.pop())


def _take_out(item: _Resolved) -> None:
    layers = _layers[item.key]
    outermost = layers[-1]
    outer = layers[layers.index(item) + 1:]
    layers.remove(item)
    if vars(item.owner).get(item.name, _ABSENT) is not outermost.replacement:
        warnings.warn(
            f"'{item.point}' was replaced by somebody else while it was patched and "
            "is left as it is; undo that patch, then ours",
            ProvenanceWarning, stacklevel=4)
        return
    original, owned = item.original, item.owned
    for layer in outer:
        layer.original, layer.owned = original, owned
        original, owned = _replacement(layer), True
        layer.replacement = original
    if owned:
        setattr(item.owner, item.name, original)
    else:
        delattr(item.owner, item.name)
