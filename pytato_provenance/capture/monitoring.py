"""
A strategy on ``sys.monitoring`` (PEP 669): the location is noted when one of the
host's user-facing functions starts.

.. autoclass:: MonitoringStrategy
.. autofunction:: user_facing_code
"""

from __future__ import annotations

import inspect
import sys
import threading
from sys import _getframe
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from pytato_provenance.capture.profile import HostFrames
from pytato_provenance.capture.stack import StackStrategy
from pytato_provenance.diagnostic import CaptureUnavailableError


if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from pytato_provenance.sites import CreationSite


# Of the six identifiers, those with no tool of their own in PEP 669, then the one for
# optimisers. Debuggers, coverage and profilers keep theirs.
_TOOL_IDS = (4, 3, 5)


class _Latest(threading.local):
    """The latest start of a user-facing function in this thread: the identities of its
    frame and of its caller's code, the position there, the site."""

    frame = 0
    code = 0
    lasti = 0
    site: CreationSite | None = None


class MonitoringStrategy:
    """Only the host's user-facing functions are monitored; all other code runs at full
    speed. Coverage, debuggers and profilers use other tool identifiers.

    What was noted is used only if it belongs to the very call that the array is made
    in, which a look at the host's own frames tells; otherwise the stack is walked.

    (What looks simpler is wrong: CALL events do not fire for operators and subscripts,
    and of LINE events the latest is not always the line that is executing.)

    :arg max_frames: as for :class:`~pytato_provenance.capture.stack.StackStrategy`.
    """

    name = "monitoring"
    limit = 0

    def __init__(self, max_frames: int | None = 4) -> None:
        self._walk = StackStrategy(max_frames)
        self._is_host = HostFrames()
        self._latest = _Latest()
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
        self._walk.start()
        start = monitoring.events.PY_START
        monitoring.register_callback(tool, start, self._on_start)
        self._codes = tuple(user_facing_code(sys.modules.get("pytato")))
        for code in self._codes:
            monitoring.set_local_events(tool, code, start)

    def stop(self) -> None:
        """Take back the events, and free the tool identifier."""
        monitoring: Any = getattr(sys, "monitoring", None)
        if self._tool is not None:
            for code in self._codes:
                monitoring.set_local_events(self._tool, code, 0)
            monitoring.register_callback(
                self._tool, monitoring.events.PY_START, None)
            monitoring.free_tool_id(self._tool)
            self._tool = None
            self._codes = ()
        self._walk.stop()

    def _on_start(self, code: CodeType, offset: int) -> None:
        frame = _getframe(1)
        caller = frame.f_back
        if caller is None or self._is_host(caller):
            return
        try:
            site = self._walk.lookup(2, self._walk.limit)
            if site is None:
                site = self._walk.miss(2)
        except Exception:
            return  # an error here would be raised in the user's code
        latest = self._latest
        latest.frame = id(frame)
        latest.code = id(caller.f_code)
        latest.lasti = caller.f_lasti
        latest.site = site

    def lookup(self, skip: int, limit: int, /) -> CreationSite | None:
        """
        :returns: what was noted at the start of the call that is under way, if it was.
        """
        frame = _getframe(skip + 1)
        is_host = self._is_host
        caller = frame.f_back
        while caller is not None and is_host(caller):
            frame = caller
            caller = frame.f_back
        latest = self._latest
        # A frame's identity may have been another's, a caller's position may come
        # again; only both together are this call.
        if (latest.frame == id(frame) and caller is not None
                and latest.lasti == caller.f_lasti
                and latest.code == id(caller.f_code)):
            return latest.site
        return None

    def miss(self, skip: int) -> CreationSite:
        """
        :arg skip: how many frames above the caller the stack begins.
        :returns: the site of the call that is under way, by walking the stack.
        """
        site = self._walk.lookup(skip + 1, self._walk.limit)
        return self._walk.miss(skip + 1) if site is None else site


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
