"""Words of earlier contracts in the source of a package, put into those of today."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from gradestack.errors import ConfigError
from gradestack.patterns import compile_later
from gradestack.testing.declarations import RENAMED

_OF_INSTANCE = {"self", "super()"}
_OF_TOTALS = "(self, totals)"
"""Parameters of a method that was given each total by its own name."""
_FOREIGN_PATH = compile_later(r"(^|/)(\.|site-packages/)")


_NEW_NAMES = {
    "UNDER_WAY": "IN_PROGRESS",
    "Looks": "Watchdog, with poll() in place of look()",
    "looked_at": "watchdog",
    "SECONDS_BETWEEN_LOOKS": "SECONDS_BETWEEN_POLLS",
}
"""Names that ``gradestack`` had -> those it has."""
_NEW_BLOCKS = {"Series": "Curve({title: points}, title)", "TaskList": "Table"}
"""Blocks of panels that pages had -> those they have."""
_OF_REPORT = {
    "report.told": "report.warnings",
    "report.held": "report.row_buffer",
    "report.apart": "report.copy",
    "report.only": "report.filter",
    "index.given": "index.reasons",
    "index.quiet": "index.without_calls",
    "index.place": "index.first_byte",
}
"""Names that a ``Report``, or the index of one, had -> those it has, where it is called ``report``
or ``index``.
"""


class Edit(NamedTuple):
    """Bytes of a source, and the text in their place."""

    start: int
    end: int
    text: str


class Change(NamedTuple):
    """One word of an earlier contract, and what becomes of it."""

    line: int
    message: str
    edits: tuple[Edit, ...]
    """Empty where it is left to its author."""


def upgrade(path: Path, *, dry_run: bool = False) -> tuple[list[str], list[str]]:
    """Put today's words into a Python file, or all files below a folder.

    Returns:
        What is changed, and what is left to be done by hand, each as ``FILE:LINE old -> new``.
    """
    changed = list[str]()
    left = list[str]()
    try:
        sources = {file: _Source(file) for file in _list_files(path)}
        kinds = _kinds_of(node for source in sources.values() for node in ast.walk(source.tree))
        for file, source in sources.items():
            changes = sorted(_list_changes(source, kinds))
            for change in changes:
                texts = changed if change.edits else left
                texts.append(f"{file}:{change.line} {change.message}")
            edits = {edit for change in changes for edit in change.edits}
            edited = source.edited(edits)
            ast.parse(edited, file)
            if edited != source.content and not dry_run:
                file.write_bytes(edited)
    except (OSError, SyntaxError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be upgraded: {error}", *changed) from error
    return changed, left


def _list_files(path: Path) -> list[Path]:
    """List the Python files of a path, except hidden ones and installed packages."""
    if path.is_file():
        return [path]
    files = []
    for file in sorted(path.rglob("*.py")):
        relative_path = file.relative_to(path)
        if not _FOREIGN_PATH.search(relative_path.as_posix()):
            files.append(file)
    if not files:
        raise ConfigError(f"{path}: no Python file is there; name one, or the folder of a package")
    return files


class _Source:
    """A Python file, and the places of its syntax in bytes."""

    def __init__(self, file: Path) -> None:
        self.content = file.read_bytes()
        self.tree = ast.parse(self.content, file)
        lines = self.content.splitlines(keepends=True)
        self._line_starts = [0, *accumulate(map(len, lines))]

    def line_start(self, line: int) -> int:
        """Return the first byte of a line, counted from 1."""
        return self._line_starts[line - 1]

    def start(self, node: Any) -> int:
        """Return the first byte of a node."""
        return self.line_start(node.lineno) + int(node.col_offset)

    def end(self, node: Any) -> int:
        """Return the byte behind a node."""
        return self.line_start(node.end_lineno) + int(node.end_col_offset)

    def edited(self, edits: Iterable[Edit]) -> bytes:
        """Return the content with edits made, the last ones first."""
        content = self.content
        for start, end, text in sorted(edits, reverse=True):
            content = content[:start] + text.encode() + content[end:]
        return content


def _kinds_of(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Return the classes that derive from a contract, at one or several removes, and which."""
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    kinds = {"Aggregator": "aggregator", "Grader": "grader", "Reporter": "reporter"}
    for node in classes * 9:  # at so many removes
        for base in node.bases:
            name = ast.unparse(base).rpartition(".")[2]
            if name in kinds:
                kinds[node.name] = kinds[name]
    return kinds


