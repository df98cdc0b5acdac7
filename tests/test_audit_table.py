"""The table of the documentation is what the command writes."""

from __future__ import annotations

import sys

import pytest
from looking import nothing_fails_inside
from running import ROOT

from pytato_provenance import disable
from pytato_provenance._host import host


sys.path.insert(0, str(ROOT))

from tools import audit_table


@pytest.fixture(autouse=True)
def _switched_off():
    with nothing_fails_inside():
        yield
    disable()


@pytest.mark.filterwarnings("ignore")
def test_nothing_is_lost() -> None:
    text = audit_table.table()
    rows = [row.splitlines() for row in text.split("   * - ")[2:]]
    assert len(rows) >= 2
    columns = dict(zip(audit_table.COLUMNS, zip(
        *(row[1:1 + len(audit_table.COLUMNS)] for row in rows), strict=True),
        strict=True))
    for name in ("lost", "created", "unknown"):
        assert {cell.strip() for cell in columns[name]} == {"-"}
    if host().name == "released":
        # The development host has no releases, so its programs may change.
        assert text == (ROOT / "doc" / "audit_released.inc").read_text()
