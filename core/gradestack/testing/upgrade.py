"""Words of earlier contracts in the source of a package, put into those of today."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

from gradestack.api import RENAMED
from gradestack.errors import ConfigError

Edits = tuple[tuple[int, int, str], ...]  # first byte, one past the last, what stands there
Change = tuple[int, str, Edits]  # line, what is said; no edits where it is left to its author
_SELF, _OF_TOTALS = {"self", "super()"}, "(self, totals)"
_NOT_OWN = re.compile(r"(^|/)(\.|site-packages/)")


def upgrade(path: Path, *, dry_run: bool = False) -> tuple[list[str], list[str]]:
    """Put today's words into a Python file, or all files below a folder.

    Returns what is changed, and what is left to be done by hand, each as ``FILE:LINE old -> new``.
    """
    below = sorted(path.rglob("*.py"))
    own = [each for each in below if not _NOT_OWN.search(each.relative_to(path).as_posix())]
    files = [path] if path.is_file() else own
    if not files:
        raise ConfigError(f"{path}: no Python file is there; name one, or the folder of a package")
    changed, left = list[str](), list[str]()
    try:
        sources = {each: each.read_bytes() for each in files}
        trees = {each: ast.parse(sources[each], each) for each in files}
        kinds = _kinds_of(node for tree in trees.values() for node in ast.walk(tree))
        for file, tree in trees.items():
            source, changes = sources[file], sorted(_changes(sources[file], tree, kinds))
            for start, end, text in sorted({e for *_, edits in changes for e in edits})[::-1]:
                source = source[:start] + text.encode() + source[end:]
            ast.parse(source, file)
            for line, said, edits in changes:
                (changed if edits else left).append(f"{file}:{line} {said}")
            if source != sources[file] and not dry_run:
                file.write_bytes(source)
    except (OSError, SyntaxError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be upgraded: {error}", *changed) from error
    return changed, left


def _kinds_of(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Return the classes that derive from a contract, at one or several removes, and which."""
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    kinds = {"Aggregator": "aggregator", "Grader": "grader"}
    for node in classes * 9:  # at so many removes
        bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
        for base in kinds.keys() & bases:
            kinds[node.name] = kinds[base]
    return kinds


def _changes(source: bytes, tree: ast.Module, kinds: Mapping[str, str]) -> Iterator[Change]:
    starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef) or node.name not in kinds:
            continue
        words = RENAMED[kinds[node.name]]
        found = [each for each in ast.walk(node) if isinstance(each, ast.Attribute)]
        uses = [each for each in found if each.attr in words and ast.unparse(each.value) in _SELF]
        for member in node.body:
            for name in _names_of(member) & words.keys():
                used = any(each.attr == name for each in uses)
                yield _change_of(source, starts, member, (name, words[name]), used)
        for each in uses:
            new, end = words[each.attr], _end(starts, each)
            rename = (end - len(each.attr), end, new.partition("(self")[0])
            same_call = "(self" in new and _OF_TOTALS not in new
            yield each.lineno, f"{each.attr} -> {new}", (rename,) if same_call else ()


def _change_of(source: bytes, starts: list[int], member: Any, words: Any, used: bool) -> Change:
    """Return what becomes of a member of a class that has a name of an earlier contract."""
    (name, new), is_method, end = words, isinstance(member, ast.FunctionDef), _end(starts, member)
    begin = starts[member.lineno - 1] + member.col_offset
    if is_method and "(self" in new:
        at = begin + source[begin:].index(name.encode(), len("def"))
        rename = (at, at + len(name), new.partition("(")[0])
        more = _with_totals(source, starts, member) if _OF_TOTALS in new else ()
        if more is not None:
            return member.lineno, f"{name} -> {new}", (rename, *more)
    rest = source[end : starts[member.end_lineno]].strip()
    if new.startswith("nothing") and not (used or is_method or rest[:1] not in (b"", b"#")):
        edits = ((starts[member.lineno - 1], starts[member.end_lineno], ""),)
        return member.lineno, f"{name} -> {new}", edits
    return member.lineno, f"{name} -> {new}; no rule does it", ()


def _names_of(member: Any) -> set[str]:
    targets = getattr(member, "targets", [getattr(member, "target", None)])
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    return {member.name} if isinstance(member, ast.FunctionDef) else names


def _end(starts: list[int], node: Any) -> int:
    return int(starts[node.end_lineno - 1] + node.end_col_offset)


def _with_totals(source: bytes, starts: list[int], method: Any) -> Any:
    """Return edits that make lines of parameters; None where there is no rule for them."""
    given, body = method.args, method.body[0]
    names = [each.arg for each in (*given.args[1:], *given.kwonlyargs)]
    odd = given.vararg or given.defaults or any(given.kw_defaults) or (names and given.kwarg)
    if odd or not given.args or body.lineno == method.lineno:
        return None
    last = [*given.args, *given.kwonlyargs, *filter(None, [given.kwarg])][-1]
    typed = ": Mapping[str, float]" if last.annotation and b"Mapping" in source else ""
    whole = given.kwarg.arg if given.kwarg else "totals"
    parameter = (_end(starts, given.args[0]), _end(starts, last), f", {whole}{typed}")
    at = starts[body.lineno - 1 if ast.get_docstring(method) is None else body.end_lineno]
    lines = "".join(f'{" " * body.col_offset}{name} = totals["{name}"]\n' for name in names)
    return [parameter, (at, at, lines)]
