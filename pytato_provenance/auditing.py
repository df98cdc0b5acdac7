"""
What a transform did to creation sites.

.. autofunction:: audit
.. autoclass:: AuditReport
.. autoclass:: AuditEntry
"""

from __future__ import annotations

import dataclasses
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytato_provenance._host import Node, host, nodes_in_post_order
from pytato_provenance.compilation.programs import contents_of_nodes
from pytato_provenance.compilation.stages import transform_stage
from pytato_provenance.diagnostic import (
    NotAnArrayError,
    ProvenanceLostError,
    ProvenanceWarning,
    UsageError,
)
from pytato_provenance.merging import equal_classes
from pytato_provenance.sites import lost_site
from pytato_provenance.tags import set_site, site_of


if TYPE_CHECKING:
    from pytato_provenance.sites import CreationSite


OUTCOMES: Mapping[str, str] = {
    "kept": "the array is there as before, with its site",
    "merged": "knows the sites of several arrays of the input",
    "inherited": "made in place of an array of the input, with its site",
    "created": "made by the transform's own code, whose line it has",
    "synthetic": "made by the transform for itself, and marked so",
    "unknown": "its site was not known before either",
    "lost": "made by the transform, without a site",
    "absorbed": "of the input: an equal array is there and does not know its site",
    "gone": "of the input: no array of the result has its site",
}


@dataclass(frozen=True)
class AuditEntry:
    """
    .. attribute:: outcome

        One of ``kept``, ``merged``, ``inherited``, ``created``, ``synthetic``,
        ``unknown``, ``lost``, of arrays of the result; of arrays of the input,
        ``absorbed`` (an equal array is there and does not know their site) or ``gone``
        (no array of the result has their site).

    .. attribute:: node_type

        The name of the class of the arrays.

    .. attribute:: count
    """

    outcome: str
    node_type: str
    count: int


@dataclass(frozen=True)
class AuditReport:
    """What became of the sites of a DAG; prints as a table.

    .. attribute:: pass_name
    .. attribute:: entries

        A tuple of :class:`AuditEntry`.

    .. attribute:: result

        What the transform returned, or *None* for a check made on the way.

    .. automethod:: count
    .. autoattribute:: lost
    .. automethod:: as_data
    """

    pass_name: str
    entries: tuple[AuditEntry, ...]
    result: Any = None

    def count(self, outcome: str) -> int:
        """
        :arg outcome: as in :attr:`AuditEntry.outcome`.
        :returns: the number of arrays with this outcome.
        """
        return sum(entry.count for entry in self.entries if entry.outcome == outcome)

    @property
    def kept(self) -> int:
        """The number of arrays that kept their site."""
        return self.count("kept")

    @property
    def merged(self) -> int:
        """The number of arrays that know several sites."""
        return self.count("merged")

    @property
    def inherited(self) -> int:
        """The number of arrays that have the site of what they replace."""
        return self.count("inherited")

    @property
    def synthetic(self) -> int:
        """The number of arrays that the transform made for itself."""
        return self.count("synthetic")

    @property
    def lost(self) -> int:
        """The number of arrays without a site."""
        return self.count("lost")

    @property
    def absorbed(self) -> int:
        """The number of arrays of the input that became one with an array that could
        not be told of their site: see :ref:`merging`."""
        return self.count("absorbed")

    def as_data(self) -> dict[str, Any]:
        """
        :returns: the report as plain data.
        """
        return {"pass": self.pass_name,
                "arrays": [{"outcome": entry.outcome, "type": entry.node_type,
                            "count": entry.count} for entry in self.entries]}

    def __str__(self) -> str:
        width = max(len(outcome) for outcome in OUTCOMES)
        lines = [self.pass_name]
        for outcome in OUTCOMES:
            entries = [entry for entry in self.entries if entry.outcome == outcome]
            if entries:
                types = ", ".join(f"{entry.count} {entry.node_type}"
                                  for entry in entries)
                lines.append(f"  {outcome:<{width}}  {self.count(outcome):>6}  {types}")
        if len(lines) == 1:
            lines.append("  no arrays")
        return "\n".join(lines)


