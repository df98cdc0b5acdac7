"""A lazy array context on the released pytato and the released arraycontext.

``arraycontext==2021.1`` has the interface, :class:`arraycontext.ArrayContext`, and an
eager implementation.  This one builds pytato expressions instead, and runs them when
somebody asks for values (``freeze``, ``to_numpy``) or calls a function that went
through ``compile``.  The later releases bring ``PytatoPyOpenCLArrayContext``, with
which an application written for this one also works: see ``vortex.py``.

Arrays are :class:`pytato.Array`; frozen arrays are :class:`pyopencl.array.Array`
without a queue.  All methods take array containers as well.

Run it for a short demonstration::

    python -m pytato_provenance run --kernels stdout examples/lazy_array_context.py
"""
# The base classes have no types.
# pyright: reportIncompatibleMethodOverride=none

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import loopy as lp
import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytato as pt
from arraycontext import (
    ArrayContext,
    CommonSubexpressionTag,
    deserialize_container,
    is_array_container,
    rec_map_array_container,
    rec_multimap_array_container,
    serialize_container,
)
from arraycontext.fake_numpy import (
    BaseFakeNumpyLinalgNamespace,
    BaseFakeNumpyNamespace,
)
from pytato.loopy import call_loopy
from pytools.tag import normalize_tags


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pytools.tag import Tag


# {{{ containers as lists of named leaves


def is_container(obj: Any) -> bool:
    """Whether *obj* is a container; of numpy's arrays only those of objects are."""
    if isinstance(obj, np.ndarray):
        return obj.dtype.char == "O"
    return is_array_container(obj)


def leaves(name: str, obj: Any) -> Iterator[tuple[str, Any]]:
    """Yield the arrays in *obj*, each with an identifier that begins with *name*."""
    if not is_container(obj):
        yield name, obj
        return
    for key, component in serialize_container(obj):
        keys = key if isinstance(key, tuple) else (key,)
        yield from leaves("_".join([name, *map(str, keys)]), component)


def with_leaves(template: Any, arrays: Iterator[Any]) -> Any:
    """Return a container like *template* made of *arrays*, in the order of `leaves`."""
    if not is_container(template):
        return next(arrays)
    components = [
        (key, with_leaves(component, arrays))
        for key, component in serialize_container(template)
    ]
    return deserialize_container(template, components)


def structure(obj: Any) -> tuple[Any, ...]:
    """Return what a program that was traced for *obj* depends on, as a key."""
    if not is_container(obj):
        return getattr(obj, "shape", ()), np.result_type(obj.dtype)
    return type(obj), *(
        (key, structure(component)) for key, component in serialize_container(obj)
    )


# }}}


# {{{ programs


class Program:
    """A compiled expression, with the data that it wraps on the device.

    :arg outputs: pytato arrays by name
    :arg name: what the kernel is called
    """

    def __init__(
        self, actx: LazyArrayContext, outputs: Mapping[str, pt.Array], name: str
    ) -> None:
        dag = actx.transform_dag(pt.make_dict_of_named_arrays(dict(outputs)))
        bound = pt.generate_loopy(
            dag, options=lp.Options(return_dict=True, no_numpy=True)
        )
        t_unit = lp.rename_callable(bound.program, "_pt_kernel", name)
        t_unit = actx.transform_loopy_program(t_unit)

        self.queue = actx.queue
        self.bound_arguments = bound.bound_arguments
        #: what the program takes, which a function's argument need not be among
        self.argument_names = frozenset(t_unit[name].arg_dict)
        self.executor = t_unit.executor(actx.queue.context, entrypoint=name)

    def __call__(self, **arguments: cl_array.Array) -> Mapping[str, cl_array.Array]:
        """Run the program and return its outputs by name."""
        _, outputs = self.executor(self.queue, **self.bound_arguments, **arguments)
        return outputs


