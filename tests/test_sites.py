"""Creation sites: which frames, which text, merged, pickled, printed."""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import linecache
import os
import pickle
import random
import sys
import traceback
import zipfile
from typing import Any

import pytato as pt
import pytest
from hypothesis import given, strategies as st
from looking import run_python, where

import pytato_provenance as pp
from pytato_provenance.call_frames import Frame
from pytato_provenance.sites import (
    UNKNOWN,
    CreationSite,
    foreign_site,
    merge_sites,
    synthetic_site,
)


pytestmark = pytest.mark.usefixtures("disabled_afterwards")

HAS_COLUMNS = sys.version_info >= (3, 11) and bool(
    next(iter(compile("x", "", "eval").co_positions()))[2] is not None)


@pytest.fixture(autouse=True)
def recording():
    pp.enable()


def an_array() -> Any:
    return pt.make_placeholder(name="x", shape=(4,), dtype=float)


def site_here() -> CreationSite:
    site = pp.created_at(an_array())
    assert site is not None
    return site


def site_in(source: str, name: str, call: str = "f()", **namespace: Any
            ) -> CreationSite:
    """The site of the array that ``f`` in *source* makes."""
    namespace |= {"pt": pt, "an_array": an_array}
    exec(compile(source, name, "exec"), namespace)
    return pp.created_at(eval(call, namespace))


MAKE = "pt.make_placeholder(name='x', shape=(4,), dtype=float)"


# {{{ frames

def test_the_whole_stack_innermost_first():
    def outer():
        return inner(), traceback.extract_stack()

    def inner():
        return site_here()

    site, stack = outer()
    expected = [(frame.filename, frame.name) for frame in reversed(stack)]
    found = [(frame.filename, frame.qualname.rpartition(".")[2])
             for frame in site.frames]
    assert found[:3] == [(__file__, "an_array"), (__file__, "site_here"),
                         (__file__, "inner")]
    assert found[3:] == expected
    assert site.user_frame is site.frames[0]
    assert [frame.qualname.rpartition(".")[2] for frame in site.user_frames[:5]] == [
        "an_array", "site_here", "inner", "outer",
        "test_the_whole_stack_innermost_first"]
    assert all(frame.lineno > 0 for frame in site.frames)
    assert site.kind == "known"
    assert site.also == ()
    assert site.all_sites == (site,)


def test_a_frame_has_position_and_text():
    frame = site_here().frames[0]
    lines, first = inspect.getsourcelines(an_array)
    assert frame.filename == __file__
    assert (frame.lineno, frame.end_lineno) == (first + 1, first + 1)
    assert frame.line == lines[1].rstrip("\n")
    assert frame.qualname == "an_array"
    assert frame.module == __name__
    assert frame.source_state == "read"
    assert str(frame) == f"test_sites.py:{first + 1} in an_array"
    assert repr(frame) == f"<Frame {frame}>"
    if HAS_COLUMNS:
        assert frame.line[frame.colno:frame.end_colno] == lines[1].strip()[7:]
    else:
        assert frame.colno is None
        assert frame.end_colno is None


def test_one_object_a_way():
    def helper():
        return site_here()

    one, other = helper(), helper()
    assert one is not other
    assert one.frames[:3] == other.frames[:3]
    again = [helper() for _ in range(3)]
    assert again[0] is again[1] is again[2]
    # The same helper called from two places: told apart by the caller.
    assert [frame.lineno for frame in one.frames[:3]] == [
        frame.lineno for frame in other.frames[:3]]
    if HAS_COLUMNS:
        assert one.frames[3].colno != other.frames[3].colno


@pytest.mark.skipif(not HAS_COLUMNS, reason="positions have no columns here")
@pytest.mark.parametrize("prefix", ["", "'é'; '\u202e'; "])
def test_several_arrays_of_one_line(prefix):
    a, b, c, d = (an_array() for _ in range(4))
    source = f"def f(a, b, c, d):\n    {prefix}return a*b + c*d\n"
    name = f"<one line {prefix!a}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace: dict[str, Any] = {}
    exec(compile(source, name, "exec"), namespace)
    total = namespace["f"](a, b, c, d)
    arrays = [total.bindings["_in0"], total.bindings["_in1"], total]
    frames = [pp.created_at(array).user_frame for array in arrays]
    assert [frame.line[frame.colno:frame.end_colno] for frame in frames] == [
        "a*b", "c*d", "a*b + c*d"]
    assert {frame.lineno for frame in frames} == {2}


