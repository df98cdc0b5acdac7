"""What is remembered of objects as long as they live."""

from __future__ import annotations

import gc

from pytato_provenance.weak_identity import WeakIdentityMap


class _Thing:
    """Equal to every other, and not hashable."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True


def test_by_identity_and_weakly() -> None:
    memory: WeakIdentityMap[str] = WeakIdentityMap()
    assert not memory
    first, second = _Thing(), _Thing()
    memory.put(first, "first")
    memory.put(second, "second")
    assert (memory.get(first), memory.get(second), memory.get(_Thing())) == (
        "first", "second", None)
    memory.put(first, "again")
    assert memory.get(first) == "again" and len(memory) == 2
    assert memory.pop(second) == "second" and memory.pop(second) is None
    del first
    gc.collect()
    assert not memory
    for _ in range(1000):
        # Identities come again.
        memory.put(_Thing(), "gone")
    assert not memory
