"""
A strategy on ``sys.monitoring`` (PEP 669): the location is noted when one of the
host's user-facing functions starts.

.. autoclass:: MonitoringStrategy
.. autofunction:: user_facing_code
"""

from __future__ import annotations

import inspect
import sys
from sys import _getframe
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from pytato_provenance.capture.entries import EntryStrategy
from pytato_provenance.diagnostic import CaptureUnavailableError


if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


# Of the six identifiers, those with no tool of their own in PEP 669, then the one for
# optimisers. Debuggers, coverage and profilers keep theirs.
_TOOL_IDS = (4, 3, 5)


class MonitoringStrategy(EntryStrategy):
    """Only the host's user-facing functions are monitored; all other code runs at full
    speed. Coverage, debuggers and profilers use other tool identifiers.

    (What looks simpler is wrong: CALL events do not fire for operators and subscripts,
    and of LINE events the latest is not always the line that is executing.)

    :arg max_frames: as for :class:`~pytato_provenance.capture.stack.StackStrategy`.
    """

    name = "monitoring"

    def __init__(self, max_frames: int | None = 4) -> None:
        super().__init__(max_frames)
        self._tool: int | None = None
        self._codes: tuple[CodeType, ...] = ()

    def start(self) -> None:
        """
        :raises ~pytato_provenance.diagnostic.CaptureUnavailableError: before Python
            3.12, or if no tool identifier is free.
        """
        monitoring: Any = getattr(sys, "monitoring", None)
        if monitoring is None:
            raise CaptureUnavailableError(
                "capture strategy 'monitoring' needs Python 3.12 or later (this is "
                f"{sys.version_info[0]}.{sys.version_info[1]}); choose 'stack'")
        for tool in _TOOL_IDS:
            try:
                monitoring.use_tool_id(tool, "pytato_provenance")
            except ValueError:
                continue
            break
        else:
            names = ", ".join(str(monitoring.get_tool(tool)) for tool in _TOOL_IDS)
            raise CaptureUnavailableError(
                "capture strategy 'monitoring': no tool identifier of sys.monitoring "
                f"is free (they belong to {names}); choose 'stack'")
        self._tool = tool
        super().start()
        events = monitoring.events
        monitoring.register_callback(tool, events.PY_START, self._on_start)
        monitoring.register_callback(tool, events.PY_RETURN, self._on_return)
        self._codes = tuple(user_facing_code(sys.modules.get("pytato")))
        for code in self._codes:
            monitoring.set_local_events(
                tool, code, events.PY_START | events.PY_RETURN)

    def stop(self) -> None:
        """Take back the events, and free the tool identifier."""
        monitoring: Any = getattr(sys, "monitoring", None)
        if self._tool is not None:
            for code in self._codes:
                monitoring.set_local_events(self._tool, code, 0)
            for event in (monitoring.events.PY_START, monitoring.events.PY_RETURN):
                monitoring.register_callback(self._tool, event, None)
            monitoring.free_tool_id(self._tool)
            self._tool = None
            self._codes = ()
        super().stop()

    def _on_start(self, code: CodeType, offset: int) -> None:
        frame = _getframe(1)
        caller = frame.f_back
        if caller is not None and not self._is_host(caller):
            self.note_entry(frame, caller)

    def _on_return(self, code: CodeType, offset: int, value: object) -> None:
        self.note_return(_getframe(1))


def user_facing_code(host: ModuleType | None) -> Iterator[CodeType]:
    """
    :arg host: the package whose ``__all__`` tells what users call.
    :returns: the code of its functions, and of the public methods, operators and
        properties of its classes.
    """
    seen: set[int] = set()
    for name in getattr(host, "__all__", ()):
        value = getattr(host, name, None)
        values = [value]
        if isinstance(value, type):
            values = [
                member for base in value.__mro__ for name, member in vars(base).items()
                if not name.startswith("_") or name.endswith("__")]
        for member in values:
            code = _code_of(member)
            if code is not None and id(code) not in seen and is_of(code, host):
                seen.add(id(code))
                yield code


def is_of(code: CodeType, host: ModuleType | None) -> bool:
    """
    :returns: whether *code* lies in the package, not in the base class of a library.
    """
    directory = (getattr(host, "__file__", None) or "").removesuffix("__init__.py")
    return bool(directory) and code.co_filename.startswith(directory)


def _code_of(member: object) -> CodeType | None:
    if isinstance(member, property):
        member = member.fget
    elif isinstance(member, classmethod | staticmethod):
        member = member.__func__
    if not callable(member):
        return None
    function = inspect.unwrap(member)
    return function.__code__ if isinstance(function, FunctionType) else None
