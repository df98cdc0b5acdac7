"""
Small random programs, one array operation a line, and what each statement of theirs
must be made of: found from the text alone, without asking pytato.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any


Shape = tuple[int, ...]


@dataclass
class Line:
    """
    .. attribute:: code

        With ``{0}`` and so on for the operands.

    .. attribute:: is_stored

        Whether the result is stored wherever it occurs.
    """

    code: str
    operands: tuple[int, ...]
    shape: Shape
    is_input: bool = False
    is_stored: bool = False
    reduces: bool = False


class RandomProgram:
    """
    .. attribute:: lines
    .. attribute:: outputs

        Output names to numbers of lines.
    """

    def __init__(self, seed: int, *, size: int = 14, can_tag: bool = False) -> None:
        self._random = random.Random(seed)
        self._can_tag = can_tag
        self.seed = seed
        self.lines: list[Line] = []
        for i in range(2):
            self.lines.append(Line(
                f"pt.make_placeholder(name='in{i}', shape=(3, 4), dtype=np.float64)",
                (), (3, 4), is_input=True))
        while len(self.lines) < size:
            self._add()
        count = self._random.randint(1, 4)
        chosen = self._random.sample(range(2, size), count)
        if self._random.random() < 0.2:
            chosen.append(self._random.choice([0, *chosen]))
        self.outputs = {f"out{i}": number for i, number in enumerate(chosen)}

    # {{{ making

    def _pick(self, *dims: int) -> int | None:
        candidates = [i for i, line in enumerate(self.lines)
                      if not dims or len(line.shape) in dims]
        return self._random.choice(candidates[-6:]) if candidates else None

    def _add(self) -> None:
        kind = self._random.choice([
            "unary", "unary", "binary", "binary", "scalar", "transpose", "roll",
            "slice", "concatenate", "reshape", "product", "einsum", "sum", "stack",
            "again", "again", "broadcast"])
        getattr(self, f"_add_{kind}")()

    def _put(self, code: str, operands: tuple[int, ...], shape: Shape, *,
             reduces: bool = False) -> None:
        stored = self._can_tag and self._random.random() < 0.15
        if stored:
            code = f"({code}).tagged(pt.tags.ImplStored())"
        self.lines.append(Line(code, operands, shape, is_stored=stored,
                               reduces=reduces))

    def _same_shape(self, number: int) -> int:
        shape = self.lines[number].shape
        return self._random.choice(
            [i for i, line in enumerate(self.lines) if line.shape == shape])

    def _add_unary(self) -> None:
        number = self._pick()
        assert number is not None
        code = self._random.choice(["pt.sin({0})", "pt.exp({0})", "3*{0}"])
        self._put(code, (number,), self.lines[number].shape)

    def _add_scalar(self) -> None:
        number = self._pick()
        assert number is not None
        self._put(f"{{0}} + {self._random.randint(1, 3)}", (number,),
                  self.lines[number].shape)

    def _add_binary(self) -> None:
        number = self._pick()
        assert number is not None
        code = self._random.choice(["{0} + {1}", "{0} * {1}", "{0} - {1}"])
        self._put(code, (number, self._same_shape(number)), self.lines[number].shape)

    def _add_transpose(self) -> None:
        number = self._pick(2)
        if number is not None:
            self._put("{0}.T", (number,), self.lines[number].shape[::-1])

    def _add_roll(self) -> None:
        number = self._pick(1, 2)
        if number is not None:
            self._put("pt.roll({0}, 1, axis=0)", (number,), self.lines[number].shape)

    def _add_slice(self) -> None:
        number = self._pick(1, 2)
        if number is not None and self.lines[number].shape[0] > 1:
            shape = self.lines[number].shape
            rest = ", :" * (len(shape) - 1)
            self._put(f"{{0}}[0:{shape[0] - 1}{rest}]", (number,),
                      (shape[0] - 1, *shape[1:]))

    def _add_concatenate(self) -> None:
        number = self._pick(1, 2)
        if number is not None:
            shape = self.lines[number].shape
            self._put("pt.concatenate([{0}, {1}], axis=0)",
                      (number, self._same_shape(number)), (2*shape[0], *shape[1:]))

    def _add_reshape(self) -> None:
        number = self._pick(2)
        if number is not None:
            shape = self.lines[number].shape
            self._put(f"pt.reshape({{0}}, ({shape[0] * shape[1]},))", (number,),
                      (shape[0] * shape[1],))

    def _add_product(self) -> None:
        number = self._pick(2)
        if number is not None:
            shape = self.lines[number].shape
            others = [i for i, line in enumerate(self.lines)
                      if len(line.shape) == 2 and line.shape[0] == shape[1]]
            if others:
                other = self._random.choice(others)
                self._put("{0} @ {1}", (number, other),
                          (shape[0], self.lines[other].shape[1]), reduces=True)

    def _add_einsum(self) -> None:
        number = self._pick(2)
        if number is not None:
            other = self._same_shape(number)
            self._put("pt.einsum('ij,ik->jk', {0}, {1})", (number, other),
                      (self.lines[number].shape[1],)*2, reduces=True)

    def _add_sum(self) -> None:
        number = self._pick(1, 2, 3)
        if number is not None:
            self._put("pt.sum({0}, axis=0)", (number,), self.lines[number].shape[1:],
                      reduces=True)

    def _add_stack(self) -> None:
        number = self._pick(1, 2)
        if number is not None:
            self._put("pt.stack([{0}, {1}])", (number, self._same_shape(number)),
                      (2, *self.lines[number].shape))

    def _add_broadcast(self) -> None:
        scalar = self._pick(0)
        number = self._pick()
        if scalar is not None and number is not None:
            self._put("{0} + {1}", (number, scalar), self.lines[number].shape)

    def _add_again(self) -> None:
        number = self._random.randrange(len(self.lines))
        line = self.lines[number]
        if not line.is_input:
            self.lines.append(Line(line.code, line.operands, line.shape,
                                   is_stored=line.is_stored, reduces=line.reduces))

    # }}}

    @property
    def filename(self) -> str:
        return f"<random {self.seed}>"

    @property
    def source(self) -> str:
        names = [f"v{i}" for i in range(len(self.lines))]
        return "\n".join(
            f"{name} = {line.code.format(*(names[i] for i in line.operands))}"
            for name, line in zip(names, self.lines, strict=True))

    def run(self, namespace: dict[str, Any]) -> dict[str, Any]:
        """
        :returns: the outputs.
        """
        import linecache
        # So that the lines can be shown.
        linecache.cache[self.filename] = (
            len(self.source), None, self.source.splitlines(keepends=True),
            self.filename)
        exec(compile(self.source, self.filename, "exec"), namespace)
        return {name: namespace[f"v{i}"] for name, i in self.outputs.items()}

    # {{{ what must come out

    def classes(self) -> list[int]:
        """
        :returns: for each line the number of the first one that makes an equal array.
        """
        first: dict[Any, int] = {}
        classes: list[int] = []
        for number, line in enumerate(self.lines):
            key = ((number,) if line.is_input
                   else (line.code, *(classes[i] for i in line.operands)))
            classes.append(first.setdefault(key, number))
        return classes

    def expected(self, *, reductions_are_stored: bool) -> dict[str, set[int]]:
        """
        :returns: for each output the numbers, from 1, of the lines that its statement
            evaluates, if it is not a copy; and for each other stored array too, under
            the number of the line.
        """
        classes = self.classes()
        same: dict[int, set[int]] = {}
        for number, representative in enumerate(classes):
            # Lines that no output needs have no say.
            if number in self._needed():
                same.setdefault(representative, set()).add(number + 1)
        output_classes = {classes[i] for i in self.outputs.values()}

        def is_stored(representative: int) -> bool:
            line = self.lines[representative]
            return (line.is_input or representative in output_classes
                    or line.is_stored or (reductions_are_stored and line.reduces))

        def fused(representative: int) -> set[int]:
            found = set(same[representative])
            for operand in self.lines[representative].operands:
                if not is_stored(classes[operand]):
                    found |= fused(classes[operand])
            return found

        expected = {name: fused(classes[i]) for name, i in self.outputs.items()}
        expected.update(
            (str(representative), fused(representative)) for representative in same
            if is_stored(representative) and representative not in output_classes
            and not self.lines[representative].is_input)
        return expected

    def _needed(self) -> set[int]:
        needed: set[int] = set()
        pending = list(self.outputs.values())
        while pending:
            number = pending.pop()
            if number not in needed:
                needed.add(number)
                pending.extend(self.lines[number].operands)
        return needed

    def lines_of_array(self, name: str) -> set[int]:
        """
        :returns: the numbers, from 1, of the lines that make an array equal to output
            *name*.
        """
        classes = self.classes()
        return {i + 1 for i in self._needed()
                if classes[i] == classes[self.outputs[name]]}

    # }}}
