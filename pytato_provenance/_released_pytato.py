"""Let the released pytato run on today's numpy and loopy.

``pytato==2021.2`` calls a few names that numpy and loopy have since dropped. The
mend gives pytato's own modules a view of those two libraries in which the names
exist again; numpy, loopy and pytools themselves are left alone. What is mended is
found by asking: a name is supplied only where the module's compiled code mentions it
and its library does not offer it, so on the development pytato nothing happens.

The mend has a lifetime of its own: :func:`pytato_provenance.enable` and the command
line apply it, ``disable()`` leaves it in place.

.. autofunction:: mend_released_pytato
.. autofunction:: unmend_released_pytato
.. autofunction:: is_mended
"""

from __future__ import annotations

import dis
import functools
import importlib
import importlib.util
import inspect
import itertools
import sys
import threading
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytato_provenance._patching import PatchPoint, PatchSet
from pytato_provenance.diagnostic import HostMissingError


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import CodeType, ModuleType


# {{{ probing


def _all_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if inspect.iscode(const):
            yield from _all_code(const)


@functools.cache
def _code_of(module_name: str) -> tuple[CodeType, ...]:
    spec = importlib.util.find_spec(module_name)
    get_code = getattr(spec and spec.loader, "get_code", None)
    code = get_code(module_name) if get_code is not None else None
    return tuple(_all_code(code)) if code is not None else ()


@functools.cache
def _reads_attribute(module_name: str, library: str, attribute: str) -> bool:
    """Whether the module's code reads ``library.attribute``."""
    for code in _code_of(module_name):
        if {library, attribute} <= {*code.co_names}:  # spares most disassembling
            instructions = [*dis.get_instructions(code)]
            for first, second in itertools.pairwise(instructions):
                if first.argval == library and second.argval == attribute:
                    return True
    return False


@functools.cache
def _passes_keyword(module_name: str, keyword: str) -> bool:
    """Whether the module's code makes a call with an argument named *keyword*."""
    return any(
        isinstance(const, tuple) and keyword in const
        for code in _code_of(module_name)
        for const in code.co_consts
    )


def _constructor_warns() -> bool:
    """Whether an array is made by a constructor that pytools deprecates."""
    init = importlib.import_module("pytools.tag").Taggable.__dict__.get("__init__")
    return (
        inspect.isfunction(init)
        and "warn" in init.__code__.co_names
        and importlib.import_module("pytato.array").Array.__init__ is init
    )


# }}}


# {{{ what the libraries used to offer


def _numpy_find_common_type(np: Any) -> object:
    def find_common_type(
        array_types: Sequence[object], scalar_types: Sequence[object]
    ) -> object:
        # pytato passes no scalar types. The rule for them was one of its own (they
        # counted by kind only), and a guess at it would be worse than this.
        if scalar_types:
            raise TypeError("find_common_type: only array types are supported here")
        return np.result_type(*array_types)

    return find_common_type


def _loopy_global_arg(lp: Any) -> object:
    def global_arg(*args: object, **kwargs: object) -> object:
        if "is_output_only" in kwargs:
            is_output_only = kwargs.pop("is_output_only")
            kwargs["is_output"] = is_output_only
            kwargs["is_input"] = not is_output_only
        return lp.GlobalArg(*args, **kwargs)

    return functools.update_wrapper(global_arg, lp.GlobalArg, updated=())


def _refuses_is_output_only(lp: Any) -> bool:
    try:
        lp.GlobalArg("probe", dtype="float64", shape=(), is_output_only=False)
    except TypeError:
        return True
    return False


@dataclass(frozen=True)
class _Dropped:
    """What a library may have dropped.

    .. attribute:: attribute
    .. attribute:: supply

        Takes the library and returns what *attribute* is to be.

    .. attribute:: keyword

        Where only an argument went away, its name.

    .. attribute:: is_missing

        Takes the library; asked where a keyword is given.
    """

    attribute: str
    supply: Callable[[Any], object]
    keyword: str | None = None
    is_missing: Callable[[Any], bool] | None = None

    def is_needed(self, module_name: str, library_name: str) -> bool:
        library = vars(importlib.import_module(module_name)).get(library_name)
        if not inspect.ismodule(library):
            return False
        if self.keyword is not None and self.is_missing is not None:
            used = _passes_keyword(module_name, self.keyword)
            return used and self.is_missing(library)
        used = _reads_attribute(module_name, library_name, self.attribute)
        return used and not hasattr(library, self.attribute)


