"""
What a statement, a variable and a program are made of, as the lines of comments.

.. autofunction:: statement_lines
.. autofunction:: variable_lines
.. autofunction:: declaration_lines
.. autofunction:: header_lines
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytato_provenance.lowering.text import HEADER, one_line


if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytato_provenance.lowering.instruction_tags import Sites, VariableSites
    from pytato_provenance.lowering.origins import Origin
    from pytato_provenance.lowering.places import Place, Places


_WIDEST_PLACE = 76
_MOST_HEADS = 3
_MOST_STACKS = 5
_MOST_FILES = 6


# {{{ lines of places

def _rows(found: Sequence[Place], places: Places, given: tuple[str, ...] = ()
          ) -> list[list[str]]:
    """For each of *found* its line, and those of its stacks.

    :arg given: callers that go without saying.
    """
    former = ""
    lefts: list[str] = []
    positions: list[str] = []
    for place in found:
        name = place.file
        if places.options.group_by_file and name == former:
            name = " " * len(name)
        former = place.file
        columns = f":{place.columns}" if place.columns else ""
        positions.append(f"{name}:{place.lineno}{columns}" if place.lineno else "")
    width = max(map(len, positions), default=0)
    for place, position in zip(found, positions, strict=True):
        left = f"{position:<{width}} in {place.where}" if place.lineno else place.where
        if place.callers and place.callers != given:
            left += " < " + ", ".join(place.callers)
        lefts.append(left)
    width = min(max((len(left) for left, place in zip(lefts, found, strict=True)
                     if place.text), default=0), _WIDEST_PLACE)
    return [[f"{left:<{width}} | {place.text}" if place.text else left,
             *_stack_lines(place)]
            for place, left in zip(found, lefts, strict=True)]


def _stack_lines(place: Place) -> list[str]:
    stacks = [*place.stacks]
    lines = [f"  from {stack}" for stack in stacks[:_MOST_STACKS]]
    if len(stacks) > _MOST_STACKS:
        lines.append(f"  and {len(stacks) - _MOST_STACKS} more stacks")
    return lines


def _labelled(label: str, rows: list[list[str]], more: str = "") -> list[str]:
    """*label* before the first row, and as much room before the others."""
    lines: list[str] = []
    for row, *stacks in rows:
        lines += [f"{label} {row}", *stacks]
        label = " " * len(label)
    return [*lines, f"{label} {more}"] if more else lines


def _capped(found: list[Place], most: int) -> tuple[list[Place], str]:
    """What is shown of *found*, and words on the rest."""
    # One more line that says "and 2 more" would be of little use.
    if not most or len(found) <= most + max(most // 4, 1):
        return found, ""
    hidden = found[most:]
    files = dict.fromkeys(place.file for place in hidden if place.lineno)
    shown = ", ".join([*files][:_MOST_FILES]) + (
        ", ..." if len(files) > _MOST_FILES else "")
    return found[:most], f"and {len(hidden)} more" + (f" in {shown}" if shown else "")

# }}}


def statement_lines(origin: Origin, places: Places) -> list[str]:
    """
    :returns: what stands above a statement: first the line of what it stores, or
        serves, then those of the operations that are inlined into it, in source order.
    """
    heads = places.of(origin.stored, among=origin.sites)
    label = origin.title or "stores"
    if label == "copy of an array":
        label = "copies"
    given = heads[0].callers if heads else ()
    if not heads:
        heads, rest = places.of(origin.sites), []
    elif origin.is_brief:
        rest = []
    else:
        # Other operations of the same line, reached in the same way, are shown by it.
        shown = {place.key: place.callers for place in heads}
        rest = [place for place in places.of(origin.sites - origin.stored, origin.sites)
                if place.key not in shown
                or not {*place.callers} <= {*shown[place.key]}]
    most = places.options.most
    heads, more = _capped(
        heads, min(_MOST_HEADS, most or _MOST_HEADS) if origin.by_loopy else most)
    lines = _labelled(label, _rows(heads, places), more)
    rest, more = _capped(rest, most)
    label = f"{'inlines':<{min(len(label), len('inlines'))}}"
    return lines + _labelled(label, _rows(rest, places, given), more)


def variable_lines(variables: Iterable[tuple[str, VariableSites]], places: Places
                   ) -> list[str]:
    """
    :returns: a line for each argument and global temporary.
    """
    shown = [(name, variable, *_capped(places.of(variable.sites), _MOST_HEADS))
             for name, variable in variables]
    width = max((len(name) for name, *_ in shown), default=0)
    # All at once, so that they stand in columns.
    rows = iter(_rows([place for *_, found, _ in shown for place in found], places))
    lines: list[str] = []
    for name, variable, found, more in shown:
        lines += _labelled(f"{variable.kind:<9} {name:<{width}}",
                           [next(rows) for _ in found], more)
    return lines


def declaration_lines(label: str, sites: Sites, places: Places) -> list[str]:
    """
    :returns: what stands above the declaration of a temporary.
    """
    found, more = _capped(places.of(sites), _MOST_HEADS)
    return _labelled(label, _rows(found, places), more)


def header_lines(kernels: Iterable[str], lost: Iterable[tuple[str, Sites]],
                 places: Places, marker: str) -> list[str]:
    """
    :arg lost: what transformations took away.
    :returns: what stands above a program.
    """
    title = ", ".join(map(one_line, kernels)) or "a program"
    files = places.files
    if not files:
        return [f"{HEADER} {title}: no creation sites are known (it was generated "
                "while annotating was off, or its arrays while nothing was recorded)"]
    lines = [f"{HEADER} {title}, made in {', '.join(files)}"]
    if places.regions:
        lines.append("Regions: " + ", ".join(map(one_line, places.regions)))
    lines.append("Above each statement: the line whose result it stores, then the "
                 "lines of all")
    lines.append('operations that pytato inlined into it. "a.py:1 in f < b.py:2" is '
                 "what f made when")
    lines.append("called at b.py:2; it is shown where a line was reached from several.")
    lines.append(f"Lines that begin with {marker} are not loopy's; "
                 "strip_annotations(text) takes them out.")
    for insn_id, sites in lost:
        lines.extend(declaration_lines(
            f"transformed away: {one_line(insn_id)}, of", sites, places))
    return lines
