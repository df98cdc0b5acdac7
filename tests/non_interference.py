"""
One program, run with recording off, on, and switched between any two steps: what can be
seen of it has to be the same.

    python tests/non_interference.py FIRST LAST [--lower]

checks the programs of these seeds, and counts.
"""

from __future__ import annotations

import dataclasses
import random
import re
import sys
import warnings
from typing import TYPE_CHECKING, Any

import loopy as lp
import numpy as np
import pytato as pt
import pytato.transform as tr
import random_dags

import pytato_provenance as prov
from pytato_provenance import copies
from pytato_provenance.transform import ProvenanceCopyMapper, _complete_copy_mapper


if TYPE_CHECKING:
    from collections.abc import Callable


HAS_DEDUPLICATE = hasattr(tr, "deduplicate")


# {{{ what is done to a DAG

def _operand(expr: Any) -> Any:
    return next(iter(expr.bindings.values()))


class Rewriting(_complete_copy_mapper):
    """Makes equal nodes of different ones."""

    def map_index_lambda(self, expr: Any) -> Any:
        if "pytato.c99" in str(expr.expr) and len(expr.bindings) == 1:
            return pt.sin(self.rec(_operand(expr))) * 1.5
        return super().map_index_lambda(expr)

    def map_roll(self, expr: Any) -> Any:
        return pt.roll(self.rec(expr.array), 1, expr.axis)


class RewritingWithMixin(prov.PreserveCreatedAtMixin, Rewriting):
    pass


class AfterRec(_complete_copy_mapper):
    def rec(self, expr: Any) -> Any:
        result = super().rec(expr)
        return result + 1 if type(expr).__name__ == "Einsum" else result


