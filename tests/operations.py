"""Every public way of the host to make an array, each called on one line.

``at()`` records the line that calls it: with ``traceback``, nothing of ours.
"""

from __future__ import annotations

import functools
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import loopy as lp
import numpy as np
import pytato as pt
import pytato.array
import pytato.loopy

import pytato_provenance


if TYPE_CHECKING:
    from collections.abc import Callable

pytato_provenance.mend_released_pytato()

IS_RELEASED = not hasattr(pt, "trace_call")

Line = tuple[str, "int | None", str]

_lines: list[Line] = []


def at(frame: int = -2) -> None:
    """Note the calling line."""
    summary = traceback.extract_stack()[frame]
    _lines.append((summary.filename, summary.lineno, summary.name))


def lines_of(call: Callable[[], Any]) -> tuple[Any, list[Line]]:
    """The result of *call*, and the lines that it noted."""
    _lines.clear()
    return call(), list(_lines)


def site_beside(node: Any) -> Any:
    """The site of any node, containers included."""
    from pytato_provenance.tags import site_of
    return site_of(node)


@dataclass
class Operation:
    """A public way, or several that are alike."""

    covers: tuple[str, ...]
    """``pytato.sin``, ``Array.__add__``, ..."""
    variant: str
    call: Callable[[Any], Any]

    def __str__(self) -> str:
        name = self.covers[0]
        return f"{name}[{self.variant}]" if self.variant else name


@dataclass
class Table:
    """Operations of one kind."""

    operations: list[Operation] = field(default_factory=list)

    def __call__(self, *covers: str, call: Callable[[Any], Any], variant: str = "",
                 when: bool = True) -> None:
        if when:
            self.operations.append(Operation(covers, variant, call))


MAKES = Table()
"""New nodes, all created at the calling line."""

GIVES_BACK = Table()
"""No new node: what comes back was there before."""

TAKES_OVER = Table()
"""New nodes that take the site of another node, by construction."""

REFUSES = Table()
"""The host itself raises: what it does not support, or an oversight of its own."""

TABLES = (MAKES, GIVES_BACK, TAKES_OVER, REFUSES)


class Inputs:
    """What operations work on."""

    def __init__(self) -> None:
        placeholder = functools.partial(pt.make_placeholder, dtype=np.float64)
        self.x = placeholder(name="x", shape=(4, 6))
        self.y = placeholder(name="y", shape=(4, 6))
        self.v = placeholder(name="v", shape=(6,))
        self.w = placeholder(name="w", shape=(6,))
        self.s = placeholder(name="s", shape=())
        self.square = placeholder(name="square", shape=(6, 6))
        self.z = pt.make_placeholder(name="z", shape=(4, 6), dtype=np.complex128)
        self.i = pt.make_placeholder(name="i", shape=(6,), dtype=np.int64)
        self.j = pt.make_placeholder(name="j", shape=(6,), dtype=np.int64)
        self.b = pt.make_placeholder(name="b", shape=(6,), dtype=np.bool_)
        self.n = pt.make_size_param("n")
        self.vn = placeholder(name="vn", shape=(self.n,))
        self.lam = self.x + 1
        self.total = pt.sum(self.x, axis=1)
        self.names = pt.make_dict_of_named_arrays({"a": self.lam, "b": self.total})
        self.kernel = lp.make_kernel(
            "{[i]: 0<=i<6}", "twice[i] = 2*given[i]\nthrice[i] = 3*given[i]",
            name="times", lang_version=(2018, 2))
        if __debug__ or IS_RELEASED:  # else the development host's call_loopy raises
            self.loopy_call = pytato.loopy.call_loopy(self.kernel, {"given": self.v})
        self.matrix = pt.einsum("ij,j->i", self.x, self.v)
        if not IS_RELEASED:
            self.csr = pt.make_csr_matrix(
                (6, 6), self.w,
                pt.make_placeholder(name="cols", shape=(6,), dtype=np.int32),
                pt.make_placeholder(name="rows", shape=(7,), dtype=np.int32))
            self.csr_product = pt.sparse_matmul(self.csr, self.v)
            self.send = pt.make_distributed_send(self.v, dest_rank=1, comm_tag="tag")
            self.traced = pt.trace_call(double_and_square, self.v)[0]._container
            self.function = self.traced.function


def double_and_square(v: Any) -> tuple[Any, Any]:
    return v + v, v * v


