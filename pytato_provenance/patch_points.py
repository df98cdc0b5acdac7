"""
What of the host is hooked, and why: one table.

.. autofunction:: recording_points
.. autodata:: NOT_HOOKED
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, TypeVar

from pytato_provenance import copies, dispatch, graphs
from pytato_provenance._host import host
from pytato_provenance._patching import PatchPoint, PatchSet


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")


def _find(module: str, path: str) -> Any:
    """What *path* is in *module*, or *None*."""
    try:
        owner = importlib.import_module(module)
        for name in path.split("."):
            owner = getattr(owner, name)
    except (ImportError, AttributeError):
        return None
    return owner


def has(module: str, path: str) -> Callable[[], bool]:
    return lambda: _find(module, path) is not None


def _keeps_tags_apart() -> bool:
    return host().has_non_equality_tags


def _one_constructor() -> bool:
    return not host().has_non_equality_tags


def _checks_new_arrays() -> bool:
    return _keeps_tags_apart() and "__post_init__" in vars(host().array)


def _as_it_is(original: T) -> T:
    return original


def _own_inits() -> Iterator[PatchPoint]:
    """Without ``__debug__`` the development host's arrays have no common hook."""
    if not _keeps_tags_apart() or _checks_new_arrays():
        return
    for cls in host().array_types:
        if "__init__" in vars(cls) and cls is not host().array:
            yield PatchPoint(
                cls.__module__, f"{cls.__qualname__}.__init__",
                dispatch.dataclass_init_with_site,
                "arrays made without asking for a tag, where __post_init__ is not "
                "compiled in")


_POINTS = (
    PatchPoint(
        "pytato.array", "_get_created_at_tag", dispatch.created_at_seam,
        "asked by every user-facing function for the tag of a new array",
        has("pytato.array", "_get_created_at_tag")),
    PatchPoint(
        "pytato.cmath", "_get_created_at_tag", dispatch.created_at_seam,
        "the same, bound by name in the module of mathematical functions",
        has("pytato.cmath", "_get_created_at_tag")),
    PatchPoint(
        "pytato.distributed.nodes", "_get_created_at_tag", dispatch.created_at_seam,
        "the same, bound by name in the module of sends and receives",
        has("pytato.distributed.nodes", "_get_created_at_tag")),
    PatchPoint(
        "pytato.array", "Array.__post_init__", dispatch.post_init_with_site,
        "results of loopy calls, placeholders of traced functions, and what mappers "
        "and users make by calling a class, without asking for a tag",
        _checks_new_arrays),
    PatchPoint(
        "pytato.array", "Array.__init__", dispatch.init_with_site,
        "the one constructor of all arrays of the released host", _one_constructor),
    PatchPoint(
        "pytato.array", "DictOfNamedArrays.__getitem__",
        dispatch.result_inherits(lambda names, name: names._data.get(name)),
        "an entry of a dictionary is its expression's, whoever asks for it",
        _one_constructor),
    PatchPoint(
        "pytato.loopy", "LoopyCall.__post_init__", dispatch.container_with_site,
        "the call, whose results are made when somebody asks for them",
        has("pytato.loopy", "LoopyCall.__post_init__")),
    PatchPoint(
        "pytato.loopy", "LoopyCall.__init__", dispatch.container_with_site,
        "the same on the released host",
        lambda: not has("pytato.loopy", "LoopyCall.__post_init__")()),
    PatchPoint(
        "pytato.function", "Call.__post_init__", dispatch.container_with_site,
        "the call of a traced function; its results are created where it returns them",
        has("pytato.function", "Call.__post_init__")),
    PatchPoint(
        "pytato.function", "Call.__init__", dispatch.container_with_site,
        "the same where __post_init__ is not compiled in",
        lambda: (has("pytato.function", "Call")()
                 and not has("pytato.function", "Call.__post_init__")())),
    PatchPoint(
        "pytato.loopy", "LoopyCall.__getitem__",
        dispatch.result_inherits(lambda call, name: call),
        "a result is the call's, whoever asks for it"),
    PatchPoint(
        "pytato.transform", "Mapper.rec", dispatch.dispatch_with_origin,
        "a node that a mapper makes inherits from the node it replaces"),
    PatchPoint(
        "pytato.transform", "Mapper.__call__", dispatch.call_as_outermost,
        "where a transform ends: survivors of merges are to know all their sites"),
    PatchPoint(
        "pytato.transform", "TransformMapper.__call__", dispatch.call_as_outermost,
        "the same, overridden",
        lambda: "__call__" in vars(_find("pytato.transform", "TransformMapper")
                                   or object)),
    PatchPoint(
        "pytato.transform", "CopyMapper.rec", dispatch.cached_rec,
        "the released host's cache takes equal nodes for one", _one_constructor),
    *(PatchPoint(
        module, f"{name}.rec", _as_it_is,
        "the released host's check walks without a cache, a node as often as there are "
        "ways to it, and makes none: to set an origin would double the lowering",
        _one_constructor)
      for module, name in (("pytato.codegen", "NamesValidityChecker"),
                           ("pytato.target.loopy.codegen", "InputNameRecorder"))),
    PatchPoint(
        "pytato.transform", "copy_dict_of_named_arrays", dispatch.copy_as_one,
        "the host maps the entries of a dictionary one by one; preprocessing asks for "
        "it when it needs it",
        has("pytato.transform", "copy_dict_of_named_arrays")),
    PatchPoint(
        "pytato.visualization", "normalize_outputs", graphs.outputs_with_all_sites,
        "a graph shows equal nodes as one, which is to know all their sites",
        has("pytato.visualization", "normalize_outputs")),
    PatchPoint(
        "pytato.visualization.dot", "normalize_outputs", graphs.outputs_with_all_sites,
        "the same on the development host",
        has("pytato.visualization.dot", "normalize_outputs")),
    PatchPoint(
        "pytato.visualization", "ArrayToDotNodeInfoMapper.get_common_dot_info",
        graphs.info_with_site,
        "the released host's graphs have no tooltips: what they are to show",
        _one_constructor),
    PatchPoint(
        "pytato.visualization", "_emit_array", graphs.emit_with_tooltip,
        "where the released host prints a node; get_dot_graph looks it up when called",
        _one_constructor),
    *(PatchPoint(
        "pytato.visualization.dot", f"ArrayToDotNodeInfoMapper.{method}",
        graphs.info_of_container_with_site,
        "the development host shows no tooltips for calls",
        has("pytato.visualization.dot", f"ArrayToDotNodeInfoMapper.{method}"))
      for method in ("map_loopy_call", "map_call", "map_named_call_result")),
)


