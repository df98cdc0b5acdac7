"""
Run a program as the interpreter itself would.

.. autofunction:: find_program
.. autoclass:: Program
.. autofunction:: remove_own_frames

After :meth:`Program.run` has begun, what the program sees (``sys.argv``, ``sys.path``,
``__main__``, exit status, tracebacks) is what it sees under plain ``python``.
"""

from __future__ import annotations

import builtins
import importlib.util
import os
import pkgutil
import runpy
import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder, SourceFileLoader, SourcelessFileLoader
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pytato_provenance.diagnostic import UsageError


if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, TracebackType


@dataclass(frozen=True)
class Program:
    """What ``python PATH ARGUMENTS`` or ``python -m MODULE ARGUMENTS`` would run.

    .. attribute:: path

        As given; *None* for a module.

    .. attribute:: module
    .. attribute:: arguments
    .. autoattribute:: stem
    .. automethod:: run
    """

    path: str | None
    module: str | None
    arguments: tuple[str, ...]

    @property
    def stem(self) -> str:
        """A short name: the file's without its ending, or the module's."""
        if self.path is None:
            assert self.module is not None
            return self.module
        stem = os.path.splitext(os.path.basename(os.path.abspath(self.path)))[0]
        return stem or "program"

    @property
    def directory(self) -> str:
        """The directory of the file; of a module, the current one."""
        if self.path is None:
            return os.getcwd()
        if os.path.isdir(self.path):
            return os.path.realpath(self.path)
        return os.path.dirname(os.path.realpath(self.path))

    def prepare(self) -> None:
        """Set ``sys.argv``, ``sys.path`` and ``__main__`` as the interpreter does."""
        _replace_main_module()
        sys.argv = [self.path or "-m", *self.arguments]
        if self.path is not None and _holds_a_program(self.path):
            if _has_no_path_of_its_own():
                sys.path.insert(0, "")
            sys.path[0] = _absolute(self.path)
        elif _has_no_path_of_its_own():
            return
        else:
            # There is what belongs to the command that runs us.
            sys.path[0] = self.directory
        _forget_hidden_modules(sys.path[0])

    def run(self) -> None:
        """Run it, after :meth:`prepare`. Whatever it raises comes out of this."""
        if self.path is None:
            runpy._run_module_as_main(self.module)  # type: ignore[attr-defined]
        elif _holds_a_program(self.path):
            runpy._run_module_as_main(  # type: ignore[attr-defined]
                "__main__", alter_argv=False)
        else:
            main = sys.modules["__main__"]
            exec(_load(_absolute(self.path), main), vars(main))


def find_program(path: str | None, module: str | None,
                 arguments: tuple[str, ...]) -> Program:
    """
    :arg path: of a script, or of a directory or zip file with a ``__main__.py``.
    :arg module: the dotted name of a module, if *path* is *None*.
    :raises ~pytato_provenance.diagnostic.UsageError: if there is no such program.
    """
    if path is None:
        assert module is not None
        _check_module(module)
    else:
        _check_path(path)
    return Program(path, module, arguments)


def _check_path(path: str) -> None:
    if os.path.isdir(path):
        if not _holds_a_program(path):
            raise UsageError(f"'{path}' is a directory without a __main__.py; "
                             "name a script in it")
        return
    try:
        with open(path, "rb"):
            pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot open the script '{path}': {reason}") from None


def _check_module(name: str) -> None:
    # No further than the outermost package: finding a submodule imports its parents.
    top = name.partition(".")[0]
    saved = sys.path[0]
    if not _has_no_path_of_its_own():
        sys.path[0] = os.getcwd()
    try:
        found = bool(top) and importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        found = False
    finally:
        sys.path[0] = saved
    if not found:
        raise UsageError(f"no module named '{name}'; is it installed, or beneath the "
                         "current directory?")


def _has_no_path_of_its_own() -> bool:
    """Whether the interpreter was told (``-P``, ``-I``) not to look for modules where
    the program lies."""
    return getattr(sys.flags, "safe_path", bool(sys.flags.isolated))


