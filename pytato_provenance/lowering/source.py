"""
The annotated text of a program.

.. autofunction:: kernel_source
.. autofunction:: annotate
.. autoclass:: AnnotatedSource
.. autoclass:: StatementText
.. autoclass:: Origin
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loopy import CallableKernel, LoopKernel, TranslationUnit

from pytato_provenance.compilation.stages import paused
from pytato_provenance.diagnostic import UsageError
from pytato_provenance.lowering.comments import (
    FileNames,
    header_lines,
    site_lines,
    variable_lines,
)
from pytato_provenance.lowering.def_use import Derived, derived_statements
from pytato_provenance.lowering.instruction_tags import without_sites
from pytato_provenance.lowering.seam import Mark, Marks, generate_marked
from pytato_provenance.lowering.tables import KernelSites, ProgramSites
from pytato_provenance.lowering.text import marker_for


if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytato_provenance.lowering.instruction_tags import Sites, VariableSites


@dataclass(frozen=True)
class AnnotatedSource:
    """
    .. attribute:: text
    .. attribute:: plain

        What :mod:`loopy` generates, and what is compiled.

    .. attribute:: statements

        Where the statements stand, in the order of the text: a :class:`list` of
        :class:`StatementText`.

    .. attribute:: variables

        Arguments and temporaries of the kernels, by name.
    """

    text: str
    plain: str
    statements: list[StatementText] = field(default_factory=list)
    variables: Mapping[str, VariableSites] = field(default_factory=dict)


@dataclass(frozen=True)
class StatementText:
    """One of perhaps several places of a statement.

    .. attribute:: insn_id
    .. attribute:: origin

        What it evaluates; *None*, where that is not known.

    .. attribute:: lines

        Its first and last line in the annotated text, from 1.

    .. attribute:: plain_lines

        The same in the plain text.
    """

    insn_id: str
    origin: Origin | None
    lines: tuple[int, int]
    plain_lines: tuple[int, int]


@dataclass(frozen=True)
class Origin:
    """What a statement evaluates.

    .. attribute:: title

        What is special about it, in a few words.

    .. attribute:: sites
    .. attribute:: variable

        The array that it stores, if :mod:`pytato` asked for it.

    .. attribute:: by_loopy

        Whether :mod:`loopy` made it by itself.
    """

    title: str
    sites: Sites
    variable: str = ""
    by_loopy: bool = False


# {{{ finding the translation unit

def translation_unit_of(program: Any) -> TranslationUnit:
    """
    :arg program: a bound program or executable of :mod:`pytato`, an executor, a
        translation unit or a kernel of :mod:`loopy`.
    :raises ~pytato_provenance.diagnostic.UsageError: for anything else.
    """
    for attribute in ("program", "t_unit"):
        inner = getattr(program, attribute, None)
        if inner is not None and not isinstance(program, TranslationUnit):
            program = inner
    if isinstance(program, LoopKernel):
        from loopy.translation_unit import make_program
        program = make_program(program)
    if isinstance(program, TranslationUnit):
        return program
    raise UsageError(
        "pass a bound program (what generate_loopy returns), an executor or a "
        f"translation unit, not '{type(program).__name__}'")


def scheduled(t_unit: TranslationUnit) -> TranslationUnit:
    """
    :arg t_unit: without tags of ours.
    :returns: the form that code is generated for; from loopy's caches, if it is there.
    """
    import loopy
    from loopy.schedule import linearize
    from loopy.target import execution

    if loopy.CACHING_ENABLED:
        for executor in ("PyOpenCLExecutor", "CExecutor"):
            try:
                return execution.typed_and_scheduled_cache[executor, t_unit, None]
            except KeyError:
                pass
    with paused():
        return linearize(loopy.preprocess_program(t_unit))

# }}}


# {{{ writing

class _Writer:
    def __init__(self, sites: ProgramSites, marks: Marks, stacks: bool) -> None:
        self.sites = sites
        self.marks = marks
        self.names = FileNames(
            (site for kernel in sites.kernels.values() for site in kernel.all_sites()),
            stacks=stacks)
        self._derived: dict[str, dict[str, Derived]] = {}

    def _derived_in(self, kernel: KernelSites) -> dict[str, Derived]:
        found = self._derived.get(kernel.name)
        if found is None:
            found = self._derived[kernel.name] = derived_statements(
                self.marks.kernels[kernel.name], kernel)
        return found

    def origin(self, mark: Mark) -> Origin | None:
        """
        :returns: what the statement of *mark* evaluates, where that is known.
        """
        kernel = self.sites.kernel(mark.kernel)
        known = kernel.statements.get(mark.insn_id)
        if known is not None:
            title = {"call": f"call of {known.variable}", "copy": "copy of an array",
                     "bound": "bound of a reduction"}.get(known.kind, "")
            return Origin(title, known.sites, known.variable)
        derived = self._derived_in(kernel).get(mark.insn_id)
        if derived is not None:
            return Origin(f"loopy: {derived.role} for", derived.sites, by_loopy=True)
        if kernel.called_from:
            return Origin(f"statement of {kernel.name}, called from",
                          kernel.called_from)
        return None

    def _lines_of_statement(self, mark: Mark) -> list[str]:
        origin = self.origin(mark)
        if origin is None:
            return []
        if not origin.title:
            return site_lines(origin.sites, self.names)
        return _titled(origin.title, origin.sites, self.names)

    def _lines_of_function(self, mark: Mark) -> list[str]:
        words = set(re.findall(r"\w+", mark.declaration))
        found = {name: variable
                 for kernel in self.sites.kernels.values()
                 for name, variable in kernel.variables.items() if name in words}
        order = {"input": 0, "output": 1, "temporary": 2}
        return variable_lines(
            sorted(found.items(), key=lambda item: order[item[1].kind]), self.names)

    def lines(self, mark: Mark) -> list[str]:
        """
        :returns: what to write in the place of *mark*, without marker.
        """
        if mark.kind == "begin":
            return self._lines_of_statement(mark)
        if mark.kind == "top":
            return self._lines_of_function(mark)
        return []


def _titled(title: str, sites: Any, names: FileNames) -> list[str]:
    lines = site_lines(sites, names)
    if len(lines) == 1:
        return [f"{title}: {lines[0]}"]
    return [f"{title}:", *(f"  {line}" for line in lines)]


def _write(marked: Iterable[str], header: list[str], writer: _Writer, marker: str
           ) -> AnnotatedSource:
    """Both texts, and where the statements are in them."""
    text, plain = [*header], list[str]()
    statements: list[StatementText] = []
    begun: list[tuple[int, int]] = []
    for line in marked:
        mark = writer.marks.find(line)
        if mark is None:
            text.append(line)
            plain.append(line)
            continue
        if mark.kind == "end":
            first, first_plain = begun.pop()
            statements.append(StatementText(
                mark.insn_id, writer.origin(mark), (first, len(text)),
                (first_plain, len(plain))))
            continue
        indent = line[:len(line) - len(line.lstrip())]
        text.extend(f"{indent}{marker} {comment}" for comment in writer.lines(mark))
        if mark.kind == "begin":
            begun.append((len(text) + 1, len(plain) + 1))
    variables = {name: variable for kernel in writer.sites.kernels.values()
                 for name, variable in kernel.variables.items()}
    return AnnotatedSource("\n".join(text), "\n".join(plain), statements, variables)

# }}}


def annotate(tagged: TranslationUnit, linearized: TranslationUnit, *,
             stacks: bool = False) -> AnnotatedSource:
    """
    :arg tagged: with tags of ours.
    :arg linearized: what code is generated for: *tagged* without them, preprocessed and
        linearised.
    :arg stacks: as for :func:`kernel_source`.
    """
    sites = ProgramSites.of(tagged)
    text, marks = generate_marked(linearized)
    marked = text.split("\n")
    plain = [line for line in marked if marks.find(line) is None]
    marker = marker_for(plain)
    writer = _Writer(sites, marks, stacks)
    header = [f"{marker} {line}" for line in header_lines(
        sorted(sites.entrypoints), writer.names, marker)]
    return _write(marked, header, writer, marker)


def annotated_source(program: Any, *, stacks: bool = False) -> AnnotatedSource:
    """
    :arg stacks: as for :func:`kernel_source`.
    :returns: the text of *program* with and without comments.
    """
    from pytato_provenance.lowering.patch_points import generating

    tagged = translation_unit_of(program)
    if not any(isinstance(item, CallableKernel)
               for item in tagged.callables_table.values()):
        raise UsageError("the translation unit has no kernel")
    with generating():
        return annotate(tagged, scheduled(without_sites(tagged)), stacks=stacks)


def kernel_source(program: Any, *, stacks: bool = False) -> str:
    """The device code of a program, with the creation sites of all array operations
    that are fused into a statement in comments above it.

    What is compiled and cached is not changed; the text is generated when asked for,
    and is that of the program as it is now, after transformations.

    :arg program: a bound program, as from ``generate_loopy``, a bound executable, an
        executor or a translation unit.
    :arg stacks: whether the calls that led to each line are shown beneath it.
    :returns: the text. :func:`strip_annotations` takes the comments out again.
    :raises ~pytato_provenance.diagnostic.UsageError: for anything else.
    """
    return annotated_source(program, stacks=stacks).text
