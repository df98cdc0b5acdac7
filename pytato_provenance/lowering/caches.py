"""
What runs in the place of parts of :mod:`loopy`'s execution and caches while programs
are annotated: keys and entries of caches are as without us.

.. autofunction:: scheduling_without_sites
.. autofunction:: fetch_without_sites
.. autofunction:: store_without_sites
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from pytato_provenance.lowering import embedding, ledger, notes
from pytato_provenance.lowering.instruction_tags import (
    has_sites,
    with_sites_from,
    without_sites,
)


if TYPE_CHECKING:
    from collections.abc import Callable


def scheduling_without_sites(original: Callable[..., Any]) -> Callable[..., Any]:
    """How an executor gets what it generates code for. It keeps its own, tagged
    translation unit, which others read back."""
    def get_typed_and_scheduled_translation_unit(self: Any, arg_to_dtype: Any) -> Any:
        t_unit = self.t_unit
        if not has_sites(t_unit):
            return original(self, arg_to_dtype)
        ledger.announce_compiled(t_unit)
        twin = copy.copy(self)
        twin.t_unit = without_sites(t_unit)
        try:
            scheduled = original(twin, arg_to_dtype)
        except Exception as error:
            notes.add_note_on_error(error, t_unit)
            raise
        embedding.expect(scheduled, t_unit)
        return scheduled

    return get_typed_and_scheduled_translation_unit


def fetch_without_sites(original: Callable[..., Any]) -> Callable[..., Any]:
    """Look-ups in caches on disk, by whomever: what users transform by hand."""
    def fetch(self: Any, key: Any) -> Any:
        plain = without_sites(key)
        if plain is key:
            return original(self, key)
        return with_sites_from(original(self, plain), key)

    return fetch


def store_without_sites(original: Callable[..., Any]) -> Callable[..., Any]:
    """Entries of caches on disk."""
    def store(self: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> None:
        original(self, without_sites(key), without_sites(value), *args, **kwargs)

    return store
