"""
Events as text, JSON lines and a trace.

.. autofunction:: table
.. autofunction:: json_lines
.. autofunction:: trace
.. autofunction:: seconds_by
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeVar

from pytato_provenance.compilation.events import STAGES, line_of
from pytato_provenance.path_names import PathNames
from pytato_provenance.report.visible import counted, visible


if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from pytato_provenance.compilation.events import CompileEvent
    from pytato_provenance.compilation.log import CompileEvents
    from pytato_provenance.sites import CreationSite

    Choice = Callable[[CreationSite], bool] | None

K = TypeVar("K", bound="Hashable")

_REST = "(the rest)"
_MOST_LINES = 20
_MOST_REGIONS = 3


def seconds_by(events: Iterable[CompileEvent], chosen: Choice,
               key: Callable[[CreationSite], K | None]) -> dict[K, float]:
    """
    :arg chosen: the sites among which the seconds are divided, *None* for all.
    :arg key: of a site; what has none is left out.
    :returns: the seconds for each key, the most expensive first. Each event is divided
        among the arrays that it computes.
    """
    found: dict[K, float] = defaultdict(float)
    for event in events:
        if event.seconds:
            for site, weight in event.contents.costs.items():
                name = key(site) if chosen is None or chosen(site) else None
                if name is not None:
                    found[name] += event.seconds * weight
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


# {{{ table

def table(events: CompileEvents, chosen: Choice, names: PathNames | None = None
          ) -> str:
    """
    :arg names: what files are called; relative to the current directory by default.
    :returns: a table of *events*, the sums by region, and those by line.
    """
    if not len(events):
        return "nothing was compiled"
    names = names or PathNames(os.getcwd())
    rows = [("stage", "program", "seconds", "from", "arrays", "stmts", "regions"),
            *map(_row, events)]
    lines = _columns(rows, right=(2, 4, 5))
    total = events.seconds
    programs = len({event.program or event.kernel for event in events
                    if event.program is not None or event.stage != "transform"})
    lines += ["", f"{total:.3f} s in all, {counted(programs, 'program')}"]
    lines += _sums("region", seconds_by(events, chosen, lambda site: site.region),
                   total, visible)
    lines += _sums("line", seconds_by(events, chosen, line_of), total, lambda line: (
        f"{visible(names.shown(line.filename))}:{line.lineno}"))
    return "\n".join(lines)


def _row(event: CompileEvent) -> tuple[str, ...]:
    kernel = visible(event.kernel) or "?"
    if event.program is not None:
        kernel = f"{event.program}: {kernel}"
    origin = event.origin + (f" x{event.count}" if event.count > 1 else "")
    if event.error is not None:
        origin = f"failed: {visible(event.error)}"
    regions = [f"{visible(name)} {share:.0%}" for name, share in sorted(
        event.regions.items(), key=lambda item: (-item[1], item[0]))]
    more = len(regions) - _MOST_REGIONS
    return (_title(event), kernel, f"{event.seconds:.4f}", origin,
            _number(event.nodes), _number(event.instructions),
            ", ".join(regions[:_MOST_REGIONS]) + (f" and {more} more" if more > 0
                                                  else ""))


def _title(event: CompileEvent) -> str:
    return "enqueue" if event.origin == "reused" else STAGES[event.stage]


def _number(number: int | None) -> str:
    return "" if number is None else str(number)


def _columns(rows: Sequence[tuple[str, ...]], right: Iterable[int]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(
        cell.rjust(width) if index in right else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in rows]


def _sums(title: str, seconds: dict[K, float], total: float,
          shown: Callable[[K], str]) -> list[str]:
    if not seconds:
        return []
    rows = [(f"by {title}", "seconds", "share")]
    items = list(seconds.items())
    rows += [(shown(key), f"{value:.4f}", f"{value / total:.1%}" if total else "")
             for key, value in items[:_MOST_LINES]]
    more = items[_MOST_LINES:]
    if more:
        value = sum(value for _, value in more)
        rows.append((f"{len(more)} more", f"{value:.4f}",
                     f"{value / total:.1%}" if total else ""))
    rest = total - sum(seconds.values())
    # What is left over by rounding is no time.
    if rest > 1e-9 and total and rest / total > 1e-6:
        rows.append((_REST, f"{rest:.4f}", f"{rest / total:.1%}"))
    return ["", *_columns(rows, right=(1, 2))]

# }}}


# {{{ data

def _data(event: CompileEvent, names: PathNames) -> dict[str, Any]:
    return {
        "stage": event.stage,
        "kernel": event.kernel,
        "program": event.program,
        "origin": event.origin,
        "count": event.count,
        "seconds": event.seconds,
        "duration": event.duration,
        "arrays": event.nodes,
        "statements": event.instructions,
        "regions": dict(event.regions),
        "lines": [{"file": names.shown(line.filename), "line": line.lineno,
                   "share": share} for line, share in event.lines.items()],
        "error": event.error,
    }


def json_lines(events: CompileEvents, names: PathNames) -> str:
    """
    :arg names: what files are called.
    :returns: an object a line; ``start`` is in seconds since the log was opened.
    """
    return "".join(
        json.dumps({**_data(event, names), "start": event.start - events.start,
                    "thread": event.thread}) + "\n"
        for event in events)


def trace(events: CompileEvents, names: PathNames) -> str:
    """
    :arg names: what files are called.
    :returns: JSON in the trace event format: a slice an event, nested as the stages
        are, one track a thread; what is reused is an instant.
    """
    process = os.getpid()
    threads = {thread: number for number, thread in enumerate(
        dict.fromkeys(event.thread for event in events), 1)}
    slices: list[dict[str, Any]] = [
        {"name": "thread_name", "ph": "M", "pid": process, "tid": number,
         "args": {"name": f"thread {number}"}} for number in threads.values()]
    for event in events:
        data = _data(event, names)
        data["regions"] = {visible(name): share
                           for name, share in data["regions"].items()}
        item = {"name": f"{_title(event)}: {visible(event.kernel)}",
                "cat": event.stage, "pid": process, "tid": threads[event.thread],
                "ts": (event.start - events.start) * 1e6, "args": data}
        if event.origin == "reused":
            item.update(ph="i", s="t")
        else:
            item.update(ph="X", dur=event.duration * 1e6)
        slices.append(item)
    return json.dumps({"traceEvents": slices, "displayTimeUnit": "ms"})

# }}}
