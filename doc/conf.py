"""Sphinx's configuration."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

import pytato_provenance


if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

project = "pytato_provenance"
author = "the pytato_provenance authors"
copyright = f"2026, {author}"
release = metadata.version("pytato-provenance")
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = project
templates_path: list[str] = []

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
add_module_names = False
python_use_unqualified_type_names = True
copybutton_exclude = ".linenos, .gp, .go"

# Every name of our own has to lead somewhere. Others' have nowhere to lead to: the
# build reads nothing from the network.
nitpicky = True
nitpick_ignore_regex = [
    (
        r"py:.*",
        r"(arraycontext|collections|contextlib|contextvars|enum|islpy|loopy|np|numpy|os|pathlib|"
        r"pymbolic|pyopencl|pytato|pytest|pytools|re|types|typing|typing_extensions)"
        r"(\..*)?",
    ),
    (r"py:mod", r"(?!pytato_provenance).*"),
    # As annotations spell them.
    (
        r"py:(class|data|obj)",
        r"(Any|Callable|Iterable|Iterator|Mapping|ModuleType|CodeType|FrameType|Node|"
        r"CallNode|Path|PathLike|Self|Sequence|Tag|TextIO|optional)",
    ),
    # What Sphinx makes of some annotations that have a comma in them.
    (r"py:class", r"(dict|frozenset|list|set|tuple)\[.*"),
    # Type variables.
    (r"py:(class|data|obj)", r"(.*\.)?(P|R|T|[A-Z][A-Za-z]*T)"),
]

doctest_global_setup = """
import pytato_provenance
pytato_provenance.mend_released_pytato()
"""


def resolve_by_last_name(
    app: Sphinx,
    env: BuildEnvironment,
    node: pending_xref,
    contnode: nodes.TextElement,
) -> Any:
    """Let ``created_at`` and ``pytato_provenance.created_at`` find the function where
    its module documents it, and annotations the classes that they name."""
    name = node.get("reftarget", "").removeprefix("pytato_provenance.")
    if node.get("refdomain") != "py" or "." in name:
        return None
    domain = env.get_domain("py")
    candidates = [key for key in domain.objects if key.endswith(f".{name}")]
    home = pytato_provenance._HOME.get(name)
    if f"pytato_provenance.{home}.{name}" in candidates:
        candidates = [f"pytato_provenance.{home}.{name}"]
    if len(candidates) != 1:
        return None
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], *candidates, node, contnode
    )


def setup(app: Sphinx) -> None:
    app.connect("missing-reference", resolve_by_last_name)
