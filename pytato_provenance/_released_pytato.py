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

from pytato_provenance.diagnostic import HostMissingError, ProvenanceWarning


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
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


def _reads_attribute(code: CodeType, library: str, attribute: str) -> bool:
    """Whether *code* reads ``library.attribute``."""
    if not {library, attribute} <= {*code.co_names}:  # spares most disassembling
        return False
    instructions = [*dis.get_instructions(code)]
    return any(
        first.argval == library and second.argval == attribute
        for first, second in itertools.pairwise(instructions)
    )


def _passes_keyword(code: CodeType, keyword: str) -> bool:
    """Whether *code* makes a call with an argument named *keyword*."""
    return any(isinstance(c, tuple) and keyword in c for c in code.co_consts)


def _constructor_warns(array_class: type) -> bool:
    """Whether making an *array_class* runs a constructor that pytools deprecates."""
    tag = importlib.import_module("pytools.tag")
    init = tag.Taggable.__dict__.get("__init__")
    return (
        inspect.isfunction(init)
        and "warn" in init.__code__.co_names
        and array_class.__init__ is init
    )


# }}}


# {{{ what the libraries used to offer


def _numpy_bool8(np: Any) -> object:
    return np.bool_


def _numpy_nan(np: Any) -> object:
    return np.nan


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


def _lacks(name: str) -> Callable[[Any], bool]:
    return lambda library: not hasattr(library, name)


def _refuses_is_output_only(lp: Any) -> bool:
    try:
        lp.GlobalArg("probe", dtype="float64", shape=(), is_output_only=False)
    except TypeError:
        return True
    return False


@dataclass(frozen=True)
class _Name:
    """A name that a host module uses and that its library may have dropped.

    Where only an argument went away, ``keyword`` is its name.
    """

    module: str
    library: str
    attribute: str
    is_missing: Callable[[Any], bool]
    supply: Callable[[Any], object]
    keyword: str | None = None

    def is_used(self) -> bool:
        if self.keyword is not None:
            return any(_passes_keyword(c, self.keyword) for c in _code_of(self.module))
        return any(
            _reads_attribute(c, self.library, self.attribute)
            for c in _code_of(self.module)
        )


_NAMES = (
    _Name("pytato.array", "np", "bool8", _lacks("bool8"), _numpy_bool8),
    _Name("pytato.array", "np", "NaN", _lacks("NaN"), _numpy_nan),
    _Name(
        "pytato.array",
        "np",
        "find_common_type",
        _lacks("find_common_type"),
        _numpy_find_common_type,
    ),
    _Name(
        "pytato.target.loopy.codegen",
        "lp",
        "GlobalArg",
        _refuses_is_output_only,
        _loopy_global_arg,
        keyword="is_output_only",
    ),
)

# }}}


# {{{ replacements


def _view_of(library: ModuleType, supplied: Mapping[str, object]) -> object:
    """An object that answers as *library* does, with the *supplied* names added.

    Nothing is copied: what somebody sets in the library later is seen here too.
    """
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


def _quiet_constructor(original: Any) -> object:
    # What ``Taggable.__init__`` does, less its deprecation warning, which takes a
    # third of an array's construction.
    def __init__(  # noqa: N807
        self: Any, tags: frozenset[Any] = frozenset()
    ) -> None:
        self.tags = tags

    return functools.update_wrapper(__init__, original)


# }}}


# {{{ installing

_MISSING = object()


@dataclass(frozen=True)
class _Replaced:
    owner: Any
    name: str
    before: object  # _MISSING: inherited or absent, so deleted on restore
    after: object

    def install(self) -> None:
        setattr(self.owner, self.name, self.after)

    def restore(self) -> None:
        if vars(self.owner).get(self.name, _MISSING) is not self.after:
            warnings.warn(
                f"{self.owner.__name__}.{self.name} was replaced after pytato was "
                "mended and stays as it is. Undo the later change first.",
                ProvenanceWarning,
                stacklevel=4,
            )
        elif self.before is _MISSING:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.before)


_lock = threading.RLock()
_installed: list[_Replaced] = []


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


def _needed() -> list[_Replaced]:
    supplied: dict[tuple[str, str], dict[str, object]] = {}
    for row in _NAMES:
        try:
            library = getattr(importlib.import_module(row.module), row.library, None)
        except ModuleNotFoundError:
            continue
        if inspect.ismodule(library) and row.is_used() and row.is_missing(library):
            names = supplied.setdefault((row.module, row.library), {})
            names[row.attribute] = row.supply(library)

    result: list[_Replaced] = []
    for (module_name, name), names in supplied.items():
        module = importlib.import_module(module_name)
        library = vars(module)[name]
        result.append(_Replaced(module, name, library, _view_of(library, names)))

    array_class = importlib.import_module("pytato.array").Array
    if _constructor_warns(array_class):
        before = vars(array_class).get("__init__", _MISSING)
        after = _quiet_constructor(array_class.__init__)
        result.append(_Replaced(array_class, "__init__", before, after))
    return result


def mend_released_pytato() -> bool:
    """Make the installed pytato work with the installed numpy and loopy.

    Imports pytato where it is not imported yet, and keeps the deprecation warnings
    quiet that the released one causes in pytools and pymbolic. Replaces names in
    pytato's modules only. Calling it again changes nothing.

    :returns: whether the host needed it, that is whether anything is mended now.
    :raises HostMissingError: if pytato or loopy is not installed.
    """
    with _lock:
        if not _installed:
            _import_host()
            needed = _needed()
            for replaced in needed:
                replaced.install()
                _installed.append(replaced)
        return bool(_installed)


def unmend_released_pytato() -> None:
    """Take back :func:`mend_released_pytato`; every name is what it was before.

    Recording has to be off. A name that somebody else replaced in the meantime is
    left alone, with a warning. Does nothing where nothing is mended.
    """
    with _lock:
        while _installed:
            _installed.pop().restore()


def is_mended() -> bool:
    """Whether :func:`mend_released_pytato` is in effect."""
    return bool(_installed)


# }}}
