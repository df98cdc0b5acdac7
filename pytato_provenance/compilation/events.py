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
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple


if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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


class Contents:
    """Of which arrays a program consists, by their creation sites.

    Holds sites and numbers, no arrays.

    .. attribute:: nodes

        The number of arrays; *None* where only their sites are known.

    .. autoattribute:: regions
    .. autoattribute:: lines
    .. autoattribute:: weights
    .. autoattribute:: costs
    """

    def __init__(self, counts: Mapping[CreationSite | None, int],
                 inputs: Mapping[CreationSite | None, int], nodes: int | None = None
                 ) -> None:
        """
        :arg counts: for each site the number of arrays that are computed.
        :arg inputs: for each site the number of those that are given.
        """
        self.nodes = nodes
        self._counts = dict(counts)
        self._inputs = dict(inputs)

    @classmethod
    def of(cls, arrays: Iterable[tuple[CreationSite | None, bool]]) -> Contents:
        """
        :arg arrays: the site of each array, and whether it is an input.
        """
        counts: tuple[Counter[CreationSite | None], Counter[CreationSite | None]] = (
            Counter(), Counter())
        for site, is_input in arrays:
            counts[is_input][site] += 1
        return cls(*counts, sum(map(sum, (counts[0].values(), counts[1].values()))))

    @staticmethod
    def union(contents: Iterable[Contents]) -> Contents:
        """
        :returns: that of all programs in *contents* together.
        """
        contents = list(contents)
        if len(contents) == 1:
            return contents[0]
        counts: Counter[CreationSite | None] = Counter()
        inputs: Counter[CreationSite | None] = Counter()
        nodes: int | None = 0 if contents else None
        for item in contents:
            counts.update(item._counts)
            inputs.update(item._inputs)
            nodes = None if nodes is None or item.nodes is None else nodes + item.nodes
        return Contents(counts, inputs, nodes)

    @cached_property
    def key(self) -> object:
        """Equal for equal contents."""
        return (self.nodes, frozenset(self._counts.items()),
                frozenset(self._inputs.items()))

    @cached_property
    def weights(self) -> Mapping[CreationSite, float]:
        """For each site its share of the arrays: where an array has several, each has
        its part of it."""
        return _shares(Counter(self._counts) + Counter(self._inputs))

    @cached_property
    def costs(self) -> Mapping[CreationSite, float]:
        """The same among the arrays that are computed, if any is: no code is generated
        for inputs."""
        return _shares(self._counts or self._inputs)

    @cached_property
    def regions(self) -> Mapping[str, float]:
        """For each region whose arrays take part, their share of the arrays; those of a
        region within another count for the inner one."""
        shares: dict[str, float] = defaultdict(float)
        for site, weight in self.weights.items():
            if site.region is not None:
                shares[site.region] += weight
        return dict(sorted(shares.items()))

    @cached_property
    def lines(self) -> Mapping[Line, float]:
        """For each :class:`Line` of the user's on which arrays were made, their share
        of the arrays."""
        shares: dict[Line, float] = defaultdict(float)
        for site, weight in self.weights.items():
            line = line_of(site)
            if line is not None:
                shares[line] += weight
        return dict(sorted(shares.items()))


def _shares(counts: Mapping[CreationSite | None, int]) -> Mapping[CreationSite, float]:
    total = sum(counts.values())
    shares: dict[CreationSite, float] = defaultdict(float)
    for site, count in counts.items():
        if site is not None:
            members = site.all_sites
            for member in members:
                shares[member] += count / total / len(members)
    return shares


NOTHING_KNOWN = Contents({}, {})
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

        In seconds, of the clock ``time.perf_counter``.

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