def compare(before: Iterable[Node], after: Iterable[Node], pass_name: str,
            result: Any = None) -> AuditReport:
    """
    :arg before: the nodes of the input, children first.
    :arg after: the nodes of the result, children first.
    :returns: what became of the sites.
    """
    array = host().array
    before = list(before)
    after = list(after)
    if {id(node) for node in before} == {id(node) for node in after}:
        classes = {id(node): number for number, node in enumerate(before)}
    else:
        classes = equal_classes(_unique([*before, *after]))
    before = [node for node in before if isinstance(node, array)]
    after = [node for node in after if isinstance(node, array)]
    known_before = {id(node): site_of(node) for node in before}
    input_sites = _members(known_before.values())
    equal_before: dict[int, set[CreationSite | None]] = defaultdict(set)
    for node in before:
        equal_before[classes[id(node)]].add(known_before[id(node)])
    merged_before = {site for site in known_before.values()
                     if site is not None and site.kind == "merged"}

    def outcome(node: Node) -> str:
        site = site_of(node)
        is_old = id(node) in known_before
        previous = equal_before.get(classes[id(node)], set())
        if site is None or site.kind == "unknown":
            return "unknown" if is_old or None in previous else "lost"
        if is_old or site in previous:
            return "kept"
        if site.kind == "merged" and site not in merged_before:
            return "merged"
        if site.kind == "synthetic" and site not in input_sites:
            return "synthetic"
        return "inherited" if input_sites.issuperset(site.all_sites) else "created"

    counts = Counter((outcome(node), type(node).__name__) for node in after)

    by_class: dict[int, set[CreationSite | None]] = defaultdict(set)
    for node in after:
        by_class[classes[id(node)]].add(site_of(node))
    known_after = _members(site for sites in by_class.values() for site in sites)
    members = {number: _members(sites) for number, sites in by_class.items()}
    for node in before:
        site = known_before[id(node)]
        if site is None or (site.kind != "known" and site.kind != "merged"):
            continue
        number = classes[id(node)]
        if number in members:
            if not members[number].issuperset(site.all_sites):
                counts["absorbed", type(node).__name__] += 1
        elif not known_after.issuperset(site.all_sites):
            counts["gone", type(node).__name__] += 1

    order = list(OUTCOMES)
    entries = sorted((AuditEntry(*key, count) for key, count in counts.items()),
                     key=lambda entry: (order.index(entry.outcome), -entry.count,
                                        entry.node_type))
    return AuditReport(pass_name, tuple(entries), result)


def _members(sites: Iterable[CreationSite | None]) -> set[CreationSite]:
    return {member for site in sites if site is not None for member in site.all_sites}


def _unique(nodes: list[Node]) -> list[Node]:
    return list({id(node): node for node in nodes}.values())


def check(report: AuditReport, how: str) -> None:
    """Answer for a transform that lost sites.

    :arg how: ``"warn"`` or ``"raise"``.
    """
    if not report.lost:
        return
    message = (f"'{report.pass_name}' made {report.lost} arrays without a creation "
               f"site; derive the mapper from PreserveCreatedAtMixin, or run it by "
               f"through({report.pass_name})\n{report}")
    if how == "raise":
        raise ProvenanceLostError(message)
    warnings.warn(message, ProvenanceWarning, stacklevel=3)


def audit_mapper(mapper: Any, before: Iterable[Node], result: Any, made: Container[int],
                 how: str) -> None:
    """Check what an outermost call of a mapper has made, and mark what has no site with
    the name of the mapper.

    :arg made: the identities of the nodes that nobody else has seen.
    :arg how: as in :func:`check`.
    """
    name = pass_name_of(mapper)
    after = nodes_in_post_order(*roots(result))
    report = compare(before, after, name)
    if report.lost:
        site = lost_site(name)
        for node in after:
            if (id(node) in made and site_of(node) is None
                    and isinstance(node, host().array)):
                set_site(node, site)
    check(report, how)


def audit(transform: Callable[..., Any], dag: Any, *args: Any, **kwargs: Any
          ) -> AuditReport:
    """Run a transform as it is, here and now, and see what it does to the sites.

    While recording is on, what the transform makes under a mapper's dispatch inherits;
    ``audit(through(f), dag)`` and a mapper with
    :class:`~pytato_provenance.PreserveCreatedAtMixin` do so always.

    :arg transform: a mapper or a function of a DAG.
    :arg dag: an array, a container, a traced function, or a dictionary or sequence of
        these.
    :arg args: further arguments of *transform*.
    :returns: the report, with the transform's result.
    :raises ~pytato_provenance.diagnostic.NotAnArrayError: if *dag* has no arrays.
    :raises ~pytato_provenance.diagnostic.UsageError: if *transform* cannot be called.
    """
    before = nodes_in_post_order(*roots(dag))
    if not before:
        raise NotAnArrayError("audit takes a transform and a DAG of pytato arrays, not "
                              f"'{type(dag).__name__}'")
    name = pass_name_of(transform)
    with transform_stage(name, lambda: contents_of_nodes(before)):
        result = transform(dag, *args, **kwargs)
    return compare(before, nodes_in_post_order(*roots(result)),
                   name, result)


def roots(dag: Any) -> Iterable[Node]:
    """
    :returns: the nodes in *dag*: a node, or dictionaries, sequences and records
        (dataclasses) of them, such as the parts of a distributed computation.
    """
    pending = [dag]
    entered: set[int] = set()
    while pending:
        item = pending.pop()
        if isinstance(item, host().node_types):
            yield item
            continue
        items: Iterable[Any] = ()
        if isinstance(item, Mapping):
            items = item.values()
        elif isinstance(item, tuple | list | Set):
            items = item
        elif dataclasses.is_dataclass(item) and not isinstance(item, type):
            items = [getattr(item, field.name, None)
                     for field in dataclasses.fields(item)]
        if items and id(item) not in entered:
            entered.add(id(item))
            pending.extend(reversed(list(items)))


def pass_name_of(transform: Any) -> str:
    """
    :returns: how to call a mapper or a function in reports.
    :raises ~pytato_provenance.diagnostic.UsageError: for what cannot be called.
    """
    if not callable(transform):
        raise UsageError("a transform is a mapper or a function, not "
                         f"'{type(transform).__name__}'")
    name = getattr(transform, "__qualname__", None)
    if name is None:
        name = getattr(getattr(transform, "func", None), "__qualname__", None)
    return name or type(transform).__qualname__