class CompiledFunction:
    """A function of arrays, containers and numbers that runs as one kernel.

    It is traced at its first call with arguments of a new structure, that is other
    types of containers, other shapes or other dtypes.

    :arg function: what to trace; it must return an array or a container
    """

    def __init__(self, actx: LazyArrayContext, function: Callable[..., Any]) -> None:
        self.actx = actx
        self.function = function
        self.traced: dict[Any, tuple[Program, Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel on *arguments* and return what the function returns."""
        arguments = tuple(
            np.float64(arg) if isinstance(arg, float) else arg for arg in arguments
        )
        key = tuple(structure(arg) for arg in arguments)
        if key not in self.traced:
            self.traced[key] = self._trace(arguments)
        program, template = self.traced[key]

        outputs = program(
            **{
                name: self.actx.on_device(value)
                for i, arg in enumerate(arguments)
                for name, value in leaves(f"in_{i}", arg)
                if name in program.argument_names
            }
        )
        arrays = (
            pt.make_data_wrapper(outputs[name]) for name, _ in leaves("out", template)
        )
        return with_leaves(template, arrays)

    def _trace(self, arguments: tuple[Any, ...]) -> tuple[Program, Any]:
        placeholders: list[Any] = []
        for i, arg in enumerate(arguments):
            arrays = (
                pt.make_placeholder(name=name, shape=value.shape, dtype=value.dtype)
                for name, value in leaves(f"in_{i}", arg)
            )
            placeholders.append(with_leaves(arg, arrays))

        template = self.function(*placeholders)
        name = getattr(self.function, "__name__", "compiled")
        if not name.isidentifier():  # a lambda, say
            name = "compiled"
        return Program(self.actx, dict(leaves("out", template)), name), template


# }}}


# {{{ the numpy namespace


class LazyNumpyNamespace(BaseFakeNumpyNamespace):
    """What ``actx.np`` offers: pytato's functions, over containers."""

    _elementwise = frozenset({
        "abs", "sqrt", "exp", "log", "log10", "isnan", "real", "imag",
        "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2",
        "sinh", "cosh", "tanh", "maximum", "minimum", "where",
        "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
        "logical_and", "logical_or", "logical_not",
    })  # fmt: skip

    def _get_fake_numpy_linalg_namespace(self) -> BaseFakeNumpyLinalgNamespace:
        return BaseFakeNumpyLinalgNamespace(self._array_context)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in self._elementwise:
            return partial(rec_multimap_array_container, getattr(pt, name))
        raise AttributeError(f"an array context's numpy has no '{name}' here")

    def conjugate(self, array: Any) -> Any:
        """Return the complex conjugate."""
        return rec_map_array_container(pt.conj, array)

    conj = conjugate

    def concatenate(self, arrays: Iterable[Any], axis: int = 0) -> Any:
        """Join arrays, or the arrays in containers, along *axis*."""
        return rec_multimap_array_container(
            lambda *args: pt.concatenate(args, axis), *arrays
        )

    def stack(self, arrays: Iterable[Any], axis: int = 0) -> Any:
        """Join arrays, or the arrays in containers, along a new axis."""
        return rec_multimap_array_container(lambda *args: pt.stack(args, axis), *arrays)

    def reshape(self, array: Any, newshape: tuple[int, ...]) -> Any:
        """Return *array* in another shape."""
        return rec_map_array_container(lambda ary: pt.reshape(ary, newshape), array)

    def transpose(self, array: Any, axes: tuple[int, ...] | None = None) -> Any:
        """Return *array* with its axes permuted."""
        return rec_map_array_container(lambda ary: pt.transpose(ary, axes), array)

    def sum(self, array: pt.Array, axis: int | None = None) -> pt.Array:
        """Return the sum of the entries, of all or along *axis*."""
        return pt.sum(array, axis)

    def max(self, array: pt.Array, axis: int | None = None) -> pt.Array:
        """Return the largest entry, of all or along *axis*."""
        return pt.amax(array, axis)

    def min(self, array: pt.Array, axis: int | None = None) -> pt.Array:
        """Return the smallest entry, of all or along *axis*."""
        return pt.amin(array, axis)


# }}}


class LazyArrayContext(ArrayContext):
    """An array context whose arrays are pytato expressions.

    :arg queue: where the programs run
    """

    def __init__(self, queue: cl.CommandQueue) -> None:
        super().__init__()
        self.queue = queue

    def _get_fake_numpy_namespace(self) -> LazyNumpyNamespace:
        return LazyNumpyNamespace(self)

    def clone(self) -> LazyArrayContext:
        """Return a context of the same kind on the same queue."""
        return type(self)(self.queue)

    # {{{ what subclasses override

    def transform_dag(self, dag: pt.DictOfNamedArrays) -> pt.DictOfNamedArrays:
        """Return *dag* in the form in which code is generated for it."""
        return dag

    def transform_loopy_program(self, t_unit: lp.TranslationUnit) -> lp.TranslationUnit:
        """Return *t_unit* in the form in which it is compiled."""
        # The released pytato leaves the order of a reduction and what it reads to a
        # heuristic of loopy's, which warns each time.
        kernel = t_unit.default_entrypoint
        silenced = [*kernel.silenced_warnings, "single_writer_after_creation"]
        return t_unit.with_kernel(kernel.copy(silenced_warnings=silenced))

    # }}}

    # {{{ making arrays

    def zeros(self, shape: Any, dtype: Any) -> pt.Array:
        """Return zeros."""
        return pt.zeros(shape, dtype)

    def empty(self, shape: Any, dtype: Any) -> pt.Array:
        """Return zeros: an expression is never without a value."""
        return self.zeros(shape, dtype)

    def from_numpy(self, array: Any) -> Any:
        """Return an expression for the values of *array*, or of those in it."""

        def transfer(ary: np.ndarray) -> pt.Array:
            in_order = np.asarray(ary, order="C")
            return pt.make_data_wrapper(cl_array.to_device(self.queue, in_order))

        return self._map(transfer, array)

    def thaw(self, array: Any) -> Any:
        """Return an expression for frozen values."""
        return self._map(
            lambda ary: pt.make_data_wrapper(ary.with_queue(self.queue)), array
        )

    # }}}

    # {{{ asking for values

    def freeze(self, array: Any) -> Any:
        """Evaluate *array*, all that is in it in one program.

        Every call builds a program, unless the values are there already: what is
        evaluated often belongs into a function that is compiled.
        """
        named = dict(leaves("frozen", array))
        values = {
            name: ary.data
            for name, ary in named.items()
            if isinstance(ary, pt.array.DataWrapper)
        }
        if lazy := {name: ary for name, ary in named.items() if name not in values}:
            values |= Program(self, lazy, "frozen_array")()
        return with_leaves(array, (values[name].with_queue(None) for name in named))

    def to_numpy(self, array: Any) -> Any:
        """Evaluate *array* and return the values as numpy arrays."""
        return self._map(lambda ary: ary.get(self.queue), self.freeze(array))

    def on_device(self, value: Any) -> cl_array.Array:
        """Return a single array or number as a program takes it."""
        if isinstance(value, pt.Array):
            return self.freeze(value).with_queue(self.queue)
        return cl_array.to_device(self.queue, np.array(value))

    def compile(self, function: Callable[..., Any]) -> CompiledFunction:
        """Return *function* as one that is traced once and then runs as one kernel."""
        return CompiledFunction(self, function)

    # }}}

    # {{{ operations

    def einsum(
        self,
        spec: str,
        *args: pt.Array,
        arg_names: tuple[str, ...] | None = None,
        tagged: tuple[Tag, ...] = (),
    ) -> pt.Array:
        """Return the Einstein summation *spec*; the names and tags have no effect."""
        return pt.einsum(spec, *args)

    def call_loopy(
        self, program: lp.TranslationUnit, **kwargs: Any
    ) -> Mapping[str, pt.Array]:
        """Return the results of a loopy program, whose sizes must be given."""
        return call_loopy(program, kwargs)

    def tag(self, tags: Tag | Iterable[Tag], array: Any) -> Any:
        """Return *array* with *tags*, of which one has an effect.

        What is tagged as a common subexpression is stored.  (The released pytato
        stores what is named and inlines everything else, whatever its tags.)
        """
        if CommonSubexpressionTag() not in normalize_tags(tags):
            return array
        return self._map(
            lambda ary: pt.make_dict_of_named_arrays({"stored": ary})["stored"], array
        )

    def tag_axis(self, iaxis: int, tags: Tag | Iterable[Tag], array: Any) -> Any:
        """Return *array*: axes of the released pytato take no tags."""
        return array

    # }}}

    @staticmethod
    def _map(function: Callable[[Any], Any], array: Any) -> Any:
        return with_leaves(array, (function(ary) for _, ary in leaves("", array)))


def main() -> None:
    """Evaluate a small expression lazily, then as a compiled function."""
    actx = LazyArrayContext(cl.CommandQueue(cl.create_some_context(interactive=False)))

    def smooth_step(x: pt.Array, width: float) -> pt.Array:
        return 0.5 * (1 + actx.np.tanh(x / width))

    values = np.linspace(-1, 1, 11)
    x = actx.from_numpy(values)
    expected = 0.5 * (1 + np.tanh(values / 0.25))

    lazy = actx.to_numpy(smooth_step(x, 0.25))
    compiled = actx.to_numpy(actx.compile(smooth_step)(x, 0.25))

    print(f"largest value {lazy.max():.6f}")
    if not (np.allclose(lazy, expected) and np.allclose(compiled, expected)):
        raise SystemExit("the array context is wrong")


if __name__ == "__main__":
    main()
