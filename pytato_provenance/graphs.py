"""
Creation sites in pytato's own graphs, as tooltips.

.. autofunction:: outputs_with_all_sites
.. autofunction:: info_with_site
.. autofunction:: info_of_container_with_site
.. autofunction:: emit_with_tooltip

What runs in the place of the host's functions that draw a graph; the labels of nodes
stay as they are. The development pytato reads its own creation tag, which ours is; the
released one knows no tooltips.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from pytato_provenance.merging import spread_sites
from pytato_provenance.tags import site_of, site_tags
from pytato_provenance.tooltips import tooltip


if TYPE_CHECKING:
    from collections.abc import Callable


def outputs_with_all_sites(original: Callable[..., Any]) -> Callable[..., Any]:
    """A graph shows equal nodes as one: let that one know all their sites."""
    def normalize_outputs(*args: Any, **kwargs: Any) -> Any:
        return spread_sites(original(*args, **kwargs))

    return normalize_outputs


# {{{ released host

_TOOLTIP = "_provenance_tooltip"


def info_with_site(original: Callable[..., Any]) -> Callable[..., Any]:
    """The released host's description of a node, with the tooltip beside its rows."""
    def get_common_dot_info(self: Any, expr: Any) -> Any:
        info = original(self, expr)
        site = site_of(expr)
        if site is not None:
            setattr(info, _TOOLTIP, tooltip(site))
        return info

    return get_common_dot_info


def emit_with_tooltip(original: Callable[..., None]) -> Callable[..., None]:
    """The released host's printer of a node: one attribute more."""
    def _emit_array(emit: Callable[[str], None], info: Any, *args: Any,
                    **kwargs: Any) -> None:
        text = getattr(info, _TOOLTIP, None)
        if text is None:
            original(emit, info, *args, **kwargs)
            return
        # Within a quoted string of DOT, as the host does it for labels.
        attribute = f' tooltip="{html.escape(text.replace(chr(92), chr(92) * 2))}"]'

        def emit_node(statement: str) -> None:
            emit(statement[:-1] + attribute if statement.endswith("]") else statement)

        original(emit_node, info, *args, **kwargs)

    return _emit_array

# }}}


# {{{ development host

def info_of_container_with_site(original: Callable[..., Any]) -> Callable[..., Any]:
    """The development host looks for tags on arrays only: calls have sites too."""
    def map_container(self: Any, expr: Any) -> Any:
        result = original(self, expr)
        site = site_of(expr)
        if site is not None:
            fields = self.node_to_dot[expr].fields
            fields.setdefault("non_equality_tags", site_tags(site))
        return result

    return map_container

# }}}
