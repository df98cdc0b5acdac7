"""
The command line: ``python -m pytato_provenance``, or ``pytato-provenance``.

.. autofunction:: main
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from importlib import metadata
from typing import TYPE_CHECKING, NoReturn

from pytato_provenance.annotation_options import AnnotationOptions
from pytato_provenance.diagnostic import UsageError
from pytato_provenance.outputs import Outputs
from pytato_provenance.record_json import read_record
from pytato_provenance.report.html import render_html
from pytato_provenance.report.map import render_map
from pytato_provenance.report.text import render_text
from pytato_provenance.report.visible import visible
from pytato_provenance.run_script import find_program
from pytato_provenance.watched_run import NAME, Choices, WatchedRun


if TYPE_CHECKING:
    from collections.abc import Sequence


_RUN = f"""\
{NAME} run [options] SCRIPT [ARGUMENT ...]
       {NAME} run [options] -m MODULE [ARGUMENT ...]"""

_RUN_HELP = """\
Run a program as plain python would, with its arguments, exit status and output.
Afterwards every kernel that it generated can be read, with creation sites in comments,
and a report lies beside it: in the directory provenance-SCRIPT, or where the options
say. What follows the script is the script's."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see '{self.prog} --help')")


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1")
    return number


def _parsers() -> tuple[_Parser, _Parser]:
    """The parser of all, and that of ``run``."""
    parser = _Parser(
        prog=NAME, allow_abbrev=False,
        description="Which line of a program made this pytato array, this statement?")
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(dest="command", metavar="COMMAND",
                                     parser_class=_Parser)

    run = commands.add_parser(
        "run", usage=_RUN, description=_RUN_HELP, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        help="run a program and write what it generated")
    run.add_argument("--kernels", metavar="stdout|DIR",
                     help="print the kernels after the program's own output, or write "
                     "them to DIR, one file a program")
    run.add_argument("--report", metavar="FILE|DIR",
                     help="where the report goes: FILE (text; .html and .json say so) "
                     "or DIR (report.txt and record.json)")
    run.add_argument("--map", metavar="FILE",
                     help="write which lines of kernels come from which lines of the "
                     "program, as JSON")
    run.add_argument("--compile-log", metavar="FILE", nargs="?", const="",
                     help="write what each stage of compilation took, and for which "
                     "lines: --compile-log=FILE (text; .jsonl: an event a line; .json: "
                     "a trace for Perfetto), or without FILE beside the report")
    run.add_argument("--region", metavar="PATTERN",
                     help="which regions the log is about, as in 'rhs*'")
    run.add_argument("--stacks", action="store_true",
                     help="show the whole stack of each creation site")
    run.add_argument("--comments", metavar="OPTIONS", default="",
                     help="what the comments look like: 'columns,no-text,most=20,...', "
                     "the attributes of AnnotationOptions")
    run.add_argument("--no-annotate", action="store_false", dest="annotate",
                     help="write the kernels as loopy does, without comments")
    run.add_argument("--capture", metavar="NAME",
                     help="how creation sites are taken")
    run.add_argument("--max-frames", metavar="N", type=_positive,
                     help="how much of each stack is kept")
    run.add_argument("--absolute-paths", action="store_true",
                     help="name files by absolute paths in report and record")
    run.add_argument("-q", "--quiet", action="store_true",
                     help="do not say on standard error where the results lie")
    run.add_argument("-m", dest="module", metavar="MODULE",
                     help="run a module, as python -m does")

    report = commands.add_parser(
        "report", allow_abbrev=False, help="show a saved record",
        description="Show a saved record as text, or write it as HTML.")
    report.add_argument("record", help="a record.json, or the directory of one")
    report.add_argument("--html", metavar="FILE", help="write an HTML file")
    report.add_argument("--map", metavar="FILE", help="write a map, as run --map does")
    report.add_argument("--stacks", action="store_true",
                        help="show the whole stack of each creation site")

    strip = commands.add_parser(
        "strip", allow_abbrev=False, help="take the comments out of a kernel",
        description="Print a kernel without our comments, as loopy wrote it.")
    strip.add_argument("file", help="a file with kernels, or - for standard input")
    return parser, run


def _version() -> str:
    try:
        version = metadata.version("pytato-provenance")
    except metadata.PackageNotFoundError:
        version = "(not installed)"
    return f"{NAME} {version}"


