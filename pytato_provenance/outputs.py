"""
Where the findings of a run are written.

.. autoclass:: Outputs
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TextIO

from pytato_provenance.diagnostic import RecordError, UsageError
from pytato_provenance.record_json import read_record, record_to_json
from pytato_provenance.report.html import render_html
from pytato_provenance.report.map import render_map
from pytato_provenance.report.text import render_text
from pytato_provenance.report.visible import counted, visible


if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytato_provenance.compilation.log import compile_log
    from pytato_provenance.path_names import PathNames
    from pytato_provenance.record import ProgramRecord, Record


STDOUT = "stdout"
_RECORD = "record.json"
_REPORT = "report.txt"
_LOG = "compile_log.txt"
_RENDERERS = {".html": render_html, ".htm": render_html, ".json": record_to_json}


@dataclass(frozen=True)
class Outputs:
    """Where kernels and report go. Paths are absolute: the program may change its
    directory.

    .. attribute:: kernels

        A directory, or *None* for standard output.

    .. attribute:: report_directory

        Gets ``report.txt`` and ``record.json``, if it is not *None*.

    .. attribute:: report_file

        Gets text, HTML or the record, by its ending, if it is not *None*.

    .. attribute:: map_file

        Gets the map from kernels to lines, if it is not *None*.

    .. attribute:: log_file

        Gets the log of what was compiled, if it is not *None*.

    .. attribute:: stacks

        Whether the report as text shows whole stacks.
    """

    kernels: str | None
    report_directory: str | None
    report_file: str | None = None
    map_file: str | None = None
    log_file: str | None = None
    stacks: bool = False

    @staticmethod
    def of(stem: str, *, kernels: str | None = None, report: str | None = None,
           map_file: str | None = None, log_file: str | None = None,
           stacks: bool = False) -> Outputs:
        """
        :arg stem: what the default directory is named after.
        :arg kernels: ``"stdout"``, a directory or *None*, as on the command line.
        :arg report: a file or a directory or *None*.
        :arg map_file: a file or *None*.
        :arg log_file: a file, ``""`` for one beside the report, or *None*.
        :arg stacks: whether whole stacks are to be shown.
        :raises ~pytato_provenance.diagnostic.UsageError: if something could not be
            written there.
        """
        default = os.path.abspath("provenance-" + (_file_name(stem) or "program"))
        directory = (None if kernels == STDOUT
                     else default if kernels is None else os.path.abspath(kernels))
        report_directory, report_file = directory or default, None
        if report is not None:
            if os.path.splitext(report)[1] and not os.path.isdir(report):
                report_directory, report_file = None, report
            else:
                report_directory = os.path.abspath(report)
        if log_file == "":
            log_file = os.path.join(
                report_directory or os.path.dirname(report_file or ""), _LOG)
        rank = _rank()
        outputs = Outputs(
            _directory_of(rank, directory), _directory_of(rank, report_directory),
            _file_of(rank, report_file), _file_of(rank, map_file),
            _file_of(rank, log_file), stacks)
        outputs._check()
        return outputs

    def _check(self) -> None:
        for directory in (self.kernels, self.report_directory):
            if directory is not None:
                _check_directory(directory)
        for file in (self.report_file, self.map_file, self.log_file):
            if file is not None:
                if os.path.isdir(file):
                    raise UsageError(f"cannot write '{file}': it is a directory")
                if os.path.exists(file) and not os.access(file, os.W_OK):
                    raise UsageError(f"cannot write '{file}': permission denied")
                _check_directory(os.path.dirname(file))

    # {{{ writing

    def print_kernels(self, record: Record, stdout: TextIO, first: int) -> None:
        """Print those that go to standard output.

        :arg record: what was found.
        :arg first: the position of the first program that was not printed yet.
        :raises OSError: if nobody reads it.
        :raises ValueError: if it is closed.
        """
        if self.kernels is None:
            _print(record, stdout, first)

    def write(self, record: Record) -> Record:
        """
        :arg record: what was found.
        :returns: the record with the names of files.
        :raises OSError: if something cannot be written.
        """
        if self.kernels is not None:
            record = self._write_kernels(record, self.kernels)
        if self.report_directory is not None:
            _write(os.path.join(self.report_directory, _REPORT), self._text(record))
            _write(os.path.join(self.report_directory, _RECORD), record_to_json(record))
        if self.report_file is not None:
            render = _RENDERERS.get(os.path.splitext(self.report_file)[1], self._text)
            _write(self.report_file, render(record))
        if self.map_file is not None:
            _write(self.map_file, render_map(record))
        return record

    def write_log(self, log: compile_log, region: str | None, names: PathNames) -> None:
        """
        :arg log: what was compiled.
        :arg region: which part of it, *None* for all.
        :arg names: what files are called.
        """
        if self.log_file is None:
            return
        os.makedirs(os.path.dirname(self.log_file), exist_ok=True)
        ending = os.path.splitext(self.log_file)[1]
        if ending == ".jsonl":
            log.write_jsonl(self.log_file, region=region, names=names)
        elif ending == ".json":
            log.write_trace(self.log_file, region=region, names=names)
        else:
            log.write_text(self.log_file, region=region, names=names)

    def _text(self, record: Record) -> str:
        return render_text(record, stacks=self.stacks)

    def _write_kernels(self, record: Record, directory: str) -> Record:
        os.makedirs(directory, exist_ok=True)
        stale = set(_files_of_former_run(directory))
        width = max(2, len(str(len(record.programs))))
        programs: list[ProgramRecord] = []
        for number, program in enumerate(record.programs, 1):
            if program.text is not None:
                name = f"{number:0{width}d}_{_file_name(program.name) or 'kernel'}.cl"
                _write(os.path.join(directory, name), program.text + "\n")
                stale.discard(name)
                program = replace(program, file=name)
            programs.append(program)
        for name in stale:
            os.remove(os.path.join(directory, name))
        return replace(record, programs=tuple(programs))

    # }}}

    def where(self, record: Record) -> str:
        """
        :returns: in a few words, what lies where.
        """
        written = sum(program.text is not None for program in record.programs)
        parts = [f"{counted(written, 'program')} "
                 + ("on standard output" if self.kernels is None
                    else f"in {_shown(self.kernels)}{os.sep}")]
        failed = len(record.programs) - written
        if failed:
            parts.append(f"{counted(failed, 'program')} without a text")
        report = self.report_file or os.path.join(self.report_directory or "", _REPORT)
        parts.append(f"report in {_shown(report)}")
        if self.map_file is not None:
            parts.append(f"map in {_shown(self.map_file)}")
        if self.log_file is not None:
            parts.append(f"log in {_shown(self.log_file)}")
        return ", ".join(parts)


# What launchers of MPI programs set: the process's number, and how many there are.
_RANKS = (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
          ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
          ("PMI_RANK", "PMI_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"))


def _rank() -> str | None:
    """What tells this process from others of the same program, if there are any."""
    for rank, size in _RANKS:
        number, total = os.environ.get(rank, ""), os.environ.get(size, "")
        if number.isdecimal() and total.isdecimal() and int(total) > 1:
            return f"rank{number}"
    return None


def _directory_of(rank: str | None, directory: str | None) -> str | None:
    if directory is None:
        return None
    return os.path.abspath(os.path.join(directory, rank or ""))


def _file_of(rank: str | None, file: str | None) -> str | None:
    if file is None:
        return None
    name, ending = os.path.splitext(os.path.abspath(file))
    return f"{name}-{rank}{ending}" if rank else name + ending


def _shown(path: str) -> str:
    try:
        relative = os.path.relpath(path)
    except (OSError, ValueError):
        return visible(path)
    return visible(path if relative.startswith(os.pardir) else relative)


def _file_name(name: str) -> str:
    """What is left of *name* as part of a file's name anywhere."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", name).strip("_.")[:60]


