"""The command line: ``python -m benchmarks --help``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any


# Nothing of loopy's, pyopencl's and PoCL's is to be found ready; read when imported.
WITHOUT_CACHES = {"LOOPY_NO_CACHE": "1", "PYOPENCL_NO_CACHE": "1",
                  "POCL_KERNEL_CACHE": "0"}
ROOT = Path(__file__).resolve().parent.parent


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _about() -> dict[str, Any]:
    from pytato_provenance._host import host
    from pytato_provenance.capture.paths import compiled_path_table

    versions: dict[str, str] = {}
    for name in ("pytato", "loopy", "pytools", "pymbolic", "numpy", "jaxlib"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "host": host().name,
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "compiled part": compiled_path_table() is not None,
        "versions": versions,
    }


def _measure(groups: list[str], quick: bool) -> dict[str, Any]:
    from pytato_provenance._released_pytato import mend_released_pytato

    warnings.simplefilter("ignore")
    mend_released_pytato()
    from benchmarks import creation, lasting, programs, transforms

    pairs = 5 if quick else 21
    measures = {
        "creation": lambda: creation.creation_rows(pairs),
        "capture": lambda: creation.capture_rows(pairs),
        "off": lambda: lasting.off_rows(2 if quick else lasting.GENERATIONS),
        "memory": lambda: lasting.memory_rows(10_000 if quick else 1_000_000),
        **programs.measures(quick),
        "transforms": lambda: transforms.transform_rows(
            3 if quick else 9, 10_000 if quick else transforms.NODES),
        # Last, for they have CPython forget what it has specialised.
        "strategies": lambda: creation.creation_rows(pairs, instrumenting=True),
        "ordinary": lambda: creation.ordinary_rows(pairs),
    }
    return {
        "about": _about(),
        "rows": [
            {"group": group, **row.plain()}
            for group, measure in measures.items() if not groups or group in groups
            for row in measure()],
    }


def _print(result: dict[str, Any]) -> None:
    about = result["about"]
    versions = ", ".join(f"{name} {v}" for name, v in about["versions"].items())
    print(f"{about['host']} pytato, Python {about['python']}, {about['processor']}, "
          f"{about['cores']} cores; compiled part: "
          f"{'yes' if about['compiled part'] else 'no'}; {versions}")
    width = max((len(row["name"]) for row in result["rows"]), default=0)
    group = None
    for row in result["rows"]:
        if row["group"] != group:
            group = row["group"]
            print(f"\n{group:{width}}  median  quartiles      target")
        low, median, high = row["quartiles"]
        line = f"{row['name']:{width}}  {median:6.3f}  {low:.3f}-{high:.3f}"
        if row["target"] is not None:
            sign = ">=" if row["at_least"] else "<="
            line += f"  {sign} {row['target']:.4g} {'met' if row['met'] else 'MISSED'}"
        if row["unit"] != "ratio":
            line += f"  [{row['unit']}]"
        if "added_us" in row["extra"]:
            extra = row["extra"]
            line += (f"  {extra['added_us']:+.2f} to {extra['base_us']:.2f} us, "
                     f"fastest {extra['fastest']:.3f}")
        if row["note"]:
            line += f"  ({row['note']})"
        print(line)
    print(flush=True)


def _run(python: str, groups: list[str], quick: bool, **environment: str
         ) -> dict[str, Any]:
    command = [python, "-m", "benchmarks", "--worker", *groups]
    if quick:
        command.append("--quick")
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True,
        env={**os.environ, **WITHOUT_CACHES, **environment,
             "PYTHONPATH": os.pathsep.join(paths)})
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("groups", nargs="*", help="which groups of rows; all of them")
    parser.add_argument("--quick", action="store_true",
                        help="few repetitions, to see that it runs")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "benchmarks.json",
                        help="where to write (%(default)s)")
    parser.add_argument("--also", action="append", default=[], metavar="PYTHON",
                        help="another environment's Python, with its own pytato")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        json.dump(_measure(args.groups, args.quick), sys.stdout)
        return

    results: list[dict[str, Any]] = []
    for python in [sys.executable, *args.also]:
        result = _run(python, args.groups, args.quick)
        if result["about"]["compiled part"] and (
                not args.groups or "creation" in args.groups):
            pure = _run(python, ["creation"], args.quick,
                        PYTATO_PROVENANCE_NO_EXTENSION="1")
            result["rows"] += [
                {**row, "group": "creation without the compiled part"}
                for row in pure["rows"]]
        results.append(result)
        _print(result)
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps(results, indent=1))
    missed = [row["name"] for result in results for row in result["rows"]
              if row["met"] is False]
    print(f"written to {args.json}; "
          + (f"targets missed: {'; '.join(missed)}" if missed else "all targets met"))


if __name__ == "__main__":
    main()