class Forgiving(Rewriting):
    """Takes equal nodes for one on the development host, too."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "err_on_collision": False}
                         if HAS_DEDUPLICATE else {})


def _one_by_one(dag: Any) -> Any:
    mapper = Forgiving()
    return pt.make_dict_of_named_arrays(
        {name: mapper(dag[name].expr) for name in sorted(dag)})


def _transforms() -> list[Callable[[Any], Any]]:
    from pytato.codegen import preprocess

    transforms: list[Callable[[Any], Any]] = [
        lambda dag: Rewriting()(dag), lambda dag: RewritingWithMixin()(dag),
        lambda dag: AfterRec()(dag), lambda dag: ProvenanceCopyMapper()(dag),
        lambda dag: Forgiving()(dag), _one_by_one,
        lambda dag: tr.CopyMapper()(dag),
        lambda dag: preprocess(dag, pt.LoopyPyOpenCLTarget()).outputs]
    if HAS_DEDUPLICATE:
        from host_passes import host_passes
        transforms.extend(
            host_pass.run for name, host_pass in host_passes().items()
            if "distributed" not in name
            and name not in ("to_index_lambda", "preprocess"))
        transforms.extend(3 * [tr.deduplicate])
    return transforms

# }}}


# {{{ what is seen of it

def _plain(value: Any) -> str:
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _field_names(node: Any) -> list[str]:
    if dataclasses.is_dataclass(node):
        return [field.name for field in dataclasses.fields(node)
                if field.name != "non_equality_tags"]
    return sorted(name for name in vars(node)
                  if not name.startswith(("_memoize_dic_", "_provenance_")))


def _seen(*dags: Any) -> tuple[list[Any], list[int]]:
    """What each node of *dags* is, with the nodes beneath it by number; and which have
    the same hash. A node and the copy that stands for it in the result of a transform,
    should the program use both, are one."""
    numbers: dict[int, int] = {}
    found: list[Any] = []
    hashes: list[int] = []
    kinds = prov._host.host().node_types

    def shown(value: Any) -> Any:
        if isinstance(value, kinds):
            return visit(value)
        if isinstance(value, tuple | list):
            return tuple(map(shown, value))
        if isinstance(value, frozenset):
            return tuple(sorted(map(_plain, value)))
        if hasattr(value, "items"):
            return tuple((str(key), shown(item)) for key, item in value.items())
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return tuple((name, shown(getattr(value, name)))
                         for name in _field_names(value))
        return _plain(value)

    def visit(node: Any) -> int:
        key = id(copies._families.get(node) or node)
        if key not in numbers:
            fields = tuple((name, shown(getattr(node, name)))
                           for name in _field_names(node))
            numbers[key] = len(found)
            found.append((type(node).__name__, fields))
            hashes.append(hash(node))
        return numbers[key]

    for dag in dags:
        found.append(visit(dag) if isinstance(dag, kinds) else None)
        hashes.append(0)
    first = {value: hashes.index(value) for value in hashes}
    return found, [first[value] for value in hashes]


def _lowered(dag: Any, seed: int, queue: Any) -> list[Any]:
    program = pt.generate_loopy(random_dags.prepared(dag))
    unit = program.program
    unit = getattr(unit, "t_unit", unit)
    kernel = unit.default_entrypoint
    inputs = {name: value for name, value in random_dags.random_inputs(seed).items()
              if name in kernel.arg_dict}
    _, out = program(queue, **inputs)
    return [
        [insn.id for insn in kernel.instructions],
        [(str(insn), _plain(insn.tags)) for insn in kernel.instructions],
        [(arg.name, _plain(arg.tags)) for arg in kernel.args],
        lp.generate_code_v2(unit).device_code(),
        {name: np.asarray(ary.get() if hasattr(ary, "get") else ary).tobytes()
         for name, ary in sorted(out.items())}]

def _told(error: Exception) -> tuple[str, str]:
    return type(error).__name__, _plain(str(error))[:50]

# }}}


class _Switch:
    """Switches recording on or off before each step, as *bits* say."""

    def __init__(self, bits: Any) -> None:
        self._bits = bits
        self._scope: Any = None

    def __call__(self, step: int) -> None:
        self.leave()
        bit = self._bits(step)
        if bit is not None:
            self._scope = prov.recording(bit)
            self._scope.__enter__()

    def leave(self) -> None:
        if self._scope is not None:
            self._scope.__exit__(None, None, None)
            self._scope = None


def _run(seed: int, switch: _Switch, queue: Any) -> list[Any]:
    rng = random.Random(seed)
    seen: list[Any] = []
    try:
        try:
            dag = random_dags.random_dag(seed, rng.randint(3, 14), switch)
        except Exception as error:
            return [_told(error)]
        seen.append(_seen(dag))
        original = dag
        transforms = _transforms()
        for step in range(rng.randint(0, 3)):
            transform = rng.choice(transforms)
            switch(100 + step)
            before = dag
            try:
                dag = transform(before)
            except Exception as error:
                # What the host refuses, it refuses either way.
                seen.append(_told(error))
            else:
                # Which nodes come out as they went in, too.
                seen.append(_seen(before, dag))
        seen.append(_seen(original))
        switch(200)
        if queue is not None:
            try:
                seen.append(_lowered(dag, seed, queue))
            except Exception as error:
                seen.append(_told(error))
    finally:
        switch.leave()
    return seen


class Checker:
    """Checks programs. A context manager.

    Patching a class a thousand times slows CPython 3.13 down: after some programs "off"
    is a scope that does not record, within a process that does.
    """

    _most_pristine = 40

    def __init__(self, queue: Any = None) -> None:
        self._queue = queue
        self.count = 0

    def __enter__(self) -> Checker:
        return self

    def __exit__(self, *exc_info: object) -> None:
        prov.disable()

    def check(self, seed: int) -> None:
        """
        :raises AssertionError: if something can be seen.
        """
        self.count += 1
        pristine = self.count <= self._most_pristine
        bits = random.Random(-seed - 1)
        options: dict[str, Any] = {"history": bits.random() < 0.3,
                                   "audit": "warn" if bits.random() < 0.2 else None}
        ways = {
            "off": lambda step: None if pristine else False,
            "on": lambda step: None,
            "toggled": lambda step: bits.random() < 0.5}
        seen: dict[str, list[Any]] = {}
        for name, way in ways.items():
            if pristine and name == "off":
                prov.disable()
            else:
                prov.enable(**options)
            seen[name] = _run(seed, _Switch(way), self._queue)
        for name in ("on", "toggled"):
            for number, (expected, got) in enumerate(
                    zip(seen["off"], seen[name], strict=True)):
                assert expected == got, (
                    f"seed {seed}, {name}, step {number} of {len(seen['off'])}, "
                    f"{options}: {_first_difference(expected, got)}")


def _first_difference(one: Any, other: Any) -> str:
    while (isinstance(one, tuple | list) and isinstance(other, tuple | list)
           and len(one) == len(other)):
        one, other = next((a, b) for a, b in zip(one, other, strict=True) if a != b)
    return f"{one!r:.200} became {other!r:.200}"


def main(first: int, last: int, lower: bool) -> None:
    from pytato_provenance import scope

    warnings.simplefilter("ignore")
    prov.mend_released_pytato()
    queue = None
    if lower:
        import pyopencl as cl
        queue = cl.CommandQueue(cl.create_some_context(interactive=False))
    differences = 0
    with Checker(queue) as checker:
        for seed in range(first, last):
            try:
                checker.check(seed)
            except AssertionError as error:
                differences += 1
                print(str(error)[:400], flush=True)
            if scope._warned:
                print(f"seed {seed}: failed inside: {scope._warned}", flush=True)
                scope._warned.clear()
            if checker.count % 500 == 0:
                print(f"{checker.count} programs, {differences} differ", flush=True)
    print(f"all {last - first} programs: {differences} differ", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), "--lower" in sys.argv)
