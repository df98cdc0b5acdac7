"""
A program that is run from the command line, and what is written when it ends.

.. autoclass:: WatchedRun
.. autoclass:: Choices
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import sys
import threading
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytato_provenance.annotation_options import DEFAULT, AnnotationOptions
from pytato_provenance.call_tree import end_stacks_at
from pytato_provenance.capture import make_strategy
from pytato_provenance.collect import make_record
from pytato_provenance.diagnostic import HostMissingError, UsageError
from pytato_provenance.import_hook import call_when_imported
from pytato_provenance.new_contexts import wrap_new_array_contexts
from pytato_provenance.path_names import PathNames
from pytato_provenance.report.visible import visible
from pytato_provenance.run_script import show_without_own_frames


if TYPE_CHECKING:
    from collections.abc import Callable

    from pytato_provenance.outputs import Outputs
    from pytato_provenance.run_script import Program


NAME = "pytato-provenance"
"""What messages begin with."""

_INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Choices:
    """
    .. attribute:: annotate

        Whether kernels have comments.

    .. attribute:: comments

        What they look like.

    .. attribute:: capture
    .. attribute:: max_frames

        As for :func:`~pytato_provenance.enable`; *None* for its defaults.

    .. attribute:: region

        What the log is about, *None* for all.

    .. attribute:: absolute_paths
    .. attribute:: quiet
    """

    annotate: bool = True
    comments: AnnotationOptions = DEFAULT
    capture: str | None = None
    max_frames: int | None = None
    region: str | None = None
    absolute_paths: bool = False
    quiet: bool = False

    @property
    def capture_options(self) -> dict[str, Any]:
        """What the strategy is made with."""
        return {} if self.max_frames is None else {"max_frames": self.max_frames}


class WatchedRun:
    """
    .. automethod:: run
    """

    def __init__(self, program: Program, outputs: Outputs, choices: Choices) -> None:
        """
        :raises ~pytato_provenance.diagnostic.UsageError: for what cannot work.
        """
        if choices.capture is not None or choices.capture_options:
            make_strategy(choices.capture or "stack", **choices.capture_options)
        self._program = program
        self._outputs = outputs
        self._choices = choices
        self._ledger: Any = None
        self._log: Any = None
        self._refused = False
        self._switched_off = False
        self._ended = "unfinished"
        self._written: tuple[int, str] | None = None
        self._printed = 0
        self._lock = threading.RLock()
        self._process = os.getpid()
        # The program may replace, close or redirect its own.
        self._stdout, self._stderr = sys.stdout, sys.stderr
        current = os.path.realpath(os.getcwd())
        self._is_inside = (program.directory + os.sep).startswith(
            current.rstrip(os.sep) + os.sep)
        self._names = PathNames(current if self._is_inside else program.directory,
                                absolute=choices.absolute_paths)
        self._name = (program.stem if program.path is None
                      else self._names.shown(os.path.abspath(program.path)))

    def prepare(self) -> None:
        """Turn the interpreter over to the program.

        :raises ~pytato_provenance.diagnostic.HostMissingError: if the program would
            not find pytato.
        """
        self._program.prepare()
        _check_host()

    def run(self) -> None:
        """Run the program, after :meth:`prepare`; whatever it raises comes out of this.

        Its kernels and the report are written when the interpreter ends: after the
        program's threads and the functions that it registered to be called at exit.
        """
        atexit.register(self._finish)
        self._watch_sudden_ends()
        call_when_imported("pytato", self._begin)
        # pytato itself is only imported when the first context is made.
        call_when_imported("arraycontext", wrap_new_array_contexts)
        try:
            end_stacks_at(type(self._program).run.__code__)
            self._program.run()
        except SystemExit as error:
            self._ended = f"exit status {_status(error)}"
            raise
        except BaseException as error:
            self._ended = (_INTERRUPTED if isinstance(error, KeyboardInterrupt)
                           else f"exit status 1 after {type(error).__qualname__}")
            show_without_own_frames()
            raise
        self._ended = "exit status 0"

    # {{{ beginning

    def _begin(self) -> None:
        """pytato has been imported."""
        choices = self._choices
        try:
            from pytato_provenance.instrument import enable, when_disabled
            enable(capture=choices.capture, annotate="beside",
                   **choices.capture_options)
            when_disabled(self._note_switched_off)
            from pytato_provenance.lowering import Ledger
            self._ledger = Ledger()
            self._ledger.__enter__()
            if self._outputs.log_file is not None:
                from pytato_provenance.compilation.log import compile_log
                self._log = compile_log()
                self._log.__enter__()
        except UsageError as error:
            self._refuse(str(error))
        except (ImportError, AttributeError) as error:
            self._refuse(f"this pytato or loopy cannot be recorded ({error}); install "
                         "pytato 2021.2 or later and loopy 2025.2 or later")

    def _note_switched_off(self) -> None:
        self._switched_off = True

    def _refuse(self, message: str) -> None:
        self._say(message)
        self._refused = True
        raise SystemExit(2)

    def _watch_sudden_ends(self) -> None:
        """After these nothing that is registered to be called at exit is."""
        def finishing_first(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                self._ended = f"ended by os.{function.__name__}"
                self._finish()
                return function(*args, **kwargs)

            return wrapper

        for name in ("_exit", "execv", "execve"):
            setattr(os, name, finishing_first(getattr(os, name)))

    # }}}

    # {{{ ending

    def _finish(self) -> None:
        """Write what there is, unless that is done or this is a child process."""
        if os.getpid() != self._process:
            return
        try:
            with self._lock:
                self._write()
        except KeyboardInterrupt:
            self._say("interrupted; not everything was written")
        except Exception as error:
            self._say(f"the results could not be written: {type(error).__name__}: "
                      f"{error}")
        if self._ended == _INTERRUPTED:
            _remember_interrupt()

    def _write(self) -> None:
        entries = [] if self._ledger is None else [*self._ledger.entries]
        state = len(entries), self._ended
        if state == self._written or self._refused:
            return
        self._written = state
        choices = self._choices
        if not entries:
            if not choices.quiet:
                when = (" before the program switched recording off"
                        if self._switched_off else "")
                self._say(f"no kernel was generated{when}, nothing was written")
            return
        root = ("the current directory of the run" if self._is_inside
                else "the directory of the script")
        with warnings.catch_warnings():
            # loopy warns of a program again when its text is made again.
            warnings.simplefilter("ignore")
            record = make_record(
                self._name, self._ended, entries, self._names,
                annotated=choices.annotate, comments=choices.comments,
                root=self._names.root if choices.absolute_paths else root)
        record = self._outputs.write(record)
        if self._log is not None:
            self._outputs.write_log(self._log, choices.region, self._names)
        _flush(sys.stdout)
        # Last: the program may have closed it, and files are to be there nevertheless.
        self._outputs.print_kernels(record, self._stdout, self._printed)
        self._printed = len(record.programs)
        if not choices.quiet:
            self._say(self._outputs.where(record))

    def _say(self, message: str) -> None:
        _flush(sys.stderr)
        # It may be closed, or nobody reads it.
        with suppress(OSError, ValueError):
            self._stderr.write(f"{NAME}: {visible(message)}\n")
            self._stderr.flush()

    # }}}


def _remember_interrupt() -> None:
    # An interpreter that was interrupted ends by the signal, unless code was compiled
    # from a string since: it looks at how the latest such code ended.
    with suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")


def _check_host() -> None:
    for name in ("pytato", "loopy"):
        try:
            found = name in sys.modules or importlib.util.find_spec(name) is not None
        except (ImportError, ValueError):
            found = False
        if not found:
            raise HostMissingError(
                f"{name} is not installed for {sys.executable}; install it with "
                f"'{sys.executable} -m pip install {name} \"islpy<2026\"'")


def _status(error: SystemExit) -> int:
    if error.code is None:
        return 0
    return error.code & 0xff if isinstance(error.code, int) else 1


def _flush(stream: Any) -> None:
    with suppress(OSError, ValueError, AttributeError):
        stream.flush()