def _list_changes(source: _Source, kinds: Mapping[str, str]) -> Iterator[Change]:
    """Yield the changes that a source needs in its imports and in members of classes."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and node.module == "gradestack":
            for alias in node.names:
                if alias.name in _NEW_NAMES:
                    change = f"{alias.name} -> {_NEW_NAMES[alias.name]}; no rule does it"
                    yield Change(node.lineno, change, ())
        if isinstance(node, ast.Attribute) and ast.unparse(node) in _OF_REPORT:
            old = ast.unparse(node)
            end = source.end(node)
            edit = Edit(source.start(node), end, _OF_REPORT[old])
            yield Change(node.lineno, f"{old} -> {_OF_REPORT[old]}", (edit,))
        yield from _changes_of_block(node)
        if isinstance(node, ast.ClassDef) and node.name in kinds:
            kind = kinds[node.name]
            yield from _changes_of_class(source, node, RENAMED[kind])


def _changes_of_block(node: ast.AST) -> Iterator[Change]:
    """Yield a change for a block of panels that pages no longer have."""
    if not isinstance(node, ast.Attribute) or ast.unparse(node.value) != "blocks":
        return
    if node.attr in _NEW_BLOCKS:
        change = f"blocks.{node.attr} -> blocks.{_NEW_BLOCKS[node.attr]}; no rule does it"
        yield Change(node.lineno, change, ())


def _changes_of_class(
    source: _Source, node: ast.ClassDef, words: Mapping[str, str]
) -> Iterator[Change]:
    """Yield the changes of a class: a renamed member where it is defined, and each of its uses."""
    uses = [
        use
        for use in ast.walk(node)
        if isinstance(use, ast.Attribute)
        and use.attr in words
        and ast.unparse(use.value) in _OF_INSTANCE
    ]
    used = {use.attr for use in uses}
    for member in node.body:
        for name in _names_of(member) & words.keys():
            edits = tuple(_edits_of_member(source, member, name, words[name], name in used))
            by_hand = "" if edits else "; no rule does it"
            yield Change(member.lineno, f"{name} -> {words[name]}{by_hand}", edits)
    for use in uses:
        new = words[use.attr]
        edits = ()
        if "(self" in new and _OF_TOTALS not in new:  # it is called in the same way
            end = source.end(use)
            start = end - len(use.attr)
            edits = (_rename(start, end, new),)
        yield Change(use.lineno, f"{use.attr} -> {new}", edits)


def _names_of(member: Any) -> set[str]:
    """Return the names that a member of a class body defines."""
    if isinstance(member, ast.FunctionDef):
        return {member.name}
    targets = getattr(member, "targets", [getattr(member, "target", None)])
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _edits_of_member(
    source: _Source, member: Any, name: str, new: str, is_used: bool
) -> Iterator[Edit]:
    """Yield the edits of a member with a name of an earlier contract; none without a rule."""
    if isinstance(member, ast.FunctionDef):
        is_of_totals = _OF_TOTALS in new
        has_rule = not is_of_totals or _has_plain_parameters(member)
        if "(self" not in new or not has_rule:
            return
        behind_def = source.start(member) + len("def")
        start = source.content.index(name.encode(), behind_def)
        yield _rename(start, start + len(name), new)
        if is_of_totals:
            yield from _edits_of_totals(source, member)
        return
    start = source.line_start(member.lineno)
    end = source.line_start(member.end_lineno + 1)
    rest = source.content[source.end(member) : end].strip()
    is_alone = not rest or rest.startswith(b"#")
    if new.startswith("nothing") and is_alone and not is_used:
        yield Edit(start, end, "")


def _rename(start: int, end: int, new: str) -> Edit:
    """Return the edit that puts a new name, which may have parameters, in an old one's place."""
    name, _, _ = new.partition("(")
    return Edit(start, end, name)


def _has_plain_parameters(method: ast.FunctionDef) -> bool:
    """Return whether a rule can rename the parameters: only names, or only ``**totals``."""
    signature = method.args
    has_names = bool(signature.args[1:] or signature.kwonlyargs)
    has_defaults = bool(signature.defaults or any(signature.kw_defaults))
    is_mixed = has_names and signature.kwarg is not None
    is_on_one_line = method.body[0].lineno == method.lineno
    return bool(signature.args) and not (
        signature.vararg or has_defaults or is_mixed or is_on_one_line
    )


def _edits_of_totals(source: _Source, method: ast.FunctionDef) -> Iterator[Edit]:
    """Yield edits that make lines of parameters: ``right = totals["right"]``."""
    signature = method.args
    first = method.body[0]
    self_parameter, *parameters = [*signature.args, *signature.kwonlyargs]
    names = [parameter.arg for parameter in parameters]
    if signature.kwarg is not None:
        parameters.append(signature.kwarg)
    last = parameters[-1] if parameters else self_parameter
    is_typed = last.annotation is not None and b"Mapping" in source.content
    annotation = ": Mapping[str, float]" if is_typed else ""
    totals = "totals"
    if signature.kwarg is not None:
        totals = signature.kwarg.arg
    start = source.end(self_parameter)
    end = source.end(last)
    yield Edit(start, end, f", {totals}{annotation}")
    has_docstring = ast.get_docstring(method) is not None
    line = (first.end_lineno or 0) + 1 if has_docstring else first.lineno
    indent = " " * first.col_offset
    lines = [f'{indent}{name} = totals["{name}"]\n' for name in names]
    at = source.line_start(line)
    yield Edit(at, at, "".join(lines))
