"""Write ``constraints.txt`` anew, from what pip resolves today.

    python3 tools/renew_constraints.py python3.10 python3.11 python3.12 python3.13

Name one interpreter for each supported version, oldest first. Nothing is installed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from itertools import groupby
from pathlib import Path


ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "constraints.txt"
HEADER = """\
# What `make` installs, on Python 3.10 to 3.13. Of these, pytato, loopy, pymbolic,
# pytools and islpy belong together: the released pytato leans on what later ones
# announce to remove. Written by tools/renew_constraints.py.
"""
# Of the documentation's tools only, and better fresh than pinned.
FREE = {"certifi", "charset-normalizer", "idna", "requests", "urllib3"}


def resolve(python: str) -> dict[str, str]:
    """The version of each package that *python* would install."""
    requirement = f"{ROOT}[pocl,test,doc]"
    command = [python, "-m", "pip", "install", "--quiet", "--dry-run"]
    command += ["--ignore-installed", "--report", "-", requirement]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    found = [item["metadata"] for item in json.loads(done.stdout)["install"]]
    return {re.sub(r"[-_.]+", "-", m["name"]).lower(): m["version"] for m in found}


def minor_version(python: str) -> str:
    command = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.check_output(command, text=True).strip()


def marker(selected: list[str], pythons: list[str]) -> str:
    """For which of the *pythons*, which follow each other, the *selected* ones are."""
    if len(selected) == 1 and selected[0] not in (pythons[0], pythons[-1]):
        return f'; python_version == "{selected[0]}"'
    parts: list[str] = []
    if selected[0] != pythons[0]:
        parts.append(f'python_version >= "{selected[0]}"')
    if selected[-1] != pythons[-1]:
        after = pythons[pythons.index(selected[-1]) + 1]
        parts.append(f'python_version < "{after}"')
    return "; " + " and ".join(parts) if parts else ""


def main() -> None:
    pythons: list[str] = []
    table: dict[str, dict[str, str]] = defaultdict(dict)
    for executable in sys.argv[1:]:
        python = minor_version(executable)
        pythons.append(python)
        for package, version in resolve(executable).items():
            table[package][python] = version

    lines: list[str] = []
    for package in sorted(table.keys() - FREE - {"pytato-provenance"}):
        versions = table[package]
        if len({*versions.values()}) == 1:
            lines.append(f"{package}=={next(iter(versions.values()))}")
            continue
        for version, group in groupby(versions, versions.__getitem__):
            lines.append(f"{package}=={version}{marker([*group], pythons)}")
    TARGET.write_text(HEADER + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
