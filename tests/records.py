"""Records to test with."""

from __future__ import annotations

from hypothesis import strategies as st

from pytato_provenance.record import (
    FrameRecord,
    NodesRecord,
    ProgramRecord,
    Record,
    SiteRecord,
    StatementRecord,
    VariableRecord,
)


HOSTILE = (
    "</script><script>alert(1)</script>", "]]>", "<!--", "*/", "\\", "??/", "'\"&<>",
    "\n", "\r", "\x1b[31m", "\u202e", "\ud800", "\0", "\u2028", "javascript:alert(1)",
    '"onmouseover="alert(1)', "{{7*7}}", "${7*7}", "\t", "é", "\U0001d54f",
)


def small_record() -> Record:
    """One program: a line called from two places, an input, a synthetic node."""
    main = FrameRecord("main.py", 10, 10, 4, 20, "<module>", "y = f(x) + f(2)")
    other = FrameRecord("main.py", 12, 12, 4, 9, "<module>", "z = f(y)")
    helper = FrameRecord("lib/helper.py", 3, 3, 11, 16, "f", "    return 2*a")
    numpy = FrameRecord("<site-packages>/numpy/core.py", 7, 7, 0, 5, "outer",
                        "return op(a)", is_user=False)
    sites = (
        SiteRecord("known", (helper, main)),
        SiteRecord("known", (helper, other)),
        SiteRecord("known", (main,), region="rhs"),
        SiteRecord("known", (numpy, other)),
        SiteRecord("synthetic", made_by="materialize"),
        SiteRecord("unknown"),
        SiteRecord("known", (numpy,)),
    )
    program = ProgramRecord(
        "_pt_kernel", "01_pt_kernel.cl", "//<- main.py:10\nout[i] = 2*x[i];\nend",
        (StatementRecord("out_store", "out", 2, 2, (0, 2)),
         StatementRecord("tmp_store", "tmp", 3, 3, (1, 3), "copy of an array"),
         StatementRecord("insn_0", "", 3, 3, (1,), "loopy: start of the reduction for",
                         by_loopy=True)),
        (VariableRecord("x", "input", (2,)), VariableRecord("out", "output", (2,)),
         VariableRecord("tmp", "temporary", (1,))),
        (NodesRecord("IndexLambda", 2, (0,)), NodesRecord("IndexLambda", 1, (0, 1)),
         NodesRecord("Placeholder", 1, (2,)), NodesRecord("Roll", 1200, (3,)),
         NodesRecord("Stack", 1, (4,)), NodesRecord("Stack", 1, (5,)),
         NodesRecord("Einsum", 1, (6,))))
    broken = ProgramRecord("broken", failure="its text could not be generated: E: x")
    return Record("main.py", "exit status 0", "the current directory of the run",
                  "3.13.0", {"pytato": "2021.2"}, ("lib/helper.py",), sites,
                  (program, broken), ("something went wrong",))


def large_record(nodes: int, lines: int, depth: int) -> Record:
    """*nodes* arrays that *lines* lines made, at the bottom of deep stacks."""
    stack = tuple(FrameRecord("deep.py", n + 1, n + 1, 0, 9, f"f{n}", "    return f(x)")
                  for n in range(depth))
    sites = tuple(
        SiteRecord("known", (
            FrameRecord(f"part_{n % 7}.py", n + 1, n + 1, 4, 40, "rate",
                        f"    flux_{n} = 0.5*(left_{n} + right_{n})"), *stack))
        for n in range(lines))
    each = nodes // lines
    text = "\n".join(f"out{n}[i] = 0.5*(x[i] + {n});" for n in range(lines))
    return Record("large.py", sites=sites, programs=(ProgramRecord(
        "_pt_kernel", None, text,
        tuple(StatementRecord(f"s{n}", f"out{n}", n + 1, n + 1,
                              tuple(range(max(0, n - 5), n + 1)))
              for n in range(lines)), (),
        tuple(NodesRecord("IndexLambda", each, (n,)) for n in range(lines))),))


# {{{ any record

texts = st.one_of(
    st.sampled_from(HOSTILE), st.text(max_size=8),
    st.text(st.characters(codec=None), max_size=4),
    st.lists(st.sampled_from(HOSTILE), max_size=3).map("".join))
numbers = st.integers(0, 2**40)
lines = st.integers(1, 2**40)

frames = st.builds(
    FrameRecord, texts, lines, st.none() | lines, st.none() | numbers,
    st.none() | numbers, texts, texts, st.booleans())
sites = st.builds(
    SiteRecord, st.sampled_from(["known", "synthetic", "unknown"]),
    st.lists(frames, max_size=4).map(tuple), st.none() | texts, st.none() | texts)


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Whatever a record may be."""
    known = draw(st.lists(sites, max_size=4))
    several = (st.lists(st.integers(0, len(known) - 1), max_size=4, unique=True)
               if known else st.just([])).map(tuple)
    programs: list[ProgramRecord] = []
    for _ in range(draw(st.integers(0, 2))):
        text = draw(st.none() | st.lists(texts, max_size=5).map("\n".join))
        last = 0 if text is None else text.count("\n") + 1
        spans = st.integers(1, max(last, 1))
        statements = st.builds(StatementRecord, texts, texts, spans, spans, several,
                               texts, st.booleans())
        variables = st.builds(
            VariableRecord, texts,
            st.sampled_from(["input", "output", "temporary"]), several)
        nodes = st.builds(NodesRecord, texts, lines, several)
        programs.append(ProgramRecord(
            draw(texts), draw(st.none() | texts), text,
            draw(st.lists(statements, max_size=3).map(tuple)) if last else (),
            draw(st.lists(variables, max_size=3).map(tuple)),
            draw(st.lists(nodes, max_size=3).map(tuple)), draw(st.none() | texts)))
    return Record(
        draw(texts), draw(texts), draw(texts), draw(texts),
        draw(st.dictionaries(texts, texts, max_size=2)),
        draw(st.lists(texts, max_size=2).map(tuple)), tuple(known), tuple(programs),
        draw(st.lists(texts, max_size=2).map(tuple)))

# }}}
