"""
Rows: whole programs.

.. autofunction:: measures
"""

from __future__ import annotations

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.harness import Row


def measures(quick: bool) -> dict[str, Callable[[], list[Row]]]:
    """
    :returns: by group, what measures its rows.
    """
    from benchmarks import regions

    pairs = 5 if quick else 21
    return {
        "regions": lambda: regions.region_rows(pairs),
        "log": lambda: regions.log_rows(pairs),
    }
