"""A run's findings as data: back and forth, damaged files, gathering."""

from __future__ import annotations

import ast
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from records import large_record, records, small_record
from running import ROOT

from pytato_provenance.collect import SiteTable
from pytato_provenance.diagnostic import RecordError
from pytato_provenance.path_names import PathNames
from pytato_provenance.record import FrameRecord, Record, SiteRecord
from pytato_provenance.record_json import (
    VERSION,
    read_record,
    record_from_json,
    record_to_json,
)
from pytato_provenance.sites import UNKNOWN, foreign_site, merge_sites, synthetic_site


if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


# {{{ writing and reading

def test_round_trip() -> None:
    record = small_record()
    text = record_to_json(record)
    assert record_from_json(text) == record
    assert text.isascii()
    # One entry a line: differences between two runs are readable.
    assert len(text.splitlines()) > len(record.sites)


@given(records())
def test_round_trip_of_anything(record: Record) -> None:
    assert record_from_json(record_to_json(record)) == record


def test_stacks_share_their_calls() -> None:
    record = large_record(100_000, 1000, 100)
    text = record_to_json(record)
    assert len(text) < 5_000_000
    assert len(json.loads(text)["calls"]) == 1000 + 100
    assert record_from_json(text) == record


def test_deep_stack() -> None:
    stack = tuple(FrameRecord("a.py", n, function="f") for n in range(1, 20_000))
    record = Record("a.py", sites=(SiteRecord("known", stack),))
    assert record_from_json(record_to_json(record)) == record


def test_read(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text(record_to_json(small_record()))
    assert read_record(str(path)) == small_record()

# }}}


# {{{ damaged files

@pytest.mark.parametrize(("text", "message"), [
    (b"", "is not JSON"), (b"\xff\xfe\x00", "is not JSON"), (b"[1", "is not JSON"),
    (b"[" * 100_000, "is not JSON"), (b"[]", "should be an object"),
    (b"null", "should be an object"), (b"{}", "is not a record"),
    (b'{"format": 1}', "is not a record"),
    (b'{"format": "pytato_provenance record"}', "an entry 'version'"),
])
def test_not_a_record(text: bytes, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        record_from_json(text, "x.json")


def test_later_version() -> None:
    data = json.loads(record_to_json(small_record()))
    data["version"] = VERSION + 1
    with pytest.raises(RecordError, match=r"install a later pytato_provenance"):
        record_from_json(json.dumps(data))


def test_what_later_releases_may_add_is_ignored() -> None:
    data = json.loads(record_to_json(small_record()))
    data["addition"] = {}
    data["sites"][0]["addition"] = 1
    data["programs"][0]["statements"][0]["addition"] = 1
    assert record_from_json(json.dumps(data)) == small_record()


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(data, (dict, list)):
        for key in data if isinstance(data, dict) else range(len(data)):
            yield from places(data[key], (*path, key))


WRONG = (None, True, -2, 10**6, 1.5, "x", [], [1], {}, {"kind": "x"})


def test_damage_is_named() -> None:
    """Whatever is put in any place: a record, or one clear error."""
    text = record_to_json(small_record())
    refused = 0
    for path in places(json.loads(text)):
        for wrong in WRONG if path else ():
            data = json.loads(text)
            owner = data
            for key in path[:-1]:
                owner = owner[key]
            owner[path[-1]] = wrong
            try:
                record = record_from_json(json.dumps(data), "x.json")
            except RecordError as error:
                refused += 1
                assert str(error).startswith("x.json ")
                assert "\n" not in str(error)
            else:
                # What was read can be written.
                assert record_from_json(record_to_json(record)) == record
    assert refused > 1000


def test_place_of_damage() -> None:
    data = json.loads(record_to_json(small_record()))
    data["programs"][0]["statements"][1]["sites"][0] = 99
    with pytest.raises(RecordError) as caught:
        record_from_json(json.dumps(data), "x.json")
    assert str(caught.value) == (
        "x.json is damaged: programs[0].statements[1].sites[0] should be an integer "
        "from 0 to 6")

# }}}


# {{{ gathering sites

def test_site_table(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("first\nsecond\n")
    one = foreign_site([(str(script), 1, "f", "first")])
    two = foreign_site([(str(script), 1, "f", "first"),
                        (str(script), 2, "g", "second")])
    table = SiteTable(PathNames(str(tmp_path)))
    assert table.numbers([one]) == (0,)
    assert table.numbers([merge_sites([one, two])]) == (0, 1)
    assert table.numbers([two, one, two]) == (1, 0)
    assert table.numbers([UNKNOWN, synthetic_site("a pass")]) == (2, 3)
    assert [str(site) for site in table.records] == [
        "script.py:1 in f", "script.py:2 in g", "unknown", "made by a pass"]
    assert table.records[1].frames[1].text == "first"
    record = Record("script.py", sites=tuple(table.records))
    assert record_from_json(record_to_json(record)) == record


def test_path_names(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "link.py").symlink_to(root / "sub/real.py")
    names = PathNames(str(root))
    assert names.shown(str(root / "a.py")) == "a.py"
    assert names.shown(str(root / "sub/../sub/a.py")) == "sub/a.py"
    assert names.shown("sub/a.py") == "sub/a.py"
    assert names.shown(str(tmp_path / "link.py")) == "sub/real.py"
    assert names.shown(str(tmp_path / "project_two/a.py")) == "<elsewhere>/a.py"
    assert names.shown("<stdin>") == "<stdin>"
    assert names.shown(os.__file__) == "<python>/os.py"
    assert names.shown(pytest.__file__) == "<site-packages>/pytest/__init__.py"
    for name in ("nul\0.py", "new\nline.py", "\udcff.py", "", "/", ".."):
        assert not names.shown(name).startswith("/")
    assert PathNames(str(root), absolute=True).shown("a.py") == str(root / "a.py")
    assert PathNames("/").shown("/a.py") == "a.py"

# }}}


def test_no_host_is_imported() -> None:
    """A saved record is read where there is none."""
    package = ROOT / "pytato_provenance"
    pending = [package / "record.py", *(package / "report").glob("*.py"),
               package / "cli.py", package / "outputs.py"]
    seen: set[Path] = set()
    while pending:
        path = pending.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in _imported(ast.parse(path.read_text())):
            assert name.partition(".")[0] in {
                *sys.stdlib_module_names, "pytato_provenance"}, (path, name)
            inner = ROOT / (name.replace(".", "/") + ".py")
            if inner.exists():
                pending.append(inner)


def _imported(tree: ast.Module) -> Iterator[str]:
    """What is imported when the module is, type checkers' blocks excepted."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            for alias in node.names:
                yield node.module
                yield f"{node.module}.{alias.name}"