@pytest.mark.skipif(not HAS_COLUMNS, reason="positions have no columns here")
def test_a_call_that_spans_lines():
    source = ("def f(pt):\n"
              "    return pt.make_placeholder(\n"
              "        name='é',\n"
              "        shape=('é' and 4,), dtype=float)\n").replace("'é',", "'e',")
    linecache.cache["<span>"] = (len(source), None, source.splitlines(True), "<span>")
    frame = site_in(source, "<span>", "f(pt)").user_frame
    assert (frame.lineno, frame.end_lineno) == (2, 4)
    assert source.splitlines()[1][frame.colno:] == "pt.make_placeholder("
    assert source.splitlines()[3][:frame.end_colno].endswith("dtype=float)")


def test_without_columns():
    program = (
        "import pytato_provenance as pp; pp.enable()\n"
        "import pytato as pt\n"
        f"frame = pp.created_at({MAKE}).user_frame\n"
        "print(frame.lineno, frame.colno, frame.end_colno)\n")
    assert run_python("-X", "no_debug_ranges", "-c", program) == "3 None None\n"


def test_deep_recursion_and_what_is_left_of_the_stack():
    def recurse(depth):
        return site_here() if depth == 0 else recurse(depth - 1)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(12_000)
    try:
        site = recurse(5_000)
        assert len([f for f in site.frames if f.qualname.endswith("recurse")]) == 5_001
        again = pickle.loads(pickle.dumps(site))
        assert again is site
        assert len(copy.deepcopy(site).frames) == len(site.frames)
        assert str(site) == str(site.frames[0])
        assert merge_sites([site, site_here()]).all_sites
    finally:
        sys.setrecursionlimit(limit)


def test_near_the_recursion_limit():
    """Where the host still manages, so do we, or nearly so."""
    def depth_reached(make):
        def recurse(depth):
            try:
                make()
            except RecursionError:
                return depth
            return recurse(depth + 1)
        return recurse(0)

    with pp.recording(False):
        plain = depth_reached(an_array)
    recorded = depth_reached(an_array)
    assert plain - recorded <= 2


def test_generators_and_coroutines_resumed_from_elsewhere():
    def generate():
        while True:
            yield site_here()

    generator = generate()

    def one_place():
        return next(generator)

    def another_place():
        return next(generator)

    first, second, third = one_place(), another_place(), one_place()
    for site, place in ((first, "one_place"), (second, "another_place")):
        assert [frame.qualname.rpartition(".")[2] for frame in site.frames[1:4]] == [
            "site_here", "generate", place]
    assert third.frames[:3] == first.frames[:3]

    async def work():
        return site_here()

    coroutine = work()
    with pytest.raises(StopIteration) as stop:
        coroutine.send(None)
    names = [frame.qualname.rpartition(".")[2] for frame in stop.value.value.frames]
    assert names[1:4] == [
        "site_here", "work", "test_generators_and_coroutines_resumed_from_elsewhere"]

# }}}


# {{{ code of every kind

def test_lambda_and_comprehension():
    make = lambda: site_here()  # noqa: E731
    assert "<lambda>" in make().frames[2].qualname
    assert make().frames[2].lineno == make.__code__.co_firstlineno
    sites = [site_here() for _ in range(3)]
    line = traceback.extract_stack()[-1].lineno - 1
    assert sites[0] is sites[1]
    assert sites[0].frames[2].lineno == line


def test_exec_has_no_source_but_a_line():
    site = site_in(f"\n\ndef f():\n    return {MAKE}\n", "<string>")
    assert (site.user_frame.filename, site.user_frame.lineno) == ("<string>", 4)
    assert site.user_frame.qualname == "f"
    assert site.user_frame.line == ""
    assert site.user_frame.source_state == "missing"
    assert str(site) == "<string>:4 in f"


def test_code_without_line_numbers():
    def f():
        return an_array()

    bare = f.__code__.replace(**(
        {"co_linetable": b""} if sys.version_info >= (3, 10) else {"co_lnotab": b""}))
    f.__code__ = bare
    frame = pp.created_at(f()).frames[1]
    assert frame.lineno >= 1


def cell(source: str, name: str) -> dict[str, Any]:
    """What a notebook does with a cell."""
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace: dict[str, Any] = {"pt": pt, "__name__": "__main__"}
    exec(compile(source, name, "exec"), namespace)
    return namespace


@pytest.mark.parametrize("name", ["<ipython-input-3-abcdef>", "/tmp/ipykernel_7/9.py",
                                  "Cell [3]", "<python-input-0>"])
def test_notebook_cells(name):
    first = cell(f"# first\nx = {MAKE}\n", name)
    # The same name once more, with other text: each keeps its own.
    second = cell(f"y = 1\nx = 1 + {MAKE}\n", name)
    try:
        one, other = (pp.created_at(space["x"]).user_frame for space in (first, second))
        assert (one.filename, one.lineno, one.line) == (name, 2, f"x = {MAKE}")
        assert (other.filename, other.lineno, other.line) == (
            name, 2, f"x = 1 + {MAKE}")
        sites = [pp.created_at(space["x"]) for space in (first, second)]
        assert [site.user_frame.line for site in pickle.loads(pickle.dumps(sites))] == [
            one.line, other.line]
        assert merge_sites(sites).all_sites == merge_sites(sites[::-1]).all_sites
    finally:
        linecache.cache.pop(name, None)


