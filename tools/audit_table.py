"""Write the table of what the host's transforms do to creation sites.

    python -m tools.audit_table [--check]

Runs every transform of the installed pytato over random programs, with recording on,
and writes what became of the sites to ``doc/audit_released.inc`` or
``doc/audit_development.inc``. ``--check`` writes nothing, and fails if the table is
another one.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any


ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = 40

# Of the arrays of the result; "created" is a line of the transform's own.
COLUMNS = ("kept", "merged", "inherited", "synthetic", "created", "unknown", "lost")
# Of the arrays of the input.
INPUT_COLUMNS = ("absorbed", "gone")


def table() -> str:
    """
    :returns: the table for the installed host, as reStructuredText.
    """
    sys.path.insert(0, str(ROOT / "tests"))
    import pytato_provenance as prov

    passes: dict[str, Any] = importlib.import_module("host_passes").host_passes()

    lines = [".. list-table::", "   :header-rows: 1", "",
             "   * - transform", *(f"     - {name}" for name in COLUMNS),
             *(f"     - {name}" for name in INPUT_COLUMNS),
             "     - in place of what it makes an array"]
    for name, host_pass in passes.items():
        counts: Counter[str] = Counter()
        for seed in range(PROGRAMS):
            with prov.recording():
                report = prov.audit(host_pass.run, host_pass.prepare(seed))
            for entry in report.entries:
                counts[entry.outcome] += entry.count
        lines += [f"   * - ``{name}``" if name.isidentifier() else f"   * - {name}",
                  *(f"     - {counts[each] or ''}".rstrip()
                    for each in (*COLUMNS, *INPUT_COLUMNS)),
                  f"     - {host_pass.origin}"]
    return "\n".join(lines) + "\n"


def main(check: bool) -> int:
    """
    :returns: the exit status.
    """
    import pytato_provenance as prov
    from pytato_provenance._host import host

    warnings.simplefilter("ignore")
    prov.mend_released_pytato()
    path = ROOT / "doc" / f"audit_{host().name}.inc"
    text = table()
    if not check:
        path.write_text(text)
        return 0
    if path.read_text() != text:
        print(f"{path.name} is another one; run python -m tools.audit_table")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
