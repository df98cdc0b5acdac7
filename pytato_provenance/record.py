"""
One run's findings as plain data.

.. autoclass:: Record
.. autoclass:: ProgramRecord
.. autoclass:: StatementRecord
.. autoclass:: VariableRecord
.. autoclass:: NodesRecord
.. autoclass:: SiteRecord
.. autoclass:: FrameRecord

No host is needed to read, write or render one; how it is written:
:mod:`pytato_provenance.record_json`.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class FrameRecord:
    """One call in a stack.

    .. attribute:: file

        Relative to :attr:`Record.root`; in angle brackets, what lies elsewhere.

    .. attribute:: line
    .. attribute:: end_line
    .. attribute:: column

        From 0, in characters; *None* where the interpreter does not tell.

    .. attribute:: end_column
    .. attribute:: function
    .. attribute:: text

        The source line as it was when the program ran, ``""`` where that is unknown.

    .. attribute:: is_user
    """

    file: str
    line: int
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None
    function: str = ""
    text: str = ""
    is_user: bool = True

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


@dataclass(frozen=True)
class SiteRecord:
    """Where arrays were created: never a merged site, but each of its members.

    .. attribute:: kind

        ``"known"``, ``"synthetic"`` or ``"unknown"``.

    .. attribute:: frames

        Innermost first.

    .. attribute:: region
    .. attribute:: made_by

        Of a synthetic site: the transform that made the arrays for itself.

    .. autoattribute:: user_frame
    """

    kind: str
    frames: tuple[FrameRecord, ...] = ()
    region: str | None = None
    made_by: str | None = None

    @property
    def user_frame(self) -> FrameRecord | None:
        """The innermost frame that is the user's."""
        return next((frame for frame in self.frames if frame.is_user), None)

    def __str__(self) -> str:
        if self.kind == "synthetic":
            return f"made by {self.made_by}"
        frame = self.user_frame or (self.frames[0] if self.frames else None)
        return "unknown" if frame is None else str(frame)


@dataclass(frozen=True)
class StatementRecord:
    """A statement of a generated program.

    .. attribute:: id

        loopy's name for it.

    .. attribute:: variable

        What it stores.

    .. attribute:: line
    .. attribute:: end_line

        Its first and last line in :attr:`ProgramRecord.text`, from 1.

    .. attribute:: sites

        Indices into :attr:`Record.sites`: of all operations fused into it, in order.

    .. attribute:: title

        What is special about it, in a few words.

    .. attribute:: by_loopy

        Whether loopy made it for the sake of others that have these sites.
    """

    id: str
    variable: str
    line: int
    end_line: int
    sites: tuple[int, ...]
    title: str = ""
    by_loopy: bool = False


@dataclass(frozen=True)
class VariableRecord:
    """An argument or a temporary.

    .. attribute:: name
    .. attribute:: kind

        ``"input"``, ``"output"`` or ``"temporary"``.

    .. attribute:: sites
    """

    name: str
    kind: str
    sites: tuple[int, ...]


@dataclass(frozen=True)
class NodesRecord:
    """Equal in kind and origin: some nodes of the graph that a program came from.

    .. attribute:: type
    .. attribute:: count
    .. attribute:: sites
    """

    type: str
    count: int
    sites: tuple[int, ...]


@dataclass(frozen=True)
class ProgramRecord:
    """A generated program.

    .. attribute:: name
    .. attribute:: file

        The file that its text was written to, or *None*.

    .. attribute:: text

        With comments if they were asked for; *None* if it could not be made, which
        :attr:`failure` explains.

    .. attribute:: statements
    .. attribute:: variables
    .. attribute:: nodes

        Of the graph that it was generated from; empty where that is not known.

    .. attribute:: failure
    """

    name: str
    file: str | None = None
    text: str | None = None
    statements: tuple[StatementRecord, ...] = ()
    variables: tuple[VariableRecord, ...] = ()
    nodes: tuple[NodesRecord, ...] = ()
    failure: str | None = None


@dataclass(frozen=True)
class Record:
    """What one run of a program found.

    .. attribute:: program

        The name of the script or module.

    .. attribute:: ended

        How it ended, as in ``"exit status 0"``.

    .. attribute:: root

        What relative file names are relative to, in words; an absolute path if
        absolute paths were asked for.

    .. attribute:: python
    .. attribute:: packages

        Versions by name.

    .. attribute:: changed_files

        Files that were no longer the same when the record was made: what they have on
        a line is not what ran.

    .. attribute:: sites
    .. attribute:: programs
    .. attribute:: warnings

        What went wrong in recording itself.
    """

    program: str
    ended: str = ""
    root: str = ""
    python: str = ""
    packages: dict[str, str] = field(default_factory=dict)
    changed_files: tuple[str, ...] = ()
    sites: tuple[SiteRecord, ...] = ()
    programs: tuple[ProgramRecord, ...] = ()
    warnings: tuple[str, ...] = ()