def _split(run: _Parser, arguments: Sequence[str]
           ) -> tuple[list[str], str | None, list[str]]:
    """The options of ``run``, the script (*None* for a module), and what is not ours.

    argparse cannot leave what follows the script alone, ``--`` and options included.
    """
    # What may have a value has it in the same argument, after "=".
    takes_value = {option: action.nargs is None for action in run._actions
                   for option in action.option_strings}
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        position += 1
        if argument == "--":
            break
        if not argument.startswith("-") or argument == "-":
            position -= 1
            break
        if argument.startswith("-m") and not argument.startswith("--"):
            position += argument == "-m"
            return [*arguments[:position]], None, [*arguments[position:]]
        if takes_value.get(argument, False):
            position += 1
    own = [argument for argument in arguments[:position] if argument != "--"]
    rest = arguments[position:]
    return own, rest[0] if rest else None, [*rest[1:]]


def _prepared_run(run: _Parser, arguments: Sequence[str]) -> WatchedRun:
    own, script, rest = _split(run, arguments)
    options = run.parse_args(own)
    if script is None and options.module is None:
        raise UsageError(f"name a script to run (see '{run.prog} --help')")
    if options.region is not None and options.compile_log is None:
        raise UsageError("--region says what the log is about; add --compile-log")
    program = find_program(script, options.module, tuple(rest))
    watched = WatchedRun(
        program,
        Outputs.of(program.stem, kernels=options.kernels, report=options.report,
                   map_file=options.map, log_file=options.compile_log,
                   stacks=options.stacks),
        Choices(annotate=options.annotate, comments=_comments(options),
                capture=options.capture, max_frames=options.max_frames,
                region=options.region, absolute_paths=options.absolute_paths,
                quiet=options.quiet))
    watched.prepare()
    return watched


def _comments(options: argparse.Namespace) -> AnnotationOptions:
    comments = AnnotationOptions.parse(options.comments)
    if options.stacks:
        comments = replace(comments, stacks=True)
    if options.absolute_paths:
        comments = replace(comments, paths="absolute")
    if comments.root is None:
        # The program may change its directory.
        comments = replace(comments, root=os.getcwd())
    return comments


def _report(path: str, html: str | None, map_file: str | None, stacks: bool) -> int:
    if os.path.isdir(path):
        path = os.path.join(path, "record.json")
    record = read_record(path)
    if html is not None:
        _write(html, render_html(record))
    if map_file is not None:
        _write(map_file, render_map(record))
    if html is None and map_file is None:
        _print(render_text(record, stacks=stacks))
    return 0


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write '{path}': {error}") from None


def _strip(path: str) -> int:
    try:
        from pytato_provenance.lowering.text import strip_annotations
    except ImportError as error:
        raise UsageError(f"this needs loopy, which cannot be imported ({error})"
                         ) from None
    try:
        if path == "-":
            text = sys.stdin.read()
        else:
            with open(path, encoding="utf-8", newline="") as file:
                text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"cannot read '{path}': {reason}") from None
    _print(strip_annotations(text))
    return 0


def _print(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def _command(arguments: Sequence[str]) -> int | WatchedRun:
    """The exit status, or the program that is to be run."""
    parser, run = _parsers()
    if arguments[:1] == ["run"]:
        return _prepared_run(run, arguments[1:])
    if arguments and (arguments[0].endswith(".py") or arguments[0] == "-m"):
        raise UsageError(f"unknown command '{arguments[0]}'; did you mean "
                         f"'run {arguments[0]}'?")
    options = parser.parse_args(arguments)
    if options.command == "report":
        return _report(options.record, options.html, options.map, options.stacks)
    if options.command == "strip":
        return _strip(options.file)
    parser.print_help(sys.stderr)
    return 2


def main(arguments: Sequence[str] | None = None) -> int:
    """
    :arg arguments: without the name of the command; ``sys.argv[1:]`` by default.
    :returns: the exit status. A program that is run may raise whatever it raises.
    """
    try:
        result = _command(sys.argv[1:] if arguments is None else [*arguments])
    except UsageError as error:
        print(f"{NAME}: {visible(str(error))}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Nobody reads on, as in "| head"; the interpreter would say so at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        # Such as a current directory that is gone.
        print(f"{NAME}: {visible(str(error))}", file=sys.stderr)
        return 2
    if isinstance(result, int):
        return result
    # Not within the above: what the program raises is the program's.
    result.run()
    return 0
