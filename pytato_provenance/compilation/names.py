"""
Names of kernels from regions.

.. autofunction:: kernel_name_from_regions
"""

from __future__ import annotations

import re
from typing import Any

from pytato_provenance._host import host
from pytato_provenance.compilation.programs import contents_of_dag
from pytato_provenance.diagnostic import NotAnArrayError


_LONGEST = 60


def kernel_name_from_regions(outputs: Any, default: str = "_pt_kernel") -> str:
    """A hint for whoever names a kernel, as in
    ``pt.generate_loopy(y, function_name=kernel_name_from_regions(y))`` on hosts that
    let it be named.

    :arg outputs: an array, or a container or dictionary of arrays.
    :arg default: the name where no region takes part, or several that have nothing in
        common.
    :returns: an identifier in C: what the paths of all regions have in common, with
        ``_kernel`` after it.
    :raises ~pytato_provenance.diagnostic.NotAnArrayError: for anything else.
    """
    roots = list(outputs.values()) if isinstance(outputs, dict) else [outputs]
    for root in roots:
        if not isinstance(root, host().node_types):
            raise NotAnArrayError(
                "kernel_name_from_regions takes a pytato array or a dictionary of "
                f"arrays, not '{type(root).__name__}'")
    paths = [path.split("/") for path in contents_of_dag(*roots).regions]
    common: list[str] = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    words = re.findall("[A-Za-z0-9]+", "_".join(common))
    if not words:
        return default
    name = "_".join(words)[:_LONGEST].rstrip("_")
    return f"{'_' if name[0].isdigit() else ''}{name}_kernel"
