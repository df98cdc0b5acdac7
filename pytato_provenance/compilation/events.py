"""
What happened in a stage.

.. autoclass:: CompileEvent
.. autoclass:: Contents
.. autoclass:: Line
.. autodata:: STAGES
.. autodata:: ORIGINS
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytato_provenance.sites import CreationSite


STAGES: Mapping[str, str] = {
    "transform": "transform",
    "pytato-preprocess": "pytato's preprocessing",
    "generate": "pytato's generation",
    "loopy-preprocess": "loopy's preprocessing",
    "schedule": "scheduling",
    "codegen": "code generation",
    "build": "OpenCL build",
    "invoker": "invoker",
    "enqueue": "first enqueue",
}
"""The stages in their order, with titles."""

ORIGINS: Mapping[str, str] = {
    "fresh": "worked out anew",
    "memory": "found in a cache of this process",
    "disk": "found in a cache on disk",
    "reused": "nothing was done: somebody kept what was built before",
    "unknown": "the driver does not tell",
}
"""Where a result may come from."""


class Line(NamedTuple):
    """A line of the program. Prints as ``heat.py:42``."""

    filename: str
    lineno: int

    def __str__(self) -> str:
        return f"{os.path.basename(self.filename)}:{self.lineno}"


SiteFilter = "Callable[[CreationSite], bool]"


class Contents:
    """Of which arrays a program consists, by their creation sites.

    Holds sites and numbers, no arrays.

    .. attribute:: nodes

        The number of arrays; *None* where only their sites are known.

    .. autoattribute:: regions
    .. autoattribute:: lines
    .. automethod:: share
    """

    def __init__(self, counts: Mapping[CreationSite | None, int],
                 nodes: int | None = None) -> None:
        """
        :arg counts: the number of arrays for each site.
        """
        self.nodes = nodes
        self._counts = dict(counts)

    @classmethod
    def of(cls, sites: Iterable[CreationSite | None]) -> Contents:
        """
        :arg sites: the site of each array.
        """
        counts: dict[CreationSite | None, int] = defaultdict(int)
        total = 0
        for site in sites:
            counts[site] += 1
            total += 1
        return cls(counts, total)

    @staticmethod
    def union(contents: Iterable[Contents]) -> Contents:
        """
        :returns: that of all programs in *contents* together.
        """
        contents = list(contents)
        if len(contents) == 1:
            return contents[0]
        counts: dict[CreationSite | None, int] = defaultdict(int)
        nodes: int | None = 0 if contents else None
        for item in contents:
            for site, count in item._counts.items():
                counts[site] += count
            nodes = None if nodes is None or item.nodes is None else nodes + item.nodes
        return Contents(counts, nodes)

    @cached_property
    def key(self) -> object:
        """Equal for equal contents."""
        return self.nodes, frozenset(self._counts.items())

    @cached_property
    def weights(self) -> Mapping[CreationSite, float]:
        """For each site its share of the arrays: where an array has several, each has
        its part of it."""
        total = sum(self._counts.values()) or 1
        weights: dict[CreationSite, float] = defaultdict(float)
        for site, count in self._counts.items():
            if site is not None:
                members = site.all_sites
                for member in members:
                    weights[member] += count / total / len(members)
        return weights

    @cached_property
    def regions(self) -> Mapping[str, float]:
        """The share of each region whose arrays take part; that of a region within
        another counts for the inner one."""
        shares: dict[str, float] = defaultdict(float)
        for site, weight in self.weights.items():
            if site.region is not None:
                shares[site.region] += weight
        return dict(sorted(shares.items()))

    @cached_property
    def lines(self) -> Mapping[Line, float]:
        """The share of each :class:`Line` of the user's on which arrays were made."""
        return self.lines_where(None)

    def lines_where(self, chosen: Callable[[CreationSite], bool] | None
                    ) -> Mapping[Line, float]:
        """
        :returns: the same for *chosen* sites only.
        """
        shares: dict[Line, float] = defaultdict(float)
        for site, weight in self.weights.items():
            line = line_of(site)
            if line is not None and (chosen is None or chosen(site)):
                shares[line] += weight
        return dict(sorted(shares.items()))

    def share(self, chosen: Callable[[CreationSite], bool]) -> float:
        """
        :returns: the share of the arrays with a site that is *chosen*.
        """
        return sum(weight for site, weight in self.weights.items() if chosen(site))


NOTHING_KNOWN = Contents({})
"""For programs that nothing of ours has seen coming."""


def line_of(site: CreationSite) -> Line | None:
    """
    :returns: the line of the user's on which *site* lies.
    """
    frame = site.user_frame
    return None if frame is None else Line(frame.filename, frame.lineno)


@dataclass(eq=False)
class CompileEvent:
    """One stage of one program.

    .. attribute:: stage

        A key of :data:`STAGES`.

    .. attribute:: kernel

        The name of the kernel, for a transform the name of that; ``""`` if unknown.

    .. attribute:: program

        Numbers the programs of this process, from 1, in the order of their generation;
        *None* for one that was generated while nothing watched.

    .. attribute:: origin

        Where the result came from: a key of :data:`ORIGINS`.

    .. attribute:: seconds

        Without those of stages within this one: they can be added up.

    .. attribute:: duration

        With them, in seconds.

    .. attribute:: start

        In seconds, of the clock :func:`time.perf_counter`.

    .. attribute:: instructions

        The number of statements in the kernel after the stage; *None* if unknown.

    .. attribute:: thread

        The identifier of the thread.

    .. attribute:: count

        How often that happened: results that are reused again and again make one event.

    .. attribute:: error

        The name of the exception that ended the stage, or *None*.

    .. attribute:: contents

        :class:`Contents`.

    .. autoattribute:: nodes
    .. autoattribute:: regions
    .. autoattribute:: lines
    """

    stage: str
    kernel: str
    origin: str
    start: float
    duration: float
    seconds: float
    contents: Contents = field(default=NOTHING_KNOWN, repr=False)
    program: int | None = None
    instructions: int | None = None
    thread: int = field(default_factory=threading.get_ident)
    count: int = 1
    error: str | None = None

    @property
    def nodes(self) -> int | None:
        """The number of arrays in the program."""
        return self.contents.nodes

    @property
    def regions(self) -> Mapping[str, float]:
        """The regions whose arrays take part, with their share of the arrays."""
        return self.contents.regions

    @property
    def lines(self) -> Mapping[Line, float]:
        """The lines whose arrays take part, with their share of the arrays."""
        return self.contents.lines