_DROPPED = {
    ("pytato.array", "np"): (
        _Dropped("bool8", lambda np: np.bool_),
        _Dropped("NaN", lambda np: np.nan),
        _Dropped("find_common_type", _numpy_find_common_type),
    ),
    ("pytato.target.loopy.codegen", "lp"): (
        _Dropped(
            "GlobalArg", _loopy_global_arg, "is_output_only", _refuses_is_output_only
        ),
    ),
}

# }}}


# {{{ replacements


def _view_of(library: ModuleType, dropped: Sequence[_Dropped]) -> object:
    """An object that answers as *library* does, with what was *dropped* added.

    Nothing is copied: what somebody sets in the library later is seen here too.
    """
    supplied = {item.attribute: item.supply(library) for item in dropped}
    # ``__getattribute__`` on a class of its own costs 20 ns an access. Through a
    # module's ``__getattr__`` it would be 300 ns, in every ``np.dtype`` of pytato.
    get = supplied.get
    none = object()

    class View:
        def __getattribute__(self, name: str) -> object:
            value = get(name, none)
            return getattr(library, name) if value is none else value

        def __setattr__(self, name: str, value: object) -> None:
            setattr(library, name, value)

        def __delattr__(self, name: str) -> None:
            delattr(library, name)

        def __repr__(self) -> str:
            added = ", ".join(sorted(supplied))
            return f"<{library!r} as the released pytato knows it: {added}>"

    return View()


def _quiet_constructor(original: object) -> object:
    # What ``Taggable.__init__`` does, less its deprecation warning, which takes a
    # third of an array's construction.
    del original

    def __init__(self: Any, tags: frozenset[Any] = frozenset()) -> None:
        self.tags = tags

    return __init__


def _patch_points() -> Iterator[PatchPoint]:
    for (module_name, library_name), candidates in _DROPPED.items():
        dropped = [c for c in candidates if c.is_needed(module_name, library_name)]
        if dropped:
            yield PatchPoint(
                module_name,
                library_name,
                functools.partial(_view_of, dropped=dropped),
                "the library took away what pytato calls",
            )
    yield PatchPoint(
        "pytato.array",
        "Array.__init__",
        _quiet_constructor,
        "the inherited one warns, each time, of what users cannot change",
        needs=_constructor_warns,
    )


# }}}


# {{{ installing

_lock = threading.RLock()
_patches = PatchSet((), lasting=True)


def _import_host() -> None:
    if "pytato" in sys.modules:
        return
    for name in ("loopy", "pytato"):
        if importlib.util.find_spec(name) is None:
            raise HostMissingError(
                f"{name} is not installed here ({sys.executable}). "
                f"Install it with: pip install {name}"
            )

    # Before the filter below: what numpy and others add to warnings.filters stays.
    importlib.import_module("loopy")
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", category=DeprecationWarning, module=r"pytato(\.|\Z)"
        )
        importlib.import_module("pytato")


def mend_released_pytato() -> bool:
    """Make the installed pytato work with the installed numpy and loopy.

    Imports pytato where it is not imported yet, and keeps the deprecation warnings
    quiet that the released one causes in pytools and pymbolic. Replaces names in
    pytato's modules only. Calling it again changes nothing.

    :returns: whether the host needed it, that is whether anything is mended now.
    :raises ~pytato_provenance.diagnostic.HostMissingError: if pytato or loopy is not
        installed.
    """
    global _patches
    with _lock:
        if not _patches.installed:
            _import_host()
            _patches = PatchSet(_patch_points(), lasting=True)
            _patches.install()
        return _patches.installed


def unmend_released_pytato() -> None:
    """Take back :func:`mend_released_pytato`; every name is what it was before.

    Recording has to be off. A name that somebody else replaced in the meantime is
    left alone, with a warning. Does nothing where nothing is mended.
    """
    with _lock:
        _patches.restore()


def is_mended() -> bool:
    """
    :returns: whether :func:`mend_released_pytato` is in effect.
    """
    return _patches.installed


# }}}
