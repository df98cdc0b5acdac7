"""
What kinds of mappers there are.

.. autofunction:: kind_of_mapper
.. autofunction:: merges_silently
.. autodata:: mapper_kinds
"""

from __future__ import annotations

from functools import cache
from typing import Any


OTHER, MERGING = 1, 2
mapper_kinds: dict[type, int] = {}
"""For each class of mappers: whether it makes arrays and merges equal ones."""


def kind_of_mapper(cls: type) -> int:
    """
    :returns: the entry of *cls* in :data:`mapper_kinds`, which is made if need be.
    """
    kind = mapper_kinds.get(cls)
    if kind is None:
        kind = mapper_kinds[cls] = (
            MERGING if issubclass(cls, _merging_mappers())
            or getattr(cls, "_preserves_created_at", False) else OTHER)
    return kind


_MERGING_MAPPERS = {
    "pytato.transform": ("TransformMapper", "TransformMapperWithExtraArgs",
                         "CopyMapper"),
    "pytato.transform.materialize": ("MPMSMaterializer",),
}


@cache
def _merging_mappers() -> tuple[type, ...]:
    import importlib

    found: list[type] = []
    for module, names in _MERGING_MAPPERS.items():
        try:
            namespace = importlib.import_module(module)
        except ImportError:
            continue
        found.extend(getattr(namespace, name) for name in names
                     if hasattr(namespace, name))
    return tuple(found)


def merges_silently(mapper: Any) -> bool:
    """
    :returns: whether *mapper* takes equal nodes for one, rather than refuse them.
    """
    host_cache = getattr(mapper, "_cache", None)
    if host_cache is not None:
        return not getattr(host_cache, "err_on_collision", False)
    return isinstance(getattr(mapper, "cache", None), dict)
