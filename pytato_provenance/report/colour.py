"""
Coloured source, where Pygments is installed (the extra ``report``).

.. autofunction:: coloured_lines
.. autofunction:: style_sheet
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from pytato_provenance.report.markup import Markup, element, escaped, joined


# Colouring takes about a second for each megabyte.
_LONGEST = 1_000_000

_LEXERS = {"c": ("pygments.lexers.c_cpp", "CLexer"),
           "python": ("pygments.lexers.python", "PythonLexer")}


def _pygments_is_here() -> bool:
    return find_spec("pygments") is not None


def coloured_lines(text: str, language: str) -> list[Markup]:
    """
    :arg text: any text.
    :arg language: ``"c"`` or ``"python"``.
    :returns: its lines, as HTML.
    """
    if not _pygments_is_here() or len(text) > _LONGEST:
        return [escaped(line) for line in text.split("\n")]
    import importlib

    module, name = _LEXERS[language]
    lexer = getattr(importlib.import_module(module), name)(
        stripnl=False, ensurenl=False)
    from pygments.token import STANDARD_TYPES

    lines: list[list[Markup]] = [[]]
    for token, value in lexer.get_tokens(text):
        css_class = STANDARD_TYPES.get(token, "")
        for number, part in enumerate(value.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append(element(f"span.{css_class}", part) if css_class
                                 else escaped(part))
    return [joined(parts) for parts in lines]


def style_sheet() -> str:
    """
    :returns: the colours, as CSS.
    """
    if not _pygments_is_here():
        return ""
    from pygments.formatters.html import HtmlFormatter

    light: Any = HtmlFormatter(style="friendly")
    dark: Any = HtmlFormatter(style="github-dark")
    return (light.get_style_defs("code")
            + "\n@media (prefers-color-scheme: dark) {\n"
            + dark.get_style_defs("code") + "\n}\n")
