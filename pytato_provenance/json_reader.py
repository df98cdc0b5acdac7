"""
Plain data from a file that may hold anything.

.. autoclass:: Reader
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytato_provenance.diagnostic import RecordError


if TYPE_CHECKING:
    from collections.abc import Iterator


_NAMES = {dict: "an object", list: "a list", str: "a string", int: "an integer",
          bool: "true or false"}


class Reader:
    """A value in a JSON document that knows where it stands.

    Every method raises :exc:`~pytato_provenance.diagnostic.RecordError`, naming the
    place, if the value is not what is asked for.

    .. attribute:: value
    """

    __slots__ = ("_parent", "_step", "value")

    def __init__(self, value: Any, origin: str, parent: Reader | None = None) -> None:
        self.value = value
        # The name of the place is put together when it is needed.
        self._step = origin
        self._parent = parent

    def _fail(self, expected: str) -> RecordError:
        steps: list[str] = []
        reader: Reader | None = self
        while reader is not None:
            steps.append(reader._step)
            reader = reader._parent
        origin, *rest = reversed(steps)
        place = "".join(rest).lstrip(".") or "the document"
        return RecordError(f"{origin} is damaged: {place} should be {expected}")

    def _checked(self, kind: type) -> Any:
        # A bool is an int to Python, not to JSON.
        if type(self.value) is not kind:
            raise self._fail(_NAMES[kind])
        return self.value

    def get(self, name: str, default: Any = None) -> Any:
        """The reader of an entry of an object, or *default* if it is not there."""
        entries = self._checked(dict)
        return Reader(entries[name], f".{name}", self) if name in entries else default

    def __getitem__(self, name: str) -> Reader:
        reader: Reader | None = self.get(name)
        if reader is None:
            raise self._fail(f"an object with an entry '{name}'")
        return reader

    def entries(self) -> Iterator[tuple[str, Reader]]:
        """The entries of an object."""
        for name, value in self._checked(dict).items():
            yield name, Reader(value, f"[{name!r}]", self)

    def items(self) -> Iterator[Reader]:
        """The items of a list."""
        for number, value in enumerate(self._checked(list)):
            yield Reader(value, f"[{number}]", self)

    def row(self, length: int) -> list[Reader]:
        """The items of a list of *length*."""
        if type(self.value) is not list or len(self.value) != length:
            raise self._fail(f"a list of {length}")
        return [*self.items()]

    def text(self) -> str:
        value: str = self._checked(str)
        return value

    def optional_text(self) -> str | None:
        return None if self.value is None else self.text()

    def truth(self) -> bool:
        value: bool = self._checked(bool)
        return value

    def integer(self, least: int = 0, most: int | None = None) -> int:
        value: int = self._checked(int)
        if value < least or (most is not None and value > most):
            raise self._fail(f"an integer from {least}"
                             + ("" if most is None else f" to {most}"))
        return value

    def optional_integer(self, least: int = 0) -> int | None:
        return None if self.value is None else self.integer(least)

    def index(self, length: int) -> int:
        """A position in a list of *length*."""
        return self.integer(0, length - 1)

    def one_of(self, *choices: str) -> str:
        value = self.text()
        if value not in choices:
            raise self._fail("one of " + ", ".join(choices))
        return value