def foreign_tag() -> Any:
    from pytools.tag import Tag

    class Foreign(Tag):
        pass

    return Foreign()


FOREIGN = foreign_tag()
KEYWORDS: dict[str, Any] = {} if IS_RELEASED else {
    "axes": (), "tags": frozenset()}


def axes(ndim: int) -> dict[str, Any]:
    """What the constructors of the development host ask for."""
    return {} if IS_RELEASED else {
        "axes": pytato.array._get_default_axes(ndim), "tags": frozenset()}


def mapping(**items: Any) -> Any:
    """A mapping as the host's constructors want it."""
    if IS_RELEASED:
        return items
    from constantdict import constantdict
    return constantdict(items)


def descriptions() -> dict[str, Any]:
    return {} if IS_RELEASED else {"var_to_reduction_descr": mapping()}


def _asserts_about_logical_not() -> bool:
    try:
        pt.logical_not(pt.make_placeholder(name="b", shape=(), dtype=np.bool_))
    except AssertionError:
        return True
    return False


def calling(name: str, call: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """For functions that are called alike."""
    return lambda a: call(getattr(pt, name), a)


# {{{ functions

for _name in ("sqrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh",
              "tanh", "exp", "log", "log10", "isnan"):
    MAKES("pytato." + _name, call=calling(_name, lambda f, a: (at(), f(a.x))))
for _name in ("abs", "conj", "real", "imag"):
    MAKES("pytato." + _name, call=calling(_name, lambda f, a: (at(), f(a.z))),
          variant="complex")
for _name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    MAKES("pytato." + _name, call=calling(_name, lambda f, a: (at(), f(a.x, a.y))))
    MAKES("pytato." + _name, call=calling(_name, lambda f, a: (at(), f(a.x, 3))),
          variant="scalar")
for _name in ("logical_or", "logical_and"):
    MAKES("pytato." + _name, call=calling(_name, lambda f, a: (at(), f(a.b, a.b))))
for _name in ("sum", "amax", "amin", "prod"):
    MAKES("pytato." + _name, call=calling(_name, lambda f, a: (at(), f(a.x))))
    MAKES("pytato." + _name, call=calling(_name, lambda f, a: (at(), f(a.x, axis=1))),
          variant="axis")
for _name in ("maximum", "minimum"):
    MAKES("pytato." + _name, call=calling(_name, lambda f, a: (at(), f(a.x, a.y))))
for _name in ("zeros", "ones"):
    MAKES("pytato." + _name, call=calling(_name, lambda f, a: (at(), f((3, 4)))))

MAKES("pytato.abs", call=lambda a: (at(), pt.abs(a.x)))
MAKES("pytato.imag", call=lambda a: (at(), pt.imag(a.x)), variant="real")
MAKES("pytato.arctan2", call=lambda a: (at(), pt.arctan2(a.x, a.y)))
(REFUSES if _asserts_about_logical_not() else MAKES)(
    "pytato.logical_not", call=lambda a: (at(), pt.logical_not(a.b)))
MAKES("pytato.where", call=lambda a: (at(), pt.where(a.b, a.v, a.w)))
MAKES("pytato.where", call=lambda a: (at(), pt.where(a.b, a.v, 0)), variant="scalar")
MAKES("pytato.full", call=lambda a: (at(), pt.full((3, 4), 7.5, dtype=float)))
MAKES("pytato.matmul", call=lambda a: (at(), pt.matmul(a.x, a.square)))
MAKES("pytato.matmul", call=lambda a: (at(), pt.matmul(a.x, a.v)), variant="vector")
MAKES("pytato.matmul", call=lambda a: (at(), pt.matmul(a.v, a.square)),
      variant="from the left")
MAKES("pytato.matmul", call=lambda a: (at(), pt.matmul(a.v, a.w)), variant="vectors")
MAKES("pytato.einsum", call=lambda a: (at(), pt.einsum("ij,jk->ik", a.x, a.square)))
MAKES("pytato.roll", call=lambda a: (at(), pt.roll(a.x, 2, axis=1)))
MAKES("pytato.transpose", call=lambda a: (at(), pt.transpose(a.x)))
MAKES("pytato.stack", call=lambda a: (at(), pt.stack([a.x, a.y])))
MAKES("pytato.concatenate", call=lambda a: (at(), pt.concatenate([a.x, a.y], axis=1)))
MAKES("pytato.concatenate",
      call=lambda a: (at(), pt.concatenate([a.vn, a.vn]).shape[0] * 2),
      variant="symbolic shape")
MAKES("pytato.reshape", call=lambda a: (at(), pt.reshape(a.x, (8, 3))))
MAKES("pytato.make_placeholder", variant="placeholder",
      call=lambda a: (at(), pt.make_placeholder(name="p", shape=(2,), dtype=np.int32)))
MAKES("pytato.make_placeholder", variant="symbolic shape",
      call=lambda a: (at(), pt.make_placeholder(name="p", shape=(a.n+1,), dtype=float)))
MAKES("pytato.make_size_param", call=lambda a: (at(), pt.make_size_param("m")))
MAKES("pytato.make_data_wrapper",
      call=lambda a: (at(), pt.make_data_wrapper(np.eye(3))))
MAKES("pytato.array.make_index_lambda",
      call=lambda a: (at(), pytato.array.make_index_lambda(
          3, mapping(), shape=(2,), dtype=np.dtype(np.float64))))

MAKES("pytato.loopy.call_loopy", "LoopyCall.__getitem__",
      call=lambda a: (at(), pytato.loopy.call_loopy(a.kernel, {"given": a.v})["twice"]))
MAKES("pytato.loopy.call_loopy", variant="a result asked for elsewhere",
      call=lambda a: _later(at(), pytato.loopy.call_loopy(a.kernel, {"given": a.v})))


def _later(_: None, call: Any) -> Any:
    return call["thrice"]


def _csr_with_its_arrays(a: Any) -> Any:
    zeros, six = pt.zeros, (6, 6)
    at(); return pt.make_csr_matrix(six, a.w + 1, zeros(6, int), zeros(7, int))  # noqa: E702


def _parameters(v: Any, w: Any) -> tuple[Any, Any]:
    return v, w


if not IS_RELEASED:
    for _name in ("all", "any"):
        MAKES("pytato." + _name, call=calling(_name, lambda f, a: (at(), f(a.b))))
        MAKES("Array." + _name, call=lambda a, n=_name: (at(), getattr(a.b, n)()))
    for _name in ("zeros_like", "ones_like"):
        MAKES("pytato." + _name, call=calling(_name, lambda f, a: (at(), f(a.x))))
    MAKES("pytato.arange", call=lambda a: (at(), pt.arange(2, 9, dtype=int)))
    MAKES("pytato.eye", call=lambda a: (at(), pt.eye(4)))
    MAKES("pytato.dot", call=lambda a: (at(), pt.dot(a.v, a.w)))
    MAKES("pytato.dot", call=lambda a: (at(), pt.dot(a.x, a.v)), variant="matrix")
    MAKES("pytato.dot", call=lambda a: (at(), pt.dot(a.x, 3)), variant="scalar")
    MAKES("pytato.vdot", call=lambda a: (at(), pt.vdot(a.z, a.z)))
    MAKES("pytato.broadcast_to", call=lambda a: (at(), pt.broadcast_to(a.v, (4, 6))))
    MAKES("pytato.squeeze", call=lambda a: (at(), pt.squeeze(a.x[:1])))
    MAKES("pytato.expand_dims", call=lambda a: (at(), pt.expand_dims(a.x, 1)))
    MAKES("pytato.pad", call=lambda a: (at(), pt.pad(a.x, 2)))
    MAKES("pytato.pad", variant="symbolic shape",
          call=lambda a: (at(), pt.pad(a.vn, 1)))
    MAKES("pytato.sparse_matmul", call=lambda a: (at(), pt.sparse_matmul(a.csr, a.v)))
    MAKES("SparseMatrix.__matmul__", call=lambda a: (at(), a.csr @ a.v))
    MAKES("pytato.make_csr_matrix", call=_csr_with_its_arrays)
    MAKES("pytato.make_distributed_recv",
          call=lambda a: (at(), pt.make_distributed_recv(1, "t", (3,), np.float64)))
    MAKES("pytato.trace_call", "FunctionDefinition.__call__", variant="parameters",
          call=lambda a: (at(), pt.trace_call(_parameters, a.v, a.w)))

# }}}


# {{{ operators, methods, properties

_BINARY = {
    "add": lambda a, b: (at(), a + b), "sub": lambda a, b: (at(), a - b),
    "mul": lambda a, b: (at(), a * b), "truediv": lambda a, b: (at(), a / b),
    "pow": lambda a, b: (at(), a ** b), "floordiv": lambda a, b: (at(), a // b),
    "mod": lambda a, b: (at(), a % b), "and": lambda a, b: (at(), a & b),
    "or": lambda a, b: (at(), a | b), "xor": lambda a, b: (at(), a ^ b),
}

for _name, _operator in _BINARY.items():
    if not hasattr(pt.Array, f"__{_name}__"):
        continue
    _left, _right = ("i", "j") if _name in ("and", "or", "xor") else ("x", "y")
    MAKES(f"Array.__{_name}__", variant="arrays",
          call=lambda a, f=_operator, p=_left, q=_right: f(
              getattr(a, p), getattr(a, q)))
    MAKES(f"Array.__{_name}__", variant="scalar on the right",
          call=lambda a, f=_operator, p=_left: f(getattr(a, p), 3))
    MAKES(f"Array.__r{_name}__", variant="scalar on the left",
          call=lambda a, f=_operator, q=_right: f(3, getattr(a, q)))
    MAKES(f"Array.__r{_name}__", variant="called",
          call=lambda a, n=_name, p=_left, q=_right: (
              at(), getattr(getattr(a, p), f"__r{n}__")(getattr(a, q))))

MAKES("Array.__neg__", call=lambda a: (at(), -a.x))
MAKES("Array.__neg__", call=lambda a: (at(), -a.s), variant="no axes")
MAKES("Array.__abs__", call=lambda a: (at(), abs(a.x)))
MAKES("Array.__matmul__", call=lambda a: (at(), a.x @ a.square))
MAKES("Array.__rmatmul__", call=lambda a: (at(), a.square.__rmatmul__(a.x)))
MAKES("Array.T", call=lambda a: (at(), a.x.T))
MAKES("Array.real", call=lambda a: (at(), a.z.real))
MAKES("Array.imag", call=lambda a: (at(), a.z.imag))
MAKES("Array.imag", call=lambda a: (at(), a.x.imag), variant="real")
MAKES("Array.size", call=lambda a: (at(), pt.concatenate([a.vn, a.vn]).size * 2),
      variant="symbolic shape")
MAKES("Array.__getitem__", call=lambda a: (at(), a.x[1:3]), variant="slice")
MAKES("Array.__getitem__", call=lambda a: (at(), a.x[2]), variant="integer")
MAKES("Array.__getitem__", call=lambda a: (at(), a.x[2, 1:4]), variant="both")
MAKES("Array.__add__", call=lambda a: (at(), a.vn + 1), variant="symbolic shape")

if not IS_RELEASED:
    MAKES("Array.__getitem__", call=lambda a: (at(), a.x[..., ::2]), variant="stride")
    MAKES("Array.__getitem__", call=lambda a: (at(), a.v[a.i]), variant="advanced")
    MAKES("Array.__getitem__", call=lambda a: (at(), a.square[a.i, a.j]),
          variant="contiguous advanced")
    MAKES("Array.__getitem__", variant="not contiguous advanced",
          call=lambda a: (at(), pt.stack([a.square] * 6)[a.i, :, a.j]))
    MAKES("Array.transpose", call=lambda a: (at(), a.x.transpose((1, 0))))
    MAKES("Array.reshape", call=lambda a: (at(), a.x.reshape(8, 3)))
    MAKES("Array.reshape", call=lambda a: (at(), a.x.reshape((8, 3))), variant="tuple")
    MAKES("Array.astype", call=lambda a: (at(), a.i.astype(np.float32)))
    MAKES("Array.conj", call=lambda a: (at(), a.z.conj()))
    MAKES("FunctionDefinition.get_placeholder", variant="of a function traced here",
          call=lambda a: (at(), pt.trace_call(_parameters, a.v, a.w)[
              0].call.function.get_placeholder("in__pt_1")))

# }}}


# {{{ classes

MAKES("pytato.IndexLambda", call=lambda a: (at(), pt.IndexLambda(
    expr=1, bindings=mapping(), shape=(2,), dtype=np.dtype(np.float64),
    **descriptions(), **axes(1))))
MAKES("pytato.Placeholder", call=lambda a: (at(), pt.Placeholder(
    name="q", shape=(2,), dtype=np.dtype(np.float64), **axes(1))))
MAKES("pytato.NamedArray",
      call=lambda a: (at(), pt.NamedArray(a.names, "a", **axes(2))))
MAKES("pytato.LoopyCall", variant="and a result",
      call=lambda a: (at(), pt.LoopyCall(
          translation_unit=a.loopy_call.translation_unit,
          bindings=a.loopy_call.bindings, entrypoint="times",
          **({} if IS_RELEASED else {"tags": frozenset()}))["twice"]))

if not IS_RELEASED:
    MAKES("pytato.SizeParam", call=lambda a: (at(), pt.SizeParam(name="m", **axes(0))))
    MAKES("pytato.DataWrapper", call=lambda a: (at(), pt.DataWrapper(
        data=np.eye(2), shape=(2, 2), **axes(2))))
    MAKES("pytato.Stack", call=lambda a: (at(), pt.Stack((a.x, a.y), 0, **axes(3))))
    MAKES("pytato.Concatenate",
          call=lambda a: (at(), pt.Concatenate((a.x, a.y), 0, **axes(2))))
    MAKES("pytato.Roll", call=lambda a: (at(), pt.Roll(a.v, 1, 0, **axes(1))))
    MAKES("pytato.AxisPermutation",
          call=lambda a: (at(), pt.AxisPermutation(a.x, (1, 0), **axes(2))))
    MAKES("pytato.Reshape",
          call=lambda a: (at(), pt.Reshape(a.x, (24,), "C", **axes(1))))
    MAKES("pytato.BasicIndex",
          call=lambda a: (at(), pt.BasicIndex(a.x, (0, 1), **axes(0))))
    MAKES("pytato.AdvancedIndexInContiguousAxes",
          call=lambda a: (at(), pt.AdvancedIndexInContiguousAxes(
              a.v, (a.i,), **axes(1))))
    MAKES("pytato.AdvancedIndexInNoncontiguousAxes",
          call=lambda a: (at(), pt.AdvancedIndexInNoncontiguousAxes(
              a.square, (a.i, a.j), **axes(1))))
    MAKES("pytato.Einsum", call=lambda a: (at(), pt.Einsum(
        a.matrix.access_descriptors, a.matrix.args, mapping(), **axes(1))))
    MAKES("pytato.CSRMatmul",
          call=lambda a: (at(), pt.CSRMatmul(matrix=a.csr, array=a.v, **axes(1))))
    MAKES("pytato.DistributedRecv", call=lambda a: (at(), pt.DistributedRecv(
        src_rank=1, comm_tag="t", shape=(2,), dtype=np.dtype(float), **axes(1))))

# }}}


# {{{ an existing array comes back

GIVES_BACK("Array.__pos__", call=lambda a: +a.x)
GIVES_BACK("Array.real", call=lambda a: a.x.real, variant="real")
GIVES_BACK("pytato.real", call=lambda a: pt.real(a.x), variant="real")
GIVES_BACK("pytato.roll", call=lambda a: pt.roll(a.v, 0), variant="by nothing")
GIVES_BACK("Array.shape", call=lambda a: a.vn.shape[0])
GIVES_BACK("pytato.make_dict_of_named_arrays",
           call=lambda a: pt.make_dict_of_named_arrays({"a": a.lam})._data["a"])
GIVES_BACK("pytato.DictOfNamedArrays", call=lambda a: pt.DictOfNamedArrays(
    {"a": a.lam}, **({} if IS_RELEASED else {"tags": frozenset()}))._data["a"])
GIVES_BACK("NamedArray.expr", call=lambda a: a.names["a"].expr)

if not IS_RELEASED:
    GIVES_BACK("pytato.conj", call=lambda a: pt.conj(a.x), variant="real")
    GIVES_BACK("Array.conj", call=lambda a: a.x.conj(), variant="real")
    GIVES_BACK("Array.copy", call=lambda a: a.x.copy().shape and a.x, variant="operand")
    GIVES_BACK("pytato.make_distributed_send", "pytato.DistributedSend",
               call=lambda a: pt.make_distributed_send(a.v, 1, "t").data)
    GIVES_BACK("FunctionDefinition.get_placeholder", variant="of another function",
               call=lambda a: a.function.get_placeholder("in__pt_0"))

# }}}


# {{{ the host raises

REFUSES("Array.tagged", "InputArgumentBase.tagged", when=IS_RELEASED,
        call=lambda a: a.lam.tagged(FOREIGN))
REFUSES("Array.without_tags", "InputArgumentBase.without_tags", when=IS_RELEASED,
        call=lambda a: a.x.without_tags(FOREIGN))
REFUSES("LoopyCallResult.expr", when=IS_RELEASED,
        call=lambda a: a.loopy_call["twice"].expr())
REFUSES("LoopyCallResult.expr", when=not IS_RELEASED,
        call=lambda a: a.loopy_call["twice"].expr)
if not IS_RELEASED:
    REFUSES("NamedCallResult.tagged", call=lambda a: a.traced["_0"].tagged(FOREIGN))
    REFUSES("NamedCallResult.without_tags",
            call=lambda a: a.traced["_0"].without_tags(FOREIGN))
    REFUSES("NamedCallResult.with_tagged_axis",
            call=lambda a: a.traced["_0"].with_tagged_axis(0, FOREIGN))

# }}}


# {{{ another's site

def _entry(a: Any) -> tuple[Any, Any]:
    return a.names["a"], a.lam


def _entry_of_new_container(a: Any) -> tuple[Any, Any]:
    return pt.make_dict_of_named_arrays({"q": a.total})["q"], a.total


TAKES_OVER("DictOfNamedArrays.__getitem__", call=_entry)
TAKES_OVER("pytato.make_dict_of_named_arrays", call=_entry_of_new_container,
           variant="its entry")
TAKES_OVER("LoopyCall.__getitem__", variant="of a call made before",
           call=lambda a: (a.loopy_call["twice"], a.loopy_call))

if not IS_RELEASED:
    TAKES_OVER("pytato.make_distributed_send_ref_holder",
               call=lambda a: (pt.make_distributed_send_ref_holder(a.send, a.x), a.x))
    TAKES_OVER("pytato.staple_distributed_send",
               call=lambda a: (pt.staple_distributed_send(a.v, 1, "t", a.x), a.x))
    TAKES_OVER("pytato.DistributedSendRefHolder",
               call=lambda a: (pt.DistributedSendRefHolder(a.send, a.x), a.x))
    TAKES_OVER("FunctionDefinition.__call__", "pytato.trace_call",
               variant="the callee's return",
               call=lambda a: (a.function(in__pt_0=a.w)[0], a.function.returns["_0"]))
    TAKES_OVER("Call.__getitem__",
               call=lambda a: (pt.function.Call(
                   a.function, mapping(in__pt_0=a.v), tags=frozenset())["_1"],
                   a.function.returns["_1"]))
    TAKES_OVER("Array.copy",
               call=lambda a: (a.lam.copy(tags=frozenset([FOREIGN])), a.lam))
    TAKES_OVER("NamedArray.copy", call=lambda a: (a.names["a"].copy(), a.lam))
    TAKES_OVER("Array.replace_if_different",
               call=lambda a: (a.lam.replace_if_different(tags=frozenset([FOREIGN])),
                               a.lam))
    TAKES_OVER("Array.__replace__", variant="dataclasses.replace",
               call=lambda a: (_replaced(a.lam), a.lam))
    TAKES_OVER("Array.tagged", call=lambda a: (a.lam.tagged(FOREIGN), a.lam))
    TAKES_OVER("Array.without_tags",
               call=lambda a: (a.lam.tagged(FOREIGN).without_tags(FOREIGN), a.lam))
    TAKES_OVER("Array.with_tagged_axis",
               call=lambda a: (a.lam.with_tagged_axis(0, FOREIGN), a.lam))
    TAKES_OVER("IndexLambda.with_tagged_reduction",
               call=lambda a: (a.total.with_tagged_reduction("_r0", FOREIGN), a.total))
    TAKES_OVER("Einsum.with_tagged_reduction",
               call=lambda a: (a.matrix.with_tagged_reduction(
                   next(iter(a.matrix.redn_axis_to_redn_descr)), FOREIGN), a.matrix))
    TAKES_OVER("CSRMatmul.with_tagged_reduction",
               call=lambda a: (a.csr_product.with_tagged_reduction(FOREIGN),
                               a.csr_product))
    TAKES_OVER("pytato.to_index_lambda",
               call=lambda a: (pt.to_index_lambda(a.matrix), a.matrix))


def _replaced(node: Any) -> Any:
    import dataclasses
    return dataclasses.replace(node, tags=frozenset([FOREIGN]))

# }}}
