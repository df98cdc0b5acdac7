"""
What is remembered of objects as long as they live.

.. autoclass:: WeakIdentityMap
"""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar


V = TypeVar("V")


class _Reference(weakref.ref[object]):
    __slots__ = ("identity",)

    identity: int


class WeakIdentityMap(Generic[V]):
    """A value for each object, by identity: hashing a kernel takes milliseconds.

    .. automethod:: get
    .. automethod:: put
    .. automethod:: pop
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[_Reference, V]] = {}
        self._forget = self.__forget

    def __forget(self, reference: _Reference) -> None:
        entry = self._entries.get(reference.identity)
        # A later object may have the identity by now.
        if entry is not None and entry[0] is reference:
            del self._entries[reference.identity]

    def __bool__(self) -> bool:
        return bool(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: object) -> V | None:
        """
        :returns: the value for *key*, or *None*.
        """
        entry = self._entries.get(id(key))
        return entry[1] if entry is not None and entry[0]() is key else None

    def put(self, key: object, value: V) -> None:
        """Remember *value* until *key* is gone."""
        reference = _Reference(key, self._forget)
        reference.identity = id(key)
        self._entries[reference.identity] = reference, value

    def pop(self, key: object) -> V | None:
        """
        :returns: the value for *key*, which is forgotten, or *None*.
        """
        value = self.get(key)
        if value is not None:
            self._entries.pop(id(key), None)
        return value
