"""
Putting foreign text into C comments, and taking our lines out again.

.. autofunction:: one_line
.. autofunction:: line_directive
.. autofunction:: strip_annotations
.. autodata:: MARKER
"""

from __future__ import annotations

import re
import unicodedata

from pytato_provenance.diagnostic import UsageError


MARKER = "//<-"
"""Our lines begin with it, after white space. Where a program has lines of its own that
do so, a number goes in, as in ``//<2-``; the header of the text says which."""

PYTHON_MARKER = "#<-"
"""The same in programs in Python."""

HEADER = "pytato_provenance:"
"""What follows the marker on the first of our lines."""

_HEADER_RE = re.compile(r"\s*((?://|#)<\d*-) " + re.escape(HEADER))


# {{{ foreign text

def _escaped(char: str) -> str:
    # Controls, line ends, marks of direction and other invisible characters, halves of
    # surrogate pairs, and what is not assigned.
    if char == "\t":
        return " "
    if unicodedata.category(char) in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"):
        code = ord(char)
        return f"\\x{code:02x}" if code < 0x100 else (
            f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return char


def one_line(text: str, limit: int | None = None) -> str:
    """Make *text* harmless within a comment of any language of the C family.

    :arg text: a path, a name or a source line. It may hold anything.
    :arg limit: the most characters to keep.
    :returns: a single line that can be encoded, that neither ends a comment nor
        continues it on the next line, and that reads in the order in which it is
        written.
    """
    text = text.strip()
    if limit is not None and len(text) > limit:
        text = text[:max(limit - 3, 0)] + "..."
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_escaped, text))
    # Trigraphs are replaced before comments are recognised.
    while "??" in text:
        text = text.replace("??", "? ?")
    text = text.replace("*/", "* /").replace("/*", "/ *")
    # Compilers look for a continuation past white space at the end of the line.
    return text + "." if text.endswith("\\") else text

# }}}


def line_directive(lineno: int, path: str, marker: str) -> str:
    """
    :returns: a directive for compilers of the C family: the next line is line *lineno*
        of *path*.
    """
    # A string as in C: what a backslash stands before is escaped.
    name = one_line(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'#line {lineno} "{name}" {marker}'


# {{{ our lines

def marker_for(lines: list[str]) -> str:
    """
    :arg lines: lines of a program that is to be annotated.
    :returns: a marker with which none of them begins.
    """
    taken = [line for line in lines if "//<" in line]
    marker, number = MARKER, 1
    while any(_is_ours(line, marker) for line in taken):
        number += 1
        marker = f"//<{number}-"
    return marker


def _is_ours(line: str, marker: str) -> bool:
    return line.lstrip().startswith(marker) or (
        line.startswith("#line ") and line.endswith(marker))


def strip_annotations(text: str) -> str:
    """Take our lines, and nothing else, out of an annotated text.

    :arg text: what :func:`kernel_source` gave, several of them in a row, or any part
        of it.
    :returns: the text as :mod:`loopy` writes it.
    :raises ~pytato_provenance.diagnostic.UsageError: if *text* is not a string.
    """
    if not isinstance(text, str):
        raise UsageError("strip_annotations takes the text of a kernel, not "
                         f"'{type(text).__name__}'")
    marker = MARKER
    kept: list[str] = []
    for line in text.split("\n"):
        header = _HEADER_RE.match(line)
        if header is not None:
            marker = header.group(1)
        if not (_is_ours(line, marker) or line.lstrip().startswith(PYTHON_MARKER)):
            kept.append(line)
    return "\n".join(kept)

# }}}
