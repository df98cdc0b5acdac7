"""
The annotated text of a program.

.. autofunction:: kernel_source
.. autofunction:: annotate
.. autoclass:: AnnotatedSource
.. autoclass:: StatementText
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loopy import CallableKernel, LoopKernel, TranslationUnit

from pytato_provenance.annotation_options import AnnotationOptions
from pytato_provenance.compilation.stages import paused
from pytato_provenance.diagnostic import UsageError
from pytato_provenance.lowering.comments import (
    declaration_lines,
    header_lines,
    statement_lines,
    variable_lines,
)
from pytato_provenance.lowering.instruction_tags import without_sites
from pytato_provenance.lowering.origins import Origin, Origins
from pytato_provenance.lowering.places import Places, frame_of
from pytato_provenance.lowering.python_target import is_python_program, python_source
from pytato_provenance.lowering.seam import Mark, Marks, generate_marked
from pytato_provenance.lowering.tables import ProgramSites
from pytato_provenance.lowering.text import (
    HEADER,
    MARKER,
    line_directive,
    marker_for,
    one_line,
)
from pytato_provenance.sites import CreationSite


if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytato_provenance.lowering.instruction_tags import VariableSites


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
    def __init__(self, sites: ProgramSites, marks: Marks, marker: str,
                 options: AnnotationOptions) -> None:
        self.sites = sites
        self.marks = marks
        self.marker = marker
        self.options = options
        self.origins = Origins(sites, marks.kernels)
        self.places = Places(sites.all_sites(), options)
        self.name = one_line(next(iter(sorted(sites.entrypoints)), "program"))

    # {{{ comments

    def header(self) -> list[str]:
        if not self.options.header:
            # Otherwise nobody could tell which lines are ours.
            return [] if self.marker == MARKER else [f"{self.marker} {HEADER}"]
        lost = ((insn_id, tag.stored) for insn_id, tag in self.sites.lost.items())
        return [f"{self.marker} {line}" for line in header_lines(
            sorted(self.sites.entrypoints), lost, self.places, self.marker)]

    def _lines_of_function(self, mark: Mark) -> list[str]:
        words = set(re.findall(r"\w+", mark.declaration))
        found = {name: variable
                 for kernel in self.sites.kernels.values()
                 for name, variable in kernel.variables.items() if name in words}
        order = {"input": 0, "output": 1, "temporary": 2}
        return variable_lines(
            sorted(found.items(), key=lambda item: order[item[1].kind]), self.places)

    def comments(self, mark: Mark) -> list[str]:
        """
        :returns: what to write in the place of *mark*, without marker.
        """
        if mark.kind == "begin":
            origin = self.origins.of(mark.kernel, mark.insn_id)
            return [] if origin is None else statement_lines(origin, self.places)
        if mark.kind == "top" and self.options.variables:
            return self._lines_of_function(mark)
        if mark.kind == "declaration" and self.options.variables:
            label, sites = self.origins.of_temporary(mark.kernel, mark.variable)
            return declaration_lines(label, sites, self.places) if sites else []
        return []

    # }}}

    # {{{ directives

    def directive(self, origin: Origin | None) -> str:
        """
        :returns: what makes compilers say that the next line is one of the program;
            nothing, where that is not known.
        """
        if origin is None or not self.options.line_directives:
            return ""
        for site in sorted(origin.stored or origin.sites, key=CreationSite.sort_key):
            frame = frame_of(site)
            if frame is not None:
                return line_directive(frame.lineno, self.places.path(frame.filename),
                                      self.marker)
        return ""

    def reset(self, lineno: int) -> str:
        """
        :returns: what makes compilers say that the next line is line *lineno* of the
            annotated text.
        """
        return line_directive(lineno, f"{self.name}.cl", self.marker)

    # }}}


def _write(marked: Iterable[str], writer: _Writer) -> AnnotatedSource:
    """Both texts, and where the statements are in them."""
    text, plain = writer.header(), list[str]()
    if writer.options.line_directives:
        text.append(writer.reset(len(text) + 2))
    statements: list[StatementText] = []
    begun: list[tuple[int, int, Origin | None]] = []
    directive = ""
    declared: list[str] = []
    for line in marked:
        mark = writer.marks.find(line)
        if mark is None:
            if directive:
                text.append(directive)
            text.append(line)
            plain.append(line)
            continue
        if mark.kind == "end":
            first, first_plain, origin = begun.pop()
            statements.append(StatementText(
                mark.insn_id, origin, (first, len(text)), (first_plain, len(plain))))
            if directive:
                text.append(writer.reset(len(text) + 2))
                directive = ""
            continue
        indent = line[:len(line) - len(line.lstrip())]
        comments = writer.comments(mark)
        # Several temporaries of one operation, such as its bounds, go together.
        if not (mark.kind == "declaration" and comments == declared):
            text.extend(f"{indent}{writer.marker} {comment}" for comment in comments)
        declared = comments
        if mark.kind == "begin":
            origin = writer.origins.of(mark.kernel, mark.insn_id)
            directive = writer.directive(origin)
            begun.append((len(text) + (2 if directive else 1), len(plain) + 1, origin))
    variables = {name: variable for kernel in writer.sites.kernels.values()
                 for name, variable in kernel.variables.items()}
    return AnnotatedSource("\n".join(text), "\n".join(plain), statements, variables)

# }}}


def annotate(tagged: TranslationUnit, linearized: TranslationUnit,
             options: AnnotationOptions | None = None) -> AnnotatedSource:
    """
    :arg tagged: with tags of ours.
    :arg linearized: what code is generated for: *tagged* without them, preprocessed and
        linearised.
    :arg options: as for :func:`kernel_source`.
    """
    sites = ProgramSites.of(tagged)
    text, marks = generate_marked(linearized)
    marked = text.split("\n")
    marker = marker_for([line for line in marked if marks.find(line) is None])
    return _write(marked, _Writer(sites, marks, marker, options or sites.options))


def annotated_source(program: Any, options: AnnotationOptions | None = None
                     ) -> AnnotatedSource:
    """
    :arg options: as for :func:`kernel_source`.
    :returns: the text of *program* with and without comments.
    """
    from pytato_provenance.lowering.patch_points import generating

    tagged = translation_unit_of(program)
    if not any(isinstance(item, CallableKernel)
               for item in tagged.callables_table.values()):
        raise UsageError("the translation unit has no kernel")
    with generating():
        return annotate(tagged, scheduled(without_sites(tagged)), options)


def kernel_source(program: Any, options: AnnotationOptions | None = None) -> str:
    """The device code of a program, with the creation sites of all array operations
    that are fused into a statement in comments above it.

    What is compiled and cached is not changed; the text is generated when asked for,
    and is that of the program as it is now, after transformations.

    :arg program: a bound program, as from ``generate_loopy``, a bound executable, an
        executor or a translation unit; or what the development host generates for
        JAX.
    :arg options: what the comments look like; by default as the program was generated.
    :returns: the text. :func:`strip_annotations` takes the comments out again.
    :raises ~pytato_provenance.diagnostic.UsageError: for anything else.
    """
    if options is not None and not isinstance(options, AnnotationOptions):
        raise UsageError("options are AnnotationOptions(...), not "
                         f"'{type(options).__name__}'")
    if is_python_program(program):
        return python_source(program, options)
    return annotated_source(program, options).text
