"""
From any array, node, statement or kernel of :mod:`pytato` back to the Python line.

Importing this package patches nothing.

.. autofunction:: enable
.. autofunction:: disable
.. autofunction:: is_enabled
.. autoclass:: recording
.. autofunction:: created_at
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from pytato_provenance._released_pytato import (
        mend_released_pytato as mend_released_pytato,
        unmend_released_pytato as unmend_released_pytato,
    )
    from pytato_provenance.array_context import (
        provenance_array_context as provenance_array_context,
        unwrap_array_context as unwrap_array_context,
        wrap_array_context as wrap_array_context,
    )
    from pytato_provenance.auditing import audit as audit
    from pytato_provenance.call_frames import Frame as Frame
    from pytato_provenance.compilation.log import compile_log as compile_log
    from pytato_provenance.compilation.precompile import precompile as precompile
    from pytato_provenance.explanation import explain as explain
    from pytato_provenance.frames import (
        register_library as register_library,
        register_user as register_user,
    )
    from pytato_provenance.instrument import (
        disable as disable,
        enable as enable,
        is_enabled as is_enabled,
        recording as recording,
    )
    from pytato_provenance.library_sets import (
        register_library_set as register_library_set,
    )
    from pytato_provenance.lowering import (
        AnnotationOptions as AnnotationOptions,
        contributors as contributors,
        generate_loopy as generate_loopy,
        kernel_source as kernel_source,
        strip_annotations as strip_annotations,
    )
    from pytato_provenance.regions import region as region
    from pytato_provenance.sites import CreationSite as CreationSite
    from pytato_provenance.tags import (
        CreatedAt as CreatedAt,
        created_at as created_at,
        history_of as history_of,
    )
    from pytato_provenance.transform import (
        PreserveCreatedAtMixin as PreserveCreatedAtMixin,
        ProvenanceCopyMapper as ProvenanceCopyMapper,
        through as through,
    )


# Loaded when first used: a saved record is read where there is no host.
_HOME = {
    "CreatedAt": "tags",
    "CreationSite": "sites",
    "Frame": "call_frames",
    "PreserveCreatedAtMixin": "transform",
    "ProvenanceCopyMapper": "transform",
    "audit": "auditing",
    "compile_log": "compilation.log",
    "AnnotationOptions": "lowering",
    "contributors": "lowering",
    "created_at": "tags",
    "disable": "instrument",
    "enable": "instrument",
    "explain": "explanation",
    "generate_loopy": "lowering",
    "history_of": "tags",
    "is_enabled": "instrument",
    "kernel_source": "lowering",
    "mend_released_pytato": "_released_pytato",
    "precompile": "compilation.precompile",
    "provenance_array_context": "array_context",
    "recording": "instrument",
    "region": "regions",
    "register_library": "frames",
    "register_library_set": "library_sets",
    "register_user": "frames",
    "strip_annotations": "lowering",
    "through": "transform",
    "unmend_released_pytato": "_released_pytato",
    "unwrap_array_context": "array_context",
    "wrap_array_context": "array_context",
}

__all__ = (
    "AnnotationOptions",
    "CreatedAt",
    "CreationSite",
    "Frame",
    "PreserveCreatedAtMixin",
    "ProvenanceCopyMapper",
    "audit",
    "compile_log",
    "contributors",
    "created_at",
    "disable",
    "enable",
    "explain",
    "generate_loopy",
    "history_of",
    "is_enabled",
    "kernel_source",
    "mend_released_pytato",
    "precompile",
    "provenance_array_context",
    "recording",
    "region",
    "register_library",
    "register_library_set",
    "register_user",
    "strip_annotations",
    "through",
    "unmend_released_pytato",
    "unwrap_array_context",
    "wrap_array_context",
)


def __getattr__(name: str) -> object:
    try:
        home = _HOME[name]
    except KeyError:
        raise AttributeError(
            f"module '{__name__}' has no attribute '{name}'") from None
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
