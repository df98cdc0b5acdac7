"""Run pytato's own test suite with recording on.

    python tools/host_suite.py [options] [arguments of pytest]

Without ``--suite``: the released pytato's. Fetches its source distribution from the
package index into ``build/host-suite``, where it is kept, runs its tests against the
installed pytato, mended, and compares the counts with those that are known.

``--suite FOLDER`` runs the tests in FOLDER (of a clone whose pytato the interpreter has
installed) twice, without recording and with it, and compares test by test. What may
differ is in ``MAY_DIFFER``.

Recording is on from before the first test is collected, in the processes that the
distributed tests start as well. ``--history`` and ``--audit raise`` add to it;
``--without`` leaves it off, and compares nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest


VERSION = "2021.2"
EXPECTED = {"passed": 243, "skipped": 7, "xfailed": 2}
BUILD = Path(__file__).resolve().parent.parent / "build" / "host-suite"

# Demands no tag while the host's own flag is off, and equal ones for two arrays that
# are made on one line.
MAY_DIFFER = {"test_created_at"}

CHILD = """\
import json, os
from pytato_provenance.import_hook import call_when_imported

def _enable():
    from pytato_provenance import enable
    enable(**json.loads(os.environ["PYTATO_PROVENANCE_SUITE"]))

if os.environ.get("RUN_WITHIN_MPI"):
    call_when_imported("pytato", _enable)
"""


def fetch() -> Path:
    """The folder with the tests of pytato's source distribution."""
    tests = BUILD / f"pytato-{VERSION}" / "test"
    if not tests.is_dir():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", ":all:", "--dest", str(BUILD), f"pytato=={VERSION}"]
        subprocess.run(command, check=True)
        with tarfile.open(BUILD / f"pytato-{VERSION}.tar.gz") as archive:
            if hasattr(tarfile, "data_filter"):
                archive.extractall(BUILD, filter="data")
            else:
                archive.extractall(BUILD)
    return tests


class Recording:
    """The pytest plugin that mends the host, switches recording on, and counts.

    :arg options: of :func:`pytato_provenance.enable`, or *None* to leave it off.
    """

    def __init__(self, options: dict[str, Any] | None) -> None:
        self.options = options
        self.outcomes: dict[str, str] = {}

    def pytest_configure(self) -> None:
        import pytato_provenance

        pytato_provenance.mend_released_pytato()
        if self.options is not None:
            pytato_provenance.enable(**self.options)

    def pytest_report_header(self) -> str:
        return f"recording: {'off' if self.options is None else self.options or 'on'}"

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        import pytato_provenance

        reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
        for kind, reports in reporter.stats.items():
            for report in reports:
                # Warnings are no reports of a test; what passed says so once a phase.
                if kind and hasattr(report, "when"):
                    self.outcomes[report.nodeid] = kind
        assert pytato_provenance.is_enabled() == (self.options is not None)


def _environment(options: dict[str, Any] | None) -> None:
    """What the processes that the tests start are to find."""
    BUILD.mkdir(parents=True, exist_ok=True)
    # Open MPI does not run as root unless told so twice.
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    path = [entry for entry in sys.path if entry and Path(entry).is_dir()]
    if options is not None:
        children = BUILD / "children"
        children.mkdir(exist_ok=True)
        (children / "sitecustomize.py").write_text(CHILD)
        os.environ["PYTATO_PROVENANCE_SUITE"] = json.dumps(options)
        path.insert(0, str(children))
    os.environ["PYTHONPATH"] = os.pathsep.join(path)


def run(tests: Path, options: dict[str, Any] | None, arguments: list[str]
        ) -> tuple[int, dict[str, str]]:
    """Run *tests* in this process.

    :returns: pytest's status, and what became of each test.
    """
    _environment(options)
    # Its own ini file keeps ours, further up, out of it.
    ini = BUILD / "pytest.ini"
    ini.write_text("[pytest]\n")
    plugin = Recording(options)
    status = pytest.main(["-c", str(ini), "--rootdir", str(tests.parent),
                          "-p", "no:cacheprovider", "-W", "ignore",
                          *arguments, str(tests)], plugins=[plugin])
    return int(status), plugin.outcomes


def compare(suite: Path, own: list[str], arguments: list[str]) -> int:
    """Run *suite* without recording and with it, each in a process of its own.

    :arg own: the options that say how to record.
    :returns: 0 if every test came out the same.
    """
    BUILD.mkdir(parents=True, exist_ok=True)
    runs: list[dict[str, str]] = []
    for options in (["--without"], own):
        found = BUILD / f"outcomes{len(runs)}.json"
        found.unlink(missing_ok=True)
        subprocess.run([sys.executable, __file__, "--suite", str(suite), "--outcomes",
                        str(found), *options, *arguments], check=False)
        runs.append(json.loads(found.read_text()))
    without, recorded = runs
    differ = {test: (without.get(test, "not run"), recorded.get(test, "not run"))
              for test in {*without, *recorded}
              if without.get(test) != recorded.get(test)}
    for test, (before, after) in sorted(differ.items()):
        print(f"{test}: {before} without recording, {after} with it")
    unexpected = [test for test in differ
                  if test.rpartition("::")[2].partition("[")[0] not in MAY_DIFFER]
    print(f"{len(without)} tests, {dict(Counter(without.values()))} without recording; "
          f"{len(differ)} came out differently, {len(unexpected)} of them unexpectedly")
    return int(bool(unexpected) or not without)


def main(arguments: list[str]) -> int:
    """
    :returns: the exit status.
    """
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--suite", type=Path)
    parser.add_argument("--without", action="store_true")
    parser.add_argument("--history", action="store_true")
    parser.add_argument("--audit", choices=["warn", "raise"])
    parser.add_argument("--outcomes", type=Path, help=argparse.SUPPRESS)
    given, rest = parser.parse_known_args(arguments)
    options: dict[str, Any] | None = None
    own: list[str] = []
    if not given.without:
        options = {}
        if given.history:
            options["history"] = True
            own.append("--history")
        if given.audit:
            options["audit"] = given.audit
            own += ["--audit", given.audit]

    if given.suite is not None:
        if given.outcomes is None and not given.without:
            return compare(given.suite.resolve(), own, rest)
        status, outcomes = run(given.suite.resolve(), options, rest)
        if given.outcomes is not None:
            given.outcomes.write_text(json.dumps(outcomes, indent=1))
        return status

    try:
        BUILD.mkdir(parents=True, exist_ok=True)
        tests = fetch()
    except subprocess.CalledProcessError:
        print(f"pip could not fetch the source distribution of pytato {VERSION}.")
        return 2
    status, outcomes = run(tests, options, rest)
    if rest:
        return status
    counts = Counter(outcomes.values())
    got = {kind: counts[kind] for kind in ("failed", "error", *EXPECTED)}
    if got != {"failed": 0, "error": 0, **EXPECTED}:
        print(f"Expected {EXPECTED}, got {got}.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
