"""
What files are called in what is written: never by absolute paths, unless asked for.

.. autoclass:: PathNames
"""

from __future__ import annotations

import os
import sys
import sysconfig


def _places() -> list[tuple[str, str]]:
    """Where libraries lie, and what to write for it; the innermost first."""
    named = [(entry, "<sys.path>") for entry in sys.path if entry]
    named += [(sysconfig.get_path(name), "<python>")
              for name in ("stdlib", "platstdlib")]
    named += [(sysconfig.get_path(name), "<site-packages>")
              for name in ("purelib", "platlib")]
    places = {os.path.realpath(path): label for path, label in named if path}
    return sorted(places.items(), key=lambda place: -len(place[0]))


class PathNames:
    """Files by names relative to a root.

    .. attribute:: root

        An absolute path.

    .. automethod:: shown
    """

    def __init__(self, root: str, *, absolute: bool = False) -> None:
        self.root = os.path.realpath(root)
        self._absolute = absolute
        self._places = _places()
        self._names: dict[str, str] = {}

    def shown(self, filename: str) -> str:
        """
        :arg filename: of a code object. What is no file (``<stdin>``) stays as it is.
        :returns: relative to the root, with ``/``; for a library's file, after its
            place in angle brackets, relative to that.
        """
        name = self._names.get(filename)
        if name is None:
            name = self._names[filename] = self._name(filename)
        return name

    def _name(self, filename: str) -> str:
        if filename.startswith("<"):
            return filename
        path = os.path.join(self.root, filename)
        if self._absolute:
            return path
        try:
            real = os.path.realpath(path)
        except (OSError, ValueError):
            return "<elsewhere>/" + os.path.basename(filename)
        for candidate in (os.path.normpath(path), real):
            if _lies_in(candidate, self.root):
                return _relative(candidate, self.root)
        for place, label in self._places:
            if _lies_in(real, place):
                return f"{label}/{_relative(real, place)}"
        return "<elsewhere>/" + os.path.basename(real)


def _lies_in(path: str, directory: str) -> bool:
    return path.startswith(directory.rstrip(os.sep) + os.sep)


def _relative(path: str, directory: str) -> str:
    return path[len(directory.rstrip(os.sep)) + 1:].replace(os.sep, "/")
