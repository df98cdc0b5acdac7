"""
The log of everything that is compiled while it is open.

.. autoclass:: compile_log
.. autoclass:: CompileEvents
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TextIO, overload

from pytato_provenance.compilation import writers
from pytato_provenance.compilation.events import STAGES, CompileEvent, line_of
from pytato_provenance.diagnostic import UsageError
from pytato_provenance.path_names import PathNames
from pytato_provenance.regions import check_pattern, matches


if TYPE_CHECKING:
    from types import TracebackType

    from pytato_provenance.sites import CreationSite


class CompileEvents(Sequence[CompileEvent]):
    """Events, in the order in which they ended. Prints as a table.

    .. automethod:: select
    .. autoattribute:: seconds
    .. automethod:: by_region
    .. automethod:: by_line
    .. automethod:: table
    .. automethod:: write_text
    .. automethod:: write_jsonl
    .. automethod:: write_trace
    """

    def __init__(self, events: Sequence[CompileEvent] = (), start: float = 0.0,
                 chosen: Callable[[CreationSite], bool] | None = None) -> None:
        self._events = events
        self._start = start
        self._chosen = chosen

    @overload
    def __getitem__(self, index: int) -> CompileEvent: ...
    @overload
    def __getitem__(self, index: slice) -> CompileEvents: ...

    def __getitem__(self, index: int | slice) -> CompileEvent | CompileEvents:
        if isinstance(index, slice):
            return CompileEvents(self._events[index], self._start, self._chosen)
        return self._events[index]

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[CompileEvent]:
        return iter(tuple(self._events))

    @property
    def start(self) -> float:
        """When the log was opened, by the clock of :attr:`CompileEvent.start`."""
        return self._start

    def select(self, region: str | None = None, line: str | None = None, *,
               stage: str | None = None) -> CompileEvents:
        """
        :arg region: the path of a region, or a pattern as in :mod:`fnmatch`: arrays
            that were made in that region, or in one within it.
        :arg line: such as ``"heat.py:42"``: the file by its name, or by its path or the
            end of that (patterns allowed), and the number of the line: arrays that were
            made there.
        :arg stage: a key of :data:`~pytato_provenance.compilation.events.STAGES`.
        :returns: the events, as far as the log goes by now, of programs in which such
            an array takes part: one that fulfils all that is given. The sums by region
            and line are those of such arrays only.
        :raises ~pytato_provenance.diagnostic.UsageError: for what can select nothing.
        """
        chosen = self._chosen
        if region is not None:
            pattern = check_pattern(region)
            chosen = _both(chosen, lambda site: site.region is not None
                           and matches(site.region, pattern))
        if line is not None:
            chosen = _both(chosen, _on_line(line))
        if stage is not None and stage not in STAGES:
            raise UsageError(f"stage={stage!r}: one of {', '.join(STAGES)}")
        events = [event for event in self
                  if stage in (None, event.stage)
                  and (chosen is None or any(map(chosen, event.contents.weights)))]
        return CompileEvents(events, self._start, chosen)

    # {{{ sums

    @property
    def seconds(self) -> float:
        """What all events took together."""
        return sum(event.seconds for event in self)

    def by_region(self) -> dict[str, float]:
        """
        :returns: the seconds of each region. What an event took is divided among the
            arrays that are computed, equally.
        """
        return writers.seconds_by(
            self, self._chosen, lambda site: site.region)

    def by_line(self) -> dict[str, float]:
        """
        :returns: the seconds of each line, as in ``"heat.py:42"``; divided likewise.
        """
        return {str(line): seconds for line, seconds in writers.seconds_by(
            self, self._chosen, line_of).items()}

    # }}}

    # {{{ output

    def table(self, names: PathNames | None = None) -> str:
        """
        :arg names: what files are called; relative to the current directory by default.
        :returns: the events, and what each region and line costs, as text.
        """
        return writers.table(self, self._chosen, names)

    def __str__(self) -> str:
        return self.table()

    def write_text(self, file: str | os.PathLike[str] | TextIO, *,
                   region: str | None = None, names: PathNames | None = None) -> None:
        """Write :meth:`table`.

        :arg file: a path, or an open text file.
        :arg region: as for :meth:`select`.
        :arg names: as for :meth:`table`.
        """
        _write(file, self._of(region).table(names) + "\n")

    def write_jsonl(self, file: str | os.PathLike[str] | TextIO, *,
                    region: str | None = None, absolute_paths: bool = False,
                    names: PathNames | None = None) -> None:
        """Write a JSON object a line, one for each event.

        :arg file: a path, or an open text file.
        :arg region: as for :meth:`select`.
        :arg absolute_paths: whether files are named by absolute paths.
        :arg names: as for :meth:`table`, instead.
        """
        names = names or PathNames(os.getcwd(), absolute=absolute_paths)
        _write(file, writers.json_lines(self._of(region), names))

    def write_trace(self, file: str | os.PathLike[str] | TextIO, *,
                    region: str | None = None, absolute_paths: bool = False,
                    names: PathNames | None = None) -> None:
        """Write a trace that Perfetto and Chrome's tracing page open.

        :arg file: a path, or an open text file.
        :arg region: as for :meth:`select`.
        :arg absolute_paths: whether files are named by absolute paths.
        :arg names: as for :meth:`table`, instead.
        """
        names = names or PathNames(os.getcwd(), absolute=absolute_paths)
        _write(file, writers.trace(self._of(region), names))

    def _of(self, region: str | None) -> CompileEvents:
        return self if region is None else self.select(region=region)

    # }}}

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} events, {self.seconds:.3g} s>"


Choice = Callable[["CreationSite"], bool]


def _both(first: Choice | None, second: Choice) -> Choice:
    if first is None:
        return second
    known = first
    return lambda site: known(site) and second(site)


def _on_line(pattern: str) -> Choice:
    file, colon, number = pattern.rpartition(":") if isinstance(pattern, str) else (
        "", "", "")
    if not file or not colon or not number.isdecimal():
        raise UsageError(
            f"line={pattern!r}: pass a file and the number of a line, such as "
            "'heat.py:42'")
    lineno = int(number)
    file = file.replace(os.sep, "/")

    def is_on_line(site: CreationSite) -> bool:
        line = line_of(site)
        if line is None or line.lineno != lineno:
            return False
        path = line.filename.replace(os.sep, "/")
        return path == file or path.endswith("/" + file) or fnmatchcase(path, file) or (
            fnmatchcase(path.rpartition("/")[2], file))

    return is_on_line


def _write(file: str | os.PathLike[str] | TextIO, text: str) -> None:
    if isinstance(file, str | os.PathLike):
        with open(file, "w", encoding="utf-8", errors="backslashreplace",
                  newline="\n") as opened:
            opened.write(text)
    else:
        file.write(text)


class compile_log(CompileEvents):  # noqa: N801
    """A context manager that logs every stage of every program that is compiled while
    it is open, in any thread. Its value is itself: :class:`CompileEvents`, also after
    it has been left.

    Regions and lines are those of recorded arrays (see
    :func:`~pytato_provenance.enable`). Programs that were generated before the log was
    opened are known if recording was on and any region had been opened by then, or if
    they were annotated.

    The hosts are patched while a log is open; :func:`~pytato_provenance.disable` closes
    all logs.
    """

    def __init__(self) -> None:
        self._list: list[CompileEvent] = []
        self._reused: dict[object, CompileEvent] = {}
        self._depth = 0
        super().__init__(self._list)

    def __enter__(self) -> compile_log:
        from time import perf_counter

        from pytato_provenance._released_pytato import mend_released_pytato
        from pytato_provenance.compilation import patch_points

        mend_released_pytato()
        if not self._start:
            self._start = perf_counter()
        self._depth += 1
        if self._depth == 1:
            patch_points.log_opened(self._note)
        return self

    def __exit__(self, exc_type: type[BaseException] | None,
                 exc: BaseException | None, tb: TracebackType | None) -> None:
        from pytato_provenance.compilation import patch_points

        self._depth -= 1
        if self._depth == 0:
            patch_points.log_closed(self._note)

    def _note(self, event: CompileEvent) -> None:
        if event.origin == "reused":
            key = event.stage, event.kernel, event.program, event.contents.key
            known = self._reused.get(key)
            if known is not None:
                known.count += 1
                return
            self._reused[key] = event
        self._list.append(event)
