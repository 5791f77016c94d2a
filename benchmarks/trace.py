"""Count what one record crosses: functions, files and statements of gradestack in one ``grade``.

    python benchmarks/trace.py [FILE]

Grades one record (of ``examples/airline`` unless FILE is given) twice through ``gradestack.grade_files``,
serially and without pages, and traces the second time, when everything is imported. No private name
is used, so that figures of two commits can be compared.
"""

import argparse
import ast
import collections
import json
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import gradestack

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("gradestack", "gradestack_plugins")


class Trace:
    """The functions called and statements executed in gradestack's own files."""

    def __init__(self) -> None:
        self.functions: dict[str, set[str]] = collections.defaultdict(set)
        self.lines: dict[str, set[int]] = collections.defaultdict(set)
        self.paths: dict[str, str] = {}
        self.calls = 0

    def module_of(self, filename: str) -> str | None:
        """Return the path of a file below its package root, or None for other people's files."""
        parts = Path(filename).parts
        for package in PACKAGES:
            if package in parts:
                return "/".join(parts[parts.index(package) :])
        return None

    def enter(self, frame: FrameType, event: str, _: Any) -> Any:
        """Count a call, and trace the lines of the function where it is gradestack's."""
        module = self.module_of(frame.f_code.co_filename)
        if module is None:
            return None
        self.calls += 1
        self.paths[module] = frame.f_code.co_filename
        self.functions[module].add(frame.f_code.co_qualname)
        lines = self.lines[module]

        def on_line(inner: FrameType, inner_event: str, _: Any) -> Any:
            if inner_event == "line":
                lines.add(inner.f_lineno)
            return on_line

        return on_line

    def statements(self, module: str) -> int:
        """Count the executed statements of a file: executed lines on which a statement begins."""
        tree = ast.parse(Path(self.paths[module]).read_text(encoding="utf-8"))
        starts = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)}
        return len(starts & self.lines[module])


def first_record(path: Path, folder: Path) -> Path:
    """Write the first record of a JSON list or of JSON Lines into a file of its own."""
    text = path.read_text(encoding="utf-8")
    target = folder / path.name
    if path.suffix == ".json":
        target.write_text(json.dumps(json.loads(text)[:1]), encoding="utf-8")
    else:
        target.write_text(text.splitlines()[0] + "\n", encoding="utf-8")
    return target


def trace_record(path: Path) -> Trace:
    """Grade the first record of a file twice and trace the second time."""
    trace = Trace()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        record = first_record(path, folder)
        options = ["reports=[]", "engine=serial"]
        gradestack.grade_files([record], output=folder / "first", overrides=options)
        sys.settrace(trace.enter)
        try:
            gradestack.grade_files([record], output=folder / "second", overrides=options)
        finally:
            sys.settrace(None)
    return trace


def print_trace(trace: Trace, most: int) -> None:
    """Print totals by package, then the files with most functions."""
    for package in PACKAGES:
        modules = [name for name in trace.functions if name.split("/")[0] == package]
        functions = sum(len(trace.functions[name]) for name in modules)
        statements = sum(map(trace.statements, modules))
        print(f"{package}: {functions} functions, {statements} statements in {len(modules)} files")
    print(f"calls: {trace.calls}")
    ranking = sorted(trace.functions, key=lambda name: -len(trace.functions[name]))
    for name in ranking[:most]:
        print(
            f"  {len(trace.functions[name]):4} functions {len(trace.lines[name]):5} lines  {name}"
        )


def main() -> None:
    """Trace one record and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    default = ROOT / "examples/airline/results.json"
    parser.add_argument("file", nargs="?", type=Path, default=default)
    parser.add_argument("--most", type=int, default=25, help="files listed (default: 25)")
    options = parser.parse_args()
    print_trace(trace_record(options.file), options.most)


if __name__ == "__main__":
    main()