def _holds_a_program(path: str) -> bool:
    """Whether *path* is a directory or zip file with a ``__main__.py``."""
    if os.path.isdir(path):
        return any(os.path.exists(os.path.join(path, "__main__" + suffix))
                   for suffix in (".py", ".pyc"))
    return pkgutil.get_importer(path) is not None


def _forget_hidden_modules(directory: str) -> None:
    """Let the program import its own module where that is called like one of the
    standard library that only we have imported."""
    names = [*sys.modules]
    after = names.index("site" if "site" in names else "__main__") + 1
    # What was imported before is imported before any program is.
    ours = {name.partition(".")[0] for name in names[after:]}
    hidden = {
        name for name in ours & sys.stdlib_module_names
        if (spec := PathFinder.find_spec(name, [directory])) is not None
        and spec.has_location}
    for name in names[after:]:
        if name.partition(".")[0] in hidden:
            del sys.modules[name]


def _absolute(path: str) -> str:
    # ``__file__`` is not normalised: the interpreter only joins.
    return os.path.join(os.getcwd(), path)


def _load(filename: str, main: ModuleType) -> CodeType:
    with open(filename, "rb") as file:
        code = pkgutil.read_code(file)
    is_source = code is None
    loader_class: Any = SourceFileLoader if is_source else SourcelessFileLoader
    # In the order of the interpreter, for those who print their globals.
    main.__loader__ = loader_class("__main__", filename)
    main.__file__ = filename
    if "__cached__" in vars(_launcher_main):
        vars(main)["__cached__"] = None
    if is_source:
        with open(filename, "rb") as file:
            code = compile(file.read(), filename, "exec", dont_inherit=True)
    return code


# Its globals are those of running code: they are not to be cleared.
_launcher_main = sys.modules["__main__"]


def _replace_main_module() -> None:
    main = ModuleType("__main__")
    if "__annotations__" in vars(_launcher_main):
        vars(main)["__annotations__"] = {}
    vars(main)["__builtins__"] = builtins
    sys.modules["__main__"] = main


# {{{ tracebacks

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def remove_own_frames(error: BaseException) -> None:
    """Take this package's frames, and those of what runs it, out of the tracebacks of
    *error* and of all that it was caused by."""
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        current = pending.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        current.__traceback__ = _without_own(current.__traceback__)
        pending.extend((current.__cause__, current.__context__,
                        *getattr(current, "exceptions", ())))


def _without_own(traceback: TracebackType | None) -> TracebackType | None:
    launched = traceback
    while launched is not None and launched.tb_frame.f_code is not Program.run.__code__:
        launched = launched.tb_next
    first = traceback = _skip_own(traceback if launched is None else launched)
    while traceback is not None:
        traceback.tb_next = _skip_own(traceback.tb_next)
        traceback = traceback.tb_next
    return first


def _skip_own(traceback: TracebackType | None) -> TracebackType | None:
    while (traceback is not None
           and traceback.tb_frame.f_code.co_filename.startswith(_PACKAGE)):
        traceback = traceback.tb_next
    return traceback


def show_without_own_frames() -> None:
    """Have the interpreter show the exception that is about to reach it as if this
    package had no part in it: by the program's own ``sys.excepthook``, if it has one.
    """
    hook = sys.excepthook

    def excepthook(kind: type[BaseException], value: BaseException,
                   traceback: TracebackType | None) -> None:
        sys.excepthook = hook
        remove_own_frames(value)
        if hasattr(sys, "last_traceback"):
            sys.last_traceback = value.__traceback__
        _call_hook(hook, kind, value)

    sys.excepthook = excepthook


def _call_hook(hook: Callable[..., object], kind: type[BaseException],
               value: BaseException) -> None:
    try:
        hook(kind, value, value.__traceback__)
    except SystemExit:
        raise
    except BaseException as failure:
        # What the interpreter says when a program's hook fails.
        remove_own_frames(failure)
        failure.__context__ = None
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(failure), failure, failure.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(kind, value, value.__traceback__)

# }}}
