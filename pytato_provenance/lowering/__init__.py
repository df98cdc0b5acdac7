"""
From :mod:`pytato` to :mod:`loopy`: which array operations a statement evaluates, in
the generated code and as data.

.. autofunction:: generate_loopy
.. autofunction:: kernel_source
.. autofunction:: strip_annotations
.. autoclass:: AnnotationOptions
.. autofunction:: contributors
.. autoclass:: Contributors
.. autoclass:: IntroducedBy
.. autoclass:: Ledger
.. autoclass:: Entry
.. autofunction:: annotate_programs
.. autofunction:: stop_annotating
"""

from __future__ import annotations

from typing import Any

from pytato_provenance._host import host
from pytato_provenance._released_pytato import mend_released_pytato
from pytato_provenance.annotation_options import AnnotationOptions
from pytato_provenance.diagnostic import NotAnArrayError
from pytato_provenance.lowering import modes, patch_points
from pytato_provenance.lowering.findings import (
    Contributors,
    IntroducedBy,
    contributors,
)
from pytato_provenance.lowering.ledger import Entry, Ledger
from pytato_provenance.lowering.source import kernel_source
from pytato_provenance.lowering.text import MARKER, strip_annotations


__all__ = (
    "MARKER",
    "AnnotationOptions",
    "Contributors",
    "Entry",
    "IntroducedBy",
    "Ledger",
    "annotate_programs",
    "contributors",
    "generate_loopy",
    "kernel_source",
    "stop_annotating",
    "strip_annotations",
)


def annotate_programs(mode: bool | str = "beside",
                      options: AnnotationOptions | None = None) -> None:
    """Let every program that is generated from now on know its creation sites.

    :arg mode: ``"beside"`` or ``"embed"``, as in :func:`~pytato_provenance.enable`,
        which calls this.
    :arg options: what comments look like.
    :raises ~pytato_provenance.diagnostic.UsageError: for a bad argument.
    """
    found = modes.mode_of(mode, options)
    patch_points.install()
    modes.set_everywhere(found)


def stop_annotating() -> None:
    """Put back every attribute of the hosts. Programs that were generated meanwhile
    keep their sites."""
    modes.set_everywhere(None)
    patch_points.restore()


def generate_loopy(result: Any, target: Any = None, options: Any = None, *,
                   annotate: bool | str = True,
                   annotation_options: AnnotationOptions | None = None,
                   **kwargs: Any) -> Any:
    """Like :func:`pytato.generate_loopy`; the program knows its creation sites.

    :arg result: an array, or a dictionary of arrays.
    :arg target: as there.
    :arg options: as there.
    :arg annotate: *True* or ``"beside"``: :func:`kernel_source` gives an annotated
        text, and what is compiled is not touched; ``"embed"``: the comments go into
        what is compiled; *False*: as if :mod:`pytato` were called.
    :arg annotation_options: what the comments look like.
    :arg kwargs: as there.
    :returns: the host's bound program.
    :raises ~pytato_provenance.diagnostic.NotAnArrayError: if *result* is neither.
    :raises ~pytato_provenance.diagnostic.UsageError: for a bad one of these.

    The first call patches the host, until :func:`~pytato_provenance.disable`.
    """
    mode = modes.mode_of(annotate, annotation_options)
    values = result.values() if isinstance(result, dict) else (result,)
    for value in values:
        if not isinstance(value, host().node_types[:2]):
            raise NotAnArrayError(
                "generate_loopy takes a pytato array or a dictionary of arrays, not "
                f"'{type(value).__name__}'")
    mend_released_pytato()
    from pytato.target.loopy import codegen

    if mode is None:
        return codegen.generate_loopy(result, target, options, **kwargs)
    from pytato_provenance.instrument import recording

    patch_points.install()
    with recording(), modes.annotating_here(mode):
        return codegen.generate_loopy(result, target, options, **kwargs)
