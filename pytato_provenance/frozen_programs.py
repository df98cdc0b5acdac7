"""
Programs that an array context keeps and reuses for equal expressions.

.. autoclass:: SharedPrograms

The host finds a program by the expression that is to be evaluated, whose equality does
not see where it was built. The text of such a program is to name all the lines that
used it.
"""

from __future__ import annotations

import weakref
from collections import UserDict, defaultdict
from typing import TYPE_CHECKING, Any

from pytato_provenance import scope as _scope
from pytato_provenance._host import Node, nodes_in_post_order
from pytato_provenance.merging import equal_classes
from pytato_provenance.tags import site_of


if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytato_provenance.sites import CreationSite

    Pair = tuple[CreationSite | None, CreationSite | None]


class _Pairs:
    """For sites in the first expression, those in the later ones."""

    def __init__(self) -> None:
        self._more: defaultdict[CreationSite, set[CreationSite]] = defaultdict(set)

    def add(self, pairs: Iterable[Pair]) -> None:
        for old, new in pairs:
            if old is not None and new is not None and old is not new:
                for site in old.all_sites:
                    self._more[site].update(new.all_sites)

    def frozen(self) -> dict[CreationSite, frozenset[CreationSite]]:
        return {site: frozenset(more) for site, more in self._more.items()}


class _Uses:
    """The expressions that one program has served."""

    def __init__(self, program: Any, first: Node) -> None:
        self._program = weakref.ref(program)
        # The host's dictionary keeps them as long as it has the program.
        self._nodes = nodes_in_post_order(first)
        self._t_unit = getattr(getattr(program, "program", None), "t_unit", None)
        self._known: set[Pair] = set()
        self._anywhere = _Pairs()
        # One line may have made arrays of several outputs, which several lines make in
        # another expression.
        self._by_output: defaultdict[str, _Pairs] = defaultdict(_Pairs)

    def add(self, program: Any, expression: Node) -> None:
        nodes = nodes_in_post_order(expression)
        if len(nodes) == len(self._nodes):
            # In the same order, unless a dictionary was filled in another one: then
            # there are pairs that are not known.
            pairs = {(site_of(old), site_of(new))
                     for old, new in zip(self._nodes, nodes, strict=True)}
            if pairs <= self._known or all(old is new for old, new in pairs):
                return
        classes = equal_classes(
            list({id(node): node for node in (*self._nodes, *nodes)}.values()))
        first = {classes[id(node)]: site_of(node) for node in self._nodes}

        def in_place(nodes: Iterable[Node]) -> set[Pair]:
            return {(first[classes[id(node)]], site_of(node)) for node in nodes
                    if classes[id(node)] in first}

        found = in_place(nodes)
        self._known |= found
        self._anywhere.add(found)
        for name in expression:
            self._by_output[name].add(
                in_place(nodes_in_post_order(expression[name].expr)))
        if self._t_unit is not None:
            from pytato_provenance.lowering.more_sites import MoreSites, set_sites
            set_sites(program.program, self._t_unit, MoreSites(
                self._anywhere.frozen(),
                {name: pairs.frozen() for name, pairs in self._by_output.items()}))

    def serves(self, program: Any) -> bool:
        """Whether these are uses of *program*, rather than of one before it that had
        the same identity."""
        return self._program() is program


_uses: dict[int, _Uses] = {}


class SharedPrograms(UserDict[Node, Any]):
    """A view of the host's dictionary from expressions to programs: sees each use.

    :arg programs: the dictionary, which stays where it is.
    """

    def __init__(self, programs: dict[Node, Any]) -> None:
        # Not a copy, as the base class would make.
        self.data = programs

    def __getitem__(self, expression: Node) -> Any:
        program = self.data[expression]
        _note(program, expression)
        return program

    def __setitem__(self, expression: Node, program: Any) -> None:
        self.data[expression] = program
        _note(program, expression)


def _note(program: Any, expression: Node) -> None:
    try:
        uses = _uses.get(id(program))
        if uses is None or not uses.serves(program):
            identity = id(program)
            _uses[identity] = _Uses(program, expression)
            weakref.finalize(program, _uses.pop, identity, None).atexit = False
        else:
            uses.add(program, expression)
    except Exception as error:
        _scope.warn_once(error)
