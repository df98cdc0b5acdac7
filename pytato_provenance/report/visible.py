"""
Foreign text that is to be looked at.

.. autofunction:: visible
.. autofunction:: shortened
.. autofunction:: counted
.. autofunction:: some_of
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from collections.abc import Sequence


def _escaped(char: str) -> str:
    if char == "\t":
        return " "
    category = unicodedata.category(char)
    # Control, format (marks of direction among them), surrogate, private, unassigned;
    # separators of lines and paragraphs.
    if category[0] == "C" or category in ("Zl", "Zp"):
        code = ord(char)
        return f"\\x{code:02x}" if code < 0x100 else (
            f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return char


def visible(text: str) -> str:
    """
    :arg text: a name, a path or a line of source; it may hold anything.
    :returns: one line that can be printed and encoded, and that reads in the order in
        which it is written: what is invisible or controls a terminal is spelt out.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_escaped, text))


def shortened(text: str, width: int) -> str:
    """
    :returns: *text*, made :func:`visible`, in at most *width* characters.
    """
    text = visible(text)
    return text if len(text) <= width else text[:width - 3] + "..."


def counted(number: int, noun: str) -> str:
    """
    :returns: as in ``"1 line"``, ``"1,200 lines"``.
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def some_of(items: Sequence[str], most: int) -> str:
    """
    :returns: *items* with commas between them; how many more where there are more than
        *most*.
    """
    shown = ", ".join(items[:most])
    more = len(items) - most
    return f"{shown} and {more:,} more" if more > 0 else shown