# Not before there is a copy: the caches are asked twice a node.
_COPY_POINTS = (
    PatchPoint(
        "pytato.transform", "CachedMapperCache.retrieve", copies.forgiving_retrieve,
        "a node of an input and the copy that stands for it in a result are one node, "
        "should a program use both",
        has("pytato.transform", "CachedMapperCache.retrieve")),
    PatchPoint(
        "pytato.codegen", "NamesValidityChecker.post_visit",
        copies.forgiving_post_visit,
        "the same, of inputs that have a name", _keeps_tags_apart),
)
_for_copies = PatchSet(_COPY_POINTS)
_copies_pass = False


def _let_copies_pass() -> None:
    """From the first copy on, until recording is switched off."""
    from pytato_provenance import instrument

    if instrument._patches is not None and not _copies_pass:
        _for_copies.install()
        instrument.when_disabled(_for_copies.restore)


copies.call_when_copied(_let_copies_pass)


def recording_points() -> tuple[PatchPoint, ...]:
    """
    :returns: the patch points of recording on this host.
    """
    global _copies_pass
    _copies_pass = copies.exist()
    return (*_POINTS, *_own_inits(), *(_COPY_POINTS if _copies_pass else ()))


_ABSTRACT = "an abstract class; those derived from it are hooked"
_TRANSFORM = "a transform: what it makes inherits from what it replaces"
_NO_ARRAY = "makes no array"
_INNER = ("what the user-facing functions are made of; if called directly, the "
          "constructor gives its nodes the calling line")

NOT_HOOKED: dict[str, str] = {
    **dict.fromkeys((
        "pytato.AbstractResultWithNamedArrays", "pytato.Array", "pytato.IndexBase",
        "pytato.IndexRemappingBase", "pytato.InputArgumentBase", "pytato.SparseMatmul",
        "pytato.SparseMatrix"), _ABSTRACT),
    **dict.fromkeys((
        "pytato.codegen.*", "pytato.distributed.partition.*",
        "pytato.distributed.tags.*", "pytato.eliminate_dead_code",
        "pytato.find_distributed_partition", "pytato.inline_calls",
        "pytato.materialize_with_mpms", "pytato.number_distributed_tags",
        "pytato.rewrite_einsums_with_no_broadcasts",
        "pytato.tag_all_calls_to_be_inlined", "pytato.transform", "pytato.transform.*",
        "pytato.unify_axes_tags"), _TRANSFORM),
    **dict.fromkeys((
        "pytato.Axis", "pytato.DistributedGraphPart",
        "pytato.DistributedGraphPartition", "pytato.LoopyPyOpenCLTarget",
        "pytato.ReductionDescriptor", "pytato.Target", "pytato.analysis",
        "pytato.analysis.*", "pytato.array.array_dataclass",
        "pytato.array.normalize_shape", "pytato.array.shape_is_int_only",
        "pytato.distributed.execute.*", "pytato.distributed.verify.*", "pytato.dtype",
        "pytato.equality.*", "pytato.execute_distributed_partition", "pytato.function",
        "pytato.generate_code_for_partition", "pytato.generate_jax",
        "pytato.generate_loopy", "pytato.get_dot_graph",
        "pytato.get_dot_graph_from_partition", "pytato.loopy.solve_constraints",
        "pytato.scalar_expr.*", "pytato.set_traceback_tag_enabled",
        "pytato.show_dot_graph", "pytato.show_fancy_placeholder_data_flow",
        "pytato.stringifier.*", "pytato.tags", "pytato.target.*",
        "pytato.verify_distributed_partition", "pytato.visualization.*",
        "Array.__bool__", "Array.__contains__", "Array.__iter__", "Array.__len__",
        "Array.axes", "Array.call", "Array.dtype", "Array.keys", "Array.name",
        "Array.ndim", "Array.non_equality_tags", "Array.tags",
        "Array.tags_not_of_type", "Array.tags_of_type"), _NO_ARRAY),
    **dict.fromkeys((
        "pytato.loopy.extend_bindings_with_shape_inference", "pytato.raising.*",
        "pytato.utils.*"), _INNER),
    "pytato.CSRMatrix":
        "no array, and no hook of its own: one that make_csr_matrix makes has its "
        "line, and so has the product",
}
"""Public ways of the host that need no hook, with the reason. ``module.*`` stands for
what is in a module; a member of ``Array`` for the same member of every class."""
