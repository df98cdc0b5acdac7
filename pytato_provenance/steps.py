"""
What transforms do, onto the history of the nodes that they make.

.. autofunction:: record_step
.. autofunction:: record_merge
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytato_provenance._host import Node, host
from pytato_provenance.history import HistoryStep
from pytato_provenance.merging import differs_beyond_children
from pytato_provenance.sites import CreationSite, site_of_code
from pytato_provenance.tags import history_of, replace_site, site_of


if TYPE_CHECKING:
    from collections.abc import Iterable


def record_step(made: Iterable[Node], replaced: Node, mapper: Any) -> None:
    """
    :arg made: the nodes that *mapper* made in place of *replaced*.
    :arg mapper: names the pass.
    """
    array = host().array
    for node in made:
        site = site_of(node)
        if (site is None or not isinstance(node, array)
                or not differs_beyond_children(node, replaced)):
            continue
        old, new = type(replaced).__name__, type(node).__name__
        step = HistoryStep(_pass_name(mapper),
                           f"{old} -> {new}" if old != new else f"{old} rewritten",
                           _rewriting_code(mapper, replaced))
        replace_site(node, site, history_of(replaced).extended(step))


def record_merge(node: Node, survivor: Node, site: CreationSite, mapper: Any) -> None:
    """
    :arg node: what stands for the survivor, which may be the survivor.
    :arg site: its site now.
    """
    step = HistoryStep(_pass_name(mapper), f"merged {len(site.all_sites)} sites")
    replace_site(node, site, history_of(survivor).extended(step))


def _pass_name(mapper: Any) -> str:
    return type(mapper).__qualname__


def _rewriting_code(mapper: Any, replaced: Node) -> CreationSite | None:
    """Where the user's code lies that a mapper runs for a node."""
    function = getattr(mapper, "map_fn", None)
    if function is None:
        function = getattr(type(mapper), getattr(replaced, "_mapper_method", ""), None)
    code = getattr(function, "__code__", None)
    return None if code is None else site_of_code(code, function.__module__)
