"""
What comments look like.

.. autoclass:: AnnotationOptions
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from pytato_provenance.diagnostic import UsageError


_PATHS = ("short", "relative", "absolute")


@dataclass(frozen=True)
class AnnotationOptions:
    """What comments in generated code look like.

    .. attribute:: text

        Whether source text is shown: the line, or where only some of its operations
        are meant, their expressions (Python 3.11 and later).

    .. attribute:: width

        The most characters of source text.

    .. attribute:: most

        The most lines above a statement, beside that of what it stores; 0 for all.
        :func:`~pytato_provenance.contributors` has all in any case.

    .. attribute:: callers

        Whether the calling line is shown where a line was reached from several.

    .. attribute:: stacks

        Whether all calls that led to a line are shown beneath it.

    .. attribute:: columns

        Whether columns are shown, from 1, where the interpreter knows them.

    .. attribute:: group_by_file

        Whether the name of a file is left out where it is that of the line above.

    .. attribute:: header

        Whether the text begins with lines on what it is.

    .. attribute:: variables

        Whether arguments are listed at the top of a function, and temporaries where
        they are declared.

    .. attribute:: paths

        ``"short"``: by the shortest names that tell files apart; ``"relative"`` to
        *root*; ``"absolute"``.

    .. attribute:: root

        A directory; *None* for the current one.

    .. attribute:: line_directives

        Whether ``#line`` stands before each statement, so that what compilers,
        debuggers and profilers say of it names the line of the program. Names of files
        in them are relative to *root*, or absolute.

    .. automethod:: parse
    """

    text: bool = True
    width: int = 88
    most: int = 12
    callers: bool = True
    stacks: bool = False
    columns: bool = False
    group_by_file: bool = True
    header: bool = True
    variables: bool = True
    paths: str = "short"
    root: str | None = None
    line_directives: bool = False

    def __post_init__(self) -> None:
        """
        :raises ~pytato_provenance.diagnostic.UsageError: for a bad value.
        """
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(field.default, bool) and not isinstance(value, bool):
                raise UsageError(f"{field.name}={value!r}: pass True or False")
            if type(field.default) is int and (type(value) is not int or value < 0):
                raise UsageError(f"{field.name}={value!r}: pass a number from 0")
        if self.paths not in _PATHS:
            raise UsageError(f"paths={self.paths!r}: pass one of {', '.join(_PATHS)}")
        if self.root is not None and not isinstance(self.root, str):
            raise UsageError(f"root={self.root!r}: pass the name of a directory")

    @staticmethod
    def parse(text: str) -> AnnotationOptions:
        """
        :arg text: as on the command line: ``"columns,no-text,most=20,paths=relative"``.
        :raises ~pytato_provenance.diagnostic.UsageError: for what is no option.
        """
        types = {field.name: field.default for field in fields(AnnotationOptions)}
        changes: dict[str, Any] = {}
        for item in filter(None, text.split(",")):
            name, has_value, value = item.strip().partition("=")
            plain = name.removeprefix("no-").replace("-", "_")
            kind = types.get(plain, ...)
            if isinstance(kind, bool) and not has_value:
                changes[plain] = not name.startswith("no-")
            elif type(kind) is int and value.isdecimal() and plain == name:
                changes[plain] = int(value)
            elif kind is not ... and not isinstance(kind, bool | int) and value:
                changes[plain] = value
            else:
                known = ", ".join(
                    f"[no-]{key}" if isinstance(default, bool) else f"{key}=..."
                    for key, default in types.items()).replace("_", "-")
                raise UsageError(f"'{item}' is not one of {known}")
        return replace(AnnotationOptions(), **changes)


DEFAULT = AnnotationOptions()


def check_annotation(annotate: object, options: object) -> None:
    """
    :arg annotate: as in :func:`~pytato_provenance.enable`.
    :arg options: as ``annotation_options`` there.
    :raises ~pytato_provenance.diagnostic.UsageError: for a bad one of these.
    """
    if not (isinstance(annotate, bool) or (
            isinstance(annotate, str) and annotate in ("beside", "embed"))):
        raise UsageError(
            f"annotate={annotate!r}: pass False, True, 'beside' or 'embed'")
    if options is not None and not isinstance(options, AnnotationOptions):
        raise UsageError("annotation options are AnnotationOptions(...), not "
                         f"'{type(options).__name__}'")
