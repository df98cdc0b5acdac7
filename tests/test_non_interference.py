"""Whether something records cannot be seen by the program."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from looking import nothing_fails_inside
from non_interference import Checker


# 25 by default, 2000 under `make fuzz`.
EXAMPLES = hypothesis.settings.default.max_examples
seeds = st.integers(0, 2**32 - 1)


def _check_many(number: int, queue: Any = None) -> None:
    with Checker(queue) as checker, nothing_fails_inside():
        @hypothesis.settings(max_examples=number, deadline=None, database=None,
                             phases=[hypothesis.Phase.generate])
        @hypothesis.given(seeds)
        def check(seed: int) -> None:
            checker.check(seed)

        check()


@pytest.mark.fuzz
@pytest.mark.filterwarnings("ignore")
def test_structure() -> None:
    _check_many(4 * EXAMPLES)


@pytest.mark.fuzz
@pytest.mark.filterwarnings("ignore")
def test_kernels_and_results(queue: Any) -> None:
    _check_many(EXAMPLES if EXAMPLES > 100 else 10, queue)