def test_python_dash_c():
    program = (
        "import pytato_provenance as pp; pp.enable()\n"
        "import pytato as pt\n"
        f"x = {MAKE}\n"
        "space = {'pt': pt}\n"
        f"exec('''\n\ny = {MAKE}''', space)\n"
        "for array in (x, space['y']):\n"
        "    frame = pp.created_at(array).user_frame\n"
        "    print(frame, frame.line, sep='|')\n")
    first, second = run_python("-c", program).splitlines()
    assert first.partition("|")[0] == "<string>:3 in <module>"
    assert first.partition("|")[2] in ("", f"x = {MAKE}")
    assert second == "<string>:3 in <module>|"


def test_standard_input(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import code, pytato_provenance as pp; pp.enable()\n"
        "console = code.InteractiveConsole()\n"
        "console.push('import pytato as pt')\n"
        f"console.push({'x = ' + MAKE!r})\n"
        "print(pp.created_at(console.locals['x']).user_frame)\n")
    assert run_python(str(program)) == "<console>:1 in <module>\n"


def test_modules_in_an_archive(tmp_path, monkeypatch):
    archive = tmp_path / "archive.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("inside_an_archive.py",
                      f"import pytato as pt\n\ndef f():\n    return {MAKE}\n")
    monkeypatch.syspath_prepend(str(archive))
    import inside_an_archive  # type: ignore[import-not-found]

    frame = pp.created_at(inside_an_archive.f()).user_frame
    assert frame.filename == os.path.join(str(archive), "inside_an_archive.py")
    assert (frame.lineno, frame.line.strip()) == (4, f"return {MAKE}")
    assert frame.source_state == "read"


HOSTILE = ["star*/", "back\\", "new\nline", 'quo"te', "mark\u202e", "</script>",
           "half\ud800", "tab\t\x1b[31m", "??/", ""]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_hostile_names_are_kept_as_they_are(name):
    source = f"def f():\n    return {MAKE}  # {name!a}\n"
    site = site_in(source, f"/nowhere/{name}.py")
    frame = site.user_frame
    assert frame.filename == f"/nowhere/{name}.py"
    assert frame.lineno == 2
    assert f"{frame.lineno} in f" in str(site)
    again = pickle.loads(pickle.dumps(site))
    assert again is site

# }}}


# {{{ merging

@functools.cache
def some_sites(count: int) -> list[CreationSite]:
    return [site_in(f"{chr(10) * (i % 7)}def f(): return {MAKE}", f"<site {i % 9} {i}>")
            for i in range(count)]


@given(st.data())
def test_merging_knows_no_order(data):
    pp.enable()
    sites = [*some_sites(5), synthetic_site("lower"), synthetic_site("fuse"), UNKNOWN,
             None]
    chosen = data.draw(st.lists(st.sampled_from(sites), max_size=8))
    together = merge_sites(chosen)

    def nested(rest):
        if len(rest) < 2:
            return merge_sites(rest)
        split = data.draw(st.integers(1, len(rest) - 1))
        return merge_sites([nested(rest[:split]), nested(rest[split:])])

    shuffled = data.draw(st.permutations(chosen))
    if any(site is not None and site.kind == "known" for site in chosen):
        assert nested(shuffled) is together
        assert set(together.all_sites) == {
            site for site in chosen if site is not None and site.kind == "known"}
    else:
        assert merge_sites(shuffled) is together
    assert merge_sites([together, together]) is together
    assert pickle.loads(pickle.dumps(together)) is together


def test_a_merged_site():
    one, two, three = some_sites(3)
    merged = merge_sites([three, one, two])
    assert merged.kind == "merged"
    assert merged.all_sites == (one, two, three)
    assert merged.also == (two, three)
    assert merged.frames == one.frames
    assert merged.user_frame is one.user_frame
    assert str(merged) == "<site 0 0>:1 in f, <site 1 1>:2 in f, <site 2 2>:3 in f"
    assert str(merge_sites(some_sites(5))).endswith(" and 2 more")
    assert merge_sites([one]) is one
    assert merge_sites([one, UNKNOWN, None]) is one
    assert merge_sites([]) is UNKNOWN
    assert merge_sites([merged, one]) is merged


def test_code_that_is_compiled_once_more():
    one, same, other = (
        site_in(f"\ndef f(): return {MAKE}", name) for name in ("<a>", "<a>", "<b>"))
    assert one is not same
    assert merge_sites([one, same]) in (one, same)
    both = merge_sites([one, other, same])
    assert both is merge_sites([same, other])
    assert str(both) == "<a>:2 in f, <b>:2 in f"


