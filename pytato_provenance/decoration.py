"""
Running functions of every kind within a scope.

.. autofunction:: decorated
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager
from typing import Any, TypeVar


F = TypeVar("F", bound=Callable[..., Any])

Scopes = Callable[[], AbstractContextManager[Any]]
"""Makes a scope: a new one for each call, since calls nest and run in threads."""


def decorated(function: F, scope: Scopes) -> F:
    """
    :arg function: a function, coroutine function or generator function of either kind.
    :arg scope: makes the scopes to run it in. A generator runs each of its steps in one
        of its own: nothing of it is open while the generator is suspended.
    :returns: a function of the same name and arguments.
    """
    if inspect.iscoroutinefunction(function):
        make = _for_coroutines
    elif inspect.isasyncgenfunction(function):
        make = _for_async_generators
    elif inspect.isgeneratorfunction(function):
        make = _for_generators
    else:
        make = _for_functions
    return functools.wraps(function)(make(function, scope))  # type: ignore[return-value]


def _for_functions(function: Callable[..., Any], scope: Scopes) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with scope():
            return function(*args, **kwargs)

    return wrapper


def _for_coroutines(function: Callable[..., Any], scope: Scopes) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        with scope():
            return await function(*args, **kwargs)

    return wrapper


def _for_generators(function: Callable[..., Any], scope: Scopes) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return _resumed_in(scope, function(*args, **kwargs))

    return wrapper


def _for_async_generators(function: Callable[..., Any], scope: Scopes
                          ) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return _resumed_in_async(scope, function(*args, **kwargs))

    return wrapper


def _resumed_in(scope: Scopes, generator: Generator[Any, Any, Any]
                ) -> Generator[Any, Any, Any]:
    """*generator*, each of whose steps runs in a new scope."""
    resume: Callable[[Any], Any] = generator.send
    value: Any = None
    while True:
        try:
            with scope():
                item = resume(value)
        except StopIteration as stop:
            return stop.value
        try:
            value = yield item
            resume = generator.send
        except GeneratorExit:
            with scope():
                generator.close()
            raise
        except BaseException as error:
            value = error
            resume = generator.throw


async def _resumed_in_async(scope: Scopes, generator: AsyncGenerator[Any, Any]
                            ) -> AsyncGenerator[Any, Any]:
    resume: Callable[[Any], Any] = generator.asend
    value: Any = None
    while True:
        try:
            with scope():
                item = await resume(value)
        except StopAsyncIteration:
            return
        try:
            value = yield item
            resume = generator.asend
        except GeneratorExit:
            with scope():
                await generator.aclose()
            raise
        except BaseException as error:
            value = error
            resume = generator.athrow
