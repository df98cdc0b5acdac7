"""
Which transforms made a node from which, as far as that was asked for.

.. autoclass:: HistoryStep
.. autoclass:: History
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytato_provenance.sites import CreationSite


@dataclass(frozen=True)
class HistoryStep:
    """
    .. attribute:: pass_name

        The transform: the qualified name of a mapper class or a function.

    .. attribute:: action

        What it did, such as ``"Roll -> IndexLambda"`` or ``"merged 2 sites"``.

    .. attribute:: site

        The :class:`~pytato_provenance.CreationSite` of the rewriting code, or *None*.
    """

    pass_name: str
    action: str
    site: CreationSite | None = None

    def __str__(self) -> str:
        where = f" at {self.site}" if self.site is not None else ""
        return f"{self.pass_name}: {self.action}{where}"


_KEPT_AT_EACH_END = 16


@dataclass(frozen=True)
class History:
    """The steps that led to a node, oldest first.

    Bounded: of a long history the first and the last steps are kept.

    .. attribute:: first
    .. attribute:: last
    .. attribute:: dropped

        How many steps between :attr:`first` and :attr:`last` are not kept.

    .. automethod:: extended
    """

    first: tuple[HistoryStep, ...] = ()
    last: tuple[HistoryStep, ...] = ()
    dropped: int = 0

    def extended(self, step: HistoryStep) -> History:
        """
        :returns: the history with one more step: the same object each time.
        """
        return _extended(self, step)

    def __iter__(self) -> Iterator[HistoryStep]:
        yield from self.first
        yield from self.last

    def __len__(self) -> int:
        return len(self.first) + self.dropped + len(self.last)

    def __str__(self) -> str:
        lines = [str(step) for step in self.first]
        if self.dropped:
            lines.append(f"({self.dropped} more)")
        return "\n".join(lines + [str(step) for step in self.last])


NO_HISTORY = History()


@lru_cache(maxsize=4096)
def _extended(history: History, step: HistoryStep) -> History:
    if len(history.first) < _KEPT_AT_EACH_END:
        return History((*history.first, step))
    last = (*history.last, step)
    excess = len(last) - _KEPT_AT_EACH_END
    return History(history.first, last[max(excess, 0):],
                   history.dropped + max(excess, 0))