def _check_directory(path: str) -> None:
    existing = path
    while not os.path.lexists(existing) and os.path.dirname(existing) != existing:
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing):
        raise UsageError(f"'{path}' cannot be a directory: '{existing}' is a file")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UsageError(f"cannot write in '{existing}': permission denied")


def _files_of_former_run(directory: str) -> Iterator[str]:
    path = os.path.join(directory, _RECORD)
    if not os.path.exists(path):
        return
    try:
        former = read_record(path)
    except RecordError:
        return
    for program in former.programs:
        # A file of ours: nothing but a name, and still there.
        if (program.file and re.fullmatch(r"\d\d+_[A-Za-z0-9._-]+\.cl", program.file)
                and os.path.isfile(os.path.join(directory, program.file))):
            yield program.file


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", errors="backslashreplace",
              newline="\n") as file:
        file.write(text)


def _print(record: Record, stdout: TextIO, first: int) -> None:
    from pytato_provenance.lowering.text import HEADER, MARKER

    total = len(record.programs)
    for number, program in enumerate(record.programs[first:], first + 1):
        title = f"{HEADER} ======== program {number} of {total} ========"
        text = program.text
        if text is None:
            text = f"{MARKER} {visible(program.failure or '')}"
        stdout.write(_encodable(f"{MARKER} {title}\n{text}\n", stdout.encoding))
    stdout.flush()


def _encodable(text: str, encoding: str | None) -> str:
    encoding = encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)

