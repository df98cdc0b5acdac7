"""The host's own transforms lose nothing and misplace nothing."""

from __future__ import annotations

import pytest
from host_passes import host_passes
from looking import nothing_fails_inside

from pytato_provenance import audit, disable, recording


@pytest.fixture(autouse=True)
def _switched_off():
    with nothing_fails_inside():
        yield
    disable()


@pytest.mark.parametrize("name", host_passes())
def test_nothing_is_lost_or_misplaced(name: str) -> None:
    host_pass = host_passes()[name]
    for seed in range(8):
        with recording():
            dag = host_pass.prepare(seed)
            report = audit(host_pass.run, dag)
        wrong = {outcome: report.count(outcome) for outcome in
                 ("lost", "created", "unknown", "absorbed", "synthetic")
                 if report.count(outcome)}
        assert not wrong, str(report)


@pytest.mark.parametrize("name", host_passes())
def test_with_history_and_audit(name: str) -> None:
    host_pass = host_passes()[name]
    for seed in range(3):
        with recording(history=True, audit="raise"):
            report = audit(host_pass.run, host_pass.prepare(seed))
        assert report.lost == 0
