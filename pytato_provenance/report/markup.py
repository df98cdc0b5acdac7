"""
HTML that cannot be broken by what is put into it.

.. autoclass:: Markup
.. autofunction:: element
.. autofunction:: joined
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from pytato_provenance.report.visible import visible


if TYPE_CHECKING:
    from collections.abc import Iterable


class Markup(str):
    """Text that is HTML already. Any other string is escaped when it is put in."""

    __slots__ = ()


Child = Markup | str


def escaped(text: Child) -> Markup:
    """
    :returns: *text* as HTML that shows it; what is invisible is spelt out.
    """
    if isinstance(text, Markup):
        return text
    return Markup(html.escape(visible(text)))


def element(name: str, *children: Child, **attributes: str | None) -> Markup:
    """
    :arg name: of the element, and with a dot its class, as in ``"td.line"``.
    :arg attributes: those that are *None* are left out.
    """
    name, _, css_class = name.partition(".")
    if css_class:
        attributes["class"] = css_class.replace(".", " ")
    shown = "".join(f' {key}="{html.escape(visible(value))}"'
                    for key, value in attributes.items() if value is not None)
    return Markup(f"<{name}{shown}>{joined(children)}</{name}>")


def joined(children: Iterable[Child], between: Child = "") -> Markup:
    """
    :returns: *children* one after the other.
    """
    return Markup(escaped(between).join(map(escaped, children)))
