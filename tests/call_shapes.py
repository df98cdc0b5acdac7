"""Random stacks of all the ways in which Python calls."""

from __future__ import annotations

import contextlib
import functools
import random
import threading
from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Shapes:
    """Random stacks of all the ways in which Python calls; each ends in *leaf*."""

    def __init__(self, seed: int, leaf: Callable[[], Any]) -> None:
        self.random = random.Random(seed)
        self.leaf = leaf
        self.ways = [
            self.plain, self.twice, self.lambda_, self.comprehension, self.generator,
            self.nested_generator, self.decorated, self.executed, self.sorted_,
            self.recursive, self.property_, self.operator, self.coroutine, self.throw,
            self.closure, self.reduced, self.class_body, self.manager, self.thread,
        ]

    def call(self, depth: int) -> None:
        if depth == 0:
            self.leaf()
        else:
            self.random.choice(self.ways)(depth - 1)

    def plain(self, depth: int) -> None:
        self.call(depth)

    def twice(self, depth: int) -> None:
        self.call(depth), self.call(0)

    def lambda_(self, depth: int) -> None:
        (lambda: self.call(depth))()

    def comprehension(self, depth: int) -> None:
        [self.call(depth) for _ in range(self.random.randint(1, 2))]

    def generator(self, depth: int) -> None:
        any(self.call(depth) for _ in range(2))

    def nested_generator(self, depth: int) -> None:
        def inner() -> Iterator[None]:
            yield self.call(depth)

        def outer() -> Iterator[None]:
            yield from inner()
            yield self.call(0)

        for _ in outer():
            self.call(0)

    def decorated(self, depth: int) -> None:
        def decorate(function: Callable[..., None]) -> Callable[..., None]:
            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> None:
                return function(*args, **kwargs)
            return wrapper

        @decorate
        def decorated(depth: int = 0) -> None:
            self.call(depth)

        decorated(depth=depth)

    def executed(self, depth: int) -> None:
        pad = "\n" * self.random.randint(0, 3)
        exec(f"{pad}def f():\n    return self.call(depth)\nf()",
             {"self": self, "depth": depth})

    def sorted_(self, depth: int) -> None:
        sorted([2, 1], key=lambda _: self.call(depth) or 0)

    def recursive(self, depth: int) -> None:
        def down(levels: int) -> None:
            if levels:
                down(levels - 1)
            else:
                self.call(depth)

        down(self.random.choice([0, 1, 2, 300]))

    def property_(self, depth: int) -> None:
        class Thing:
            @property
            def value(thing) -> None:  # noqa: N805
                self.call(depth)

        Thing().value  # noqa: B018

    def operator(self, depth: int) -> None:
        class Thing:
            def __add__(thing, other: object) -> None:  # noqa: N805
                self.call(depth)

            def __getitem__(thing, index: object) -> None:  # noqa: N805
                self.call(depth)

        thing = Thing()
        thing + thing; thing[0]  # noqa: E702

    def coroutine(self, depth: int) -> None:
        async def inner() -> None:
            self.call(depth)

        async def outer() -> None:
            await inner()

        with contextlib.suppress(StopIteration):
            outer().send(None)

    def throw(self, depth: int) -> None:
        def catching() -> Iterator[None]:
            try:
                yield
            except ValueError:
                self.call(depth)
                yield

        generator = catching()
        next(generator)
        generator.throw(ValueError)  # type: ignore

    def closure(self, depth: int) -> None:
        def one() -> None:
            def two() -> None:
                self.call(depth)
            two()
        one()

    def reduced(self, depth: int) -> None:
        functools.reduce(lambda _, __: self.call(depth), [1, 2, 3])

    def class_body(self, depth: int) -> None:
        class _Body:
            value = self.call(depth)

    def thread(self, depth: int) -> None:
        failures: list[BaseException] = []

        def run() -> None:
            try:
                self.call(depth)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if failures:
            raise failures[0]

    def manager(self, depth: int) -> None:
        class Manager:
            def __enter__(manager) -> None:  # noqa: N805
                self.call(depth)

            def __exit__(manager, *_: object) -> None:  # noqa: N805
                self.call(depth)

        with Manager():
            pass
