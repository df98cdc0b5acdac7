"""Imports point downwards, and modules stay small."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

import pytato_provenance


PACKAGE = Path(pytato_provenance.__file__).parent
MODULES = {
    ".".join(("pytato_provenance", *path.relative_to(PACKAGE).with_suffix("").parts))
    .removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))}

HOSTS = {"pytato", "loopy", "arraycontext", "pytools", "pymbolic", "numpy", "pyopencl"}

# What reads a saved record must work where there is no host.
WITHOUT_HOST = ("_patching", "call_frames", "call_tree", "capture", "decoration",
                "diagnostic", "frames", "json_reader", "record", "record_json",
                "regions", "report", "sites", "source", "tooltips")


def only_for_types(tree: ast.Module) -> set[ast.AST]:
    return {node for parent in ast.walk(tree)
            if isinstance(parent, ast.If) and "TYPE_CHECKING" in ast.dump(parent.test)
            for node in ast.walk(parent)}


@functools.cache
def imports(name: str, *, late: bool = True) -> set[str]:
    """The absolute names of modules that *name* imports when it runs.

    :arg late: with those that a function imports when it is called.
    """
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    skipped = only_for_types(tree)
    if not late:
        skipped |= {inner for node in ast.walk(tree)
                    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                    for inner in ast.walk(node)}
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import"
            assert node.module
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names
                         if f"{node.module}.{alias.name}" in MODULES)
    return found


def top(name: str) -> str:
    return name.partition(".")[0]


def of(name: str) -> str:
    """The module of the package, or the package in it: ``report`` for all of it."""
    return name.split(".")[1] if "." in name else ""


def closure(name: str, *, late: bool) -> set[str]:
    """What *name* leads to, packages that lie on the way included."""
    seen: set[str] = set()
    pending = [name]
    while pending:
        current = pending.pop()
        if current in seen or current not in MODULES:
            seen.add(current)
            continue
        seen.add(current)
        pending.extend(imports(current, late=late))
        if current.count(".") > 1:
            pending.append(current.rpartition(".")[0])
    return seen - {"pytato_provenance"}


@pytest.mark.parametrize("name", [n for n in MODULES if of(n) in WITHOUT_HOST])
def test_what_knows_no_host(name):
    reached = {top(module) for module in closure(name, late=False)}
    assert reached & HOSTS == set(), name
    assert {top(module) for module in imports(name)} & HOSTS == set(), name


def test_importing_the_package_imports_no_host():
    assert {top(name) for name in imports("pytato_provenance", late=False)} & HOSTS == (
        set())


def test_only_lowering_imports_loopy_and_only_contexts_arraycontext():
    users = {library: {of(name) for name in MODULES
                       if library in {top(module) for module in imports(name)}}
             for library in ("loopy", "arraycontext")}
    assert users["loopy"] <= {"lowering", "compilation"}
    assert users["arraycontext"] <= {
        "array_context", "context_overrides", "context_transfer", "frozen_programs"}


BELOW = {
    # Each imports nothing of what stands before it.
    "cli": (), "report": ("cli", "instrument", "lowering", "_host", "tags"),
    "record": ("cli", "report", "instrument", "tags", "_host"),
    "instrument": ("cli", "report", "record"),
    "patch_points": ("cli", "report", "instrument"),
    "transform": ("cli", "report", "lowering"),
    "tags": ("cli", "report", "instrument", "patch_points", "dispatch", "scope",
             "transform", "lowering", "capture"),
    "_host": ("tags", "sites", "instrument", "transform"),
    "capture": ("instrument", "scope", "tags", "_host"),
    "call_tree": ("capture", "instrument", "scope", "tags", "_host"),
    "sites": ("call_tree", "capture", "tags", "scope", "_host"),
    "call_frames": ("sites", "call_tree", "tags"),
    "source": ("frames", "sites", "call_tree"),
    "frames": ("sites", "source", "call_tree", "capture"),
    "_patching": ("instrument", "patch_points", "sites", "tags"),
    "diagnostic": ("frames", "sites", "source", "record"),
}


@pytest.mark.parametrize("name", BELOW)
def test_imports_point_downwards(name):
    own = [module for module in MODULES if of(module) == name]
    assert own, name
    reached = {of(found) for module in own for found in closure(module, late=False)
               if found in MODULES} - {name}
    assert reached & set(BELOW[name]) == set()


def test_no_cycle_at_import_time():
    state: dict[str, str] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert state.get(name) != "open", " -> ".join((*path, name))
        if name in state:
            return
        state[name] = "open"
        for found in sorted(imports(name, late=False)):
            # A package that imports what is in it, and that in turn its package's
            # other modules, is one piece.
            if found in MODULES and found != "pytato_provenance" and (
                    not f"{name}.".startswith(f"{found}.")):
                visit(found, (*path, name))
        state[name] = "done"

    for name in MODULES:
        visit(name, ())


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_small_and_begins_as_all_do(name):
    text = MODULES[name].read_text(encoding="utf-8")
    assert text.count("\n") <= 400, "split it: about 400 lines are enough"
    assert "utils" not in MODULES[name].name
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "say what it is for"
    first = tree.body[1] if len(tree.body) > 1 else None
    assert isinstance(first, ast.ImportFrom)
    assert first.module == "__future__"
    assert [alias.name for alias in first.names] == ["annotations"]


@pytest.mark.parametrize("name", MODULES)
def test_locks_let_the_same_thread_in_again(name):
    # A signal handler, or a finaliser, may make arrays while ours is held.
    text = MODULES[name].read_text(encoding="utf-8")
    assert "threading.Lock()" not in text
