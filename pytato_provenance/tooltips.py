"""
A creation site in one line of text, for tooltips.

.. autofunction:: tooltip
"""

from __future__ import annotations

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from pytato_provenance.sites import CreationSite


def tooltip(site: CreationSite, *, most_sites: int = 5, width: int = 120) -> str:
    """
    :arg site: any site.
    :arg most_sites: how many of a merged site to show.
    :arg width: how many characters to show of each.
    :returns: one line, as in ``heat.py:42 in step: u = pt.roll(u, 1)``.
    """
    shown = [_shortened(_single(one), width) for one in site.all_sites[:most_sites]]
    more = len(site.all_sites) - len(shown)
    if more > 0:
        shown.append(f"{more} more")
    return "; also ".join(shown)


def _single(site: CreationSite) -> str:
    frame = site.user_frame or next(iter(site.frames), None)
    if site.kind != "known" or frame is None:
        return str(site)
    line = frame.line.strip()
    return f"{frame}: {line}" if line else str(frame)


def _shortened(text: str, width: int) -> str:
    # Names and source may hold anything: line ends, controls, marks of direction.
    text = "".join(char if char.isprintable()
                   else char.encode("unicode_escape").decode() for char in text)
    return text if len(text) <= width else text[:width - 3] + "..."