def test_canonical_order_is_by_file_line_column_and_callers():
    def place(name, line, indent=0):
        return site_in(f"{chr(10) * (line - 1)}def f():"
                       f" {' ' * indent}return {MAKE}", name)

    ordered = [place("<a>", 2), place("<a>", 10), place("<b>", 1), place("<b>", 1, 4)]
    if not HAS_COLUMNS:
        ordered.pop()
    for shuffled in itertools.permutations(ordered):
        assert merge_sites(shuffled).all_sites == tuple(ordered)


def test_the_order_does_not_depend_on_the_process(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import random, sys\n"
        "import pytato_provenance as pp; pp.enable()\n"
        "import pytato as pt\n"
        "from pytato_provenance.sites import merge_sites\n"
        f"made = [{MAKE},\n        {MAKE},\n        {MAKE}]\n"
        "random.shuffle(made)\n"
        "print([str(s) for s in merge_sites(map(pp.created_at, made)).all_sites])\n")
    assert len({run_python(str(program)) for _ in range(3)}) == 1


def test_regions_of_a_merged_site():
    sites = []
    for path in ("b", "a", None):
        sites.append(site_here().in_region(path))
    assert [site.region for site in sites] == ["b", "a", None]
    assert len(set(sites)) == 3
    merged = merge_sites(sites)
    assert merged.regions == ("a", "b")
    assert merged.region is None
    assert merge_sites(sites[:1] * 2).region == "b"
    assert sites[0].in_region(None) is sites[0]
    assert sites[0].frames == sites[1].frames


def test_unknown_and_synthetic():
    assert (UNKNOWN.kind, UNKNOWN.frames, UNKNOWN.user_frame) == ("unknown", (), None)
    assert str(UNKNOWN) == "unknown"
    assert pickle.loads(pickle.dumps(UNKNOWN)) is UNKNOWN
    made = synthetic_site("lower")
    assert made is synthetic_site("lower")
    assert made is not synthetic_site("fuse")
    assert (made.kind, made.user_frame) == ("synthetic", None)
    assert str(made) == "synthetic (made by lower)"
    assert repr(made) == "<CreationSite synthetic (made by lower)>"
    both = merge_sites([made, synthetic_site("fuse")])
    assert len(both.all_sites) == 2
    assert merge_sites([made, site := site_here()]) is site


def test_foreign_stacks():
    stack = [("/a/b.py", 3, "main", "main()"), ("/a/c.py", 4, "helper", None),
             (pt.__file__, 5, "roll", "return")]
    site = foreign_site(stack)
    assert [str(frame) for frame in site.frames] == [
        "c.py:4 in helper", "b.py:3 in main"]
    assert [frame.line for frame in site.frames] == ["", "main()"]
    assert foreign_site(stack) is site

# }}}


# {{{ kept small, and alive no longer than needed

def test_pickles_share_stacks():
    def deep(depth):
        if depth:
            return deep(depth - 1)
        return [an_array() for _ in range(200)]

    arrays = deep(40)
    sites = [pp.created_at(array) for array in arrays]
    assert len(set(sites)) == 1
    one, many = (len(pickle.dumps(chosen)) for chosen in (sites[:1], sites))
    assert many < one + 10 * len(sites)

    def line_by_line():
        return [site_here(), site_here(), site_here(), site_here()]

    four = line_by_line()
    first = len(pickle.dumps(four[:1]))
    assert len(pickle.dumps(four)) < 1.5 * first


def test_what_is_not_changed_is_not_copied():
    site = site_here()
    assert copy.copy(site) is site
    assert copy.deepcopy(site) is site


def test_sites_from_another_process(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import pickle, sys\n"
        "import pytato_provenance as pp; pp.enable()\n"
        "import pytato as pt\n"
        f"x = {MAKE}\n"
        "with open(sys.argv[1], 'wb') as file:\n"
        "    pickle.dump([x, x + 1, pp.created_at(x)], file)\n")
    pickled = tmp_path / "pickled"
    run_python(str(program), str(pickled))
    program.unlink()
    x, y, site = pickle.loads(pickled.read_bytes())
    assert pp.created_at(x) is site
    assert where(site) == (str(program), 4, "<module>")
    assert site.user_frame.line == f"x = {MAKE}"
    assert where(pp.created_at(y))[1] == 6

# }}}


def test_frames_read_and_compare_like_plain_objects():
    frame = site_here().frames[0]
    assert isinstance(frame, Frame)
    again = pickle.loads(pickle.dumps(frame))
    assert again.plain() == frame.plain()
    assert random.choice([frame]).plain()[0] == __file__
