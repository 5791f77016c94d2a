"""Count how many random faults in the kernel the tests find.

    python benchmarks/mutants.py record OUT.jsonl [--count 200] [--seed 20261129]
    python benchmarks/mutants.py compare EARLIER.jsonl OUT.jsonl

A mutant is ``core/gradestack`` with one small fault: a comparison flipped or moved by one, a
condition negated, ``and`` for ``or``, plus for minus, a number or a key changed, ``None`` returned,
a statement left out. Sentences are not changed: their wording is nobody's contract. Both modes work
in a copy of the last commit below ``build/mutants``, where the tests run once under coverage, and
then, for each mutant, at most forty tests that reach its line: those of its room first, and the
quick ones before the slow ones. Tests that start a program of its own are left out, as are tests
marked ``proof`` or ``faults`` and ``test_house.py``, which reads the source. A mutant is killed
when a test fails or the time is up.

OUT has one line for each mutant; the same command goes on where it was interrupted. ``compare``
makes the mutants of an earlier record again, where their statement still stands, and tries those
that were killed: first with the test that killed it, where that is still there, then with what is
left of the tests that reached it, then with the golden runs. No coverage is recorded for that.
"""

import argparse
import ast
import collections
import dataclasses
import functools
import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
KERNEL = "core/gradestack"
FOLDERS = ("tests/core", "tests/cases", "tests/conformance", "tests/golden")
GOLDEN = "tests/golden/test_golden.py::test_a_run_prints"
MARKED = "not proof and not faults and not oracles and not accessibility"
"""The tests that are run: those of ``make test`` and of ``make slow``."""
LEFT_OUT = "tests/core/test_house.py"
MOST_TESTS, FEWEST_TESTS, MOST_CASES = 40, 15, 40
SECONDS_OF_TESTS = 15.0
MEMORY = 12 << 30
REPORTS = "GRADESTACK_MUTANTS_REPORTS"
"""The environment variable that names the file to which a run of pytest writes its reports."""
ELSEWHERE = {"spawn", "held", "bounded"}
"""Fixtures that start the command line as a program of its own."""
REACHED = """
    SELECT context.context, line_bits.numbits FROM line_bits
    JOIN context ON context.id = line_bits.context_id JOIN file ON file.id = line_bits.file_id
    WHERE file.path LIKE '%/tree/' || ?
"""

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
KEY = re.compile(r"[a-z][a-z_0-9.]*")
REMOVED = (ast.AugAssign, ast.Raise, ast.Delete, ast.Continue, ast.Break)


KEY_FIELDS = ("file", "function", "kind", "old", "new", "repeat")


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One fault: a piece of a function's source and what stands there instead.

    Attributes:
        file: Path below the repository.
        function: Qualified name of the function or class, empty at the module's top.
        kind: The kind of change.
        old: The piece as it stands.
        new: The piece with the fault.
        repeat: How many equal changes of the same function come before.
        line: Line of the piece.
        statement: First line of the statement it is part of.
        start: Byte of the file where the piece begins.
        end: Byte of the file after the piece.
    """

    file: str
    function: str
    kind: str
    old: str
    new: str
    repeat: int
    line: int
    statement: int
    start: int
    end: int

    @property
    def key(self) -> tuple[Any, ...]:
        """The change without its line, by which another commit is searched for it."""
        return tuple(getattr(self, name) for name in KEY_FIELDS)


# Making mutants


def changed_comparisons(node: ast.Compare) -> Iterator[tuple[str, str]]:
    """Flip each comparison of a chain, or move it by one."""
    for index, operator in enumerate(node.ops):
        for other in COMPARISONS[type(operator)]:
            operators = [*node.ops[:index], other(), *node.ops[index + 1 :]]
            yield "comparison", ast.unparse(ast.Compare(node.left, operators, node.comparators))


def changed_constants(node: ast.Constant) -> Iterator[tuple[str, str]]:
    """Change a boolean, a number or a text that is a key."""
    value = node.value
    if isinstance(value, bool):
        yield "constant", repr(not value)
    elif isinstance(value, int | float):
        yield "constant", repr(value + 1)
    elif isinstance(value, str) and KEY.fullmatch(value):
        yield "constant", repr(f"{value}x")


def changed_expressions(node: ast.expr) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each fault an expression can have."""
    if isinstance(node, ast.Compare):
        yield from changed_comparisons(node)
    elif isinstance(node, ast.BoolOp):
        other = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        yield "and/or", ast.unparse(ast.BoolOp(other, node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "negation", ast.unparse(node.operand)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        operator = OPERATORS[type(node.op)]()
        yield "arithmetic", ast.unparse(ast.BinOp(node.left, operator, node.right))
    elif isinstance(node, ast.Constant):
        yield from changed_constants(node)


def changed_statements(node: ast.stmt) -> Iterator[tuple[ast.AST, str, str]]:
    """Yield the piece, the kind and the text of each fault of a statement as a whole."""
    if isinstance(node, ast.Return):
        if node.value is not None and ast.unparse(node.value) != "None":
            yield node, "return", "return None"
    elif isinstance(node, ast.If | ast.While):
        yield node.test, "condition", f"(not ({ast.unparse(node.test)}))"
    elif is_removable(node):
        yield node, "statement", "pass"


def is_removable(node: ast.stmt) -> bool:
    """Say whether a statement can be left out without a name that is missing afterwards."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Await)
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    return isinstance(node, REMOVED)


class Changes(ast.NodeVisitor):
    """Every fault of one module, in the order of its source.

    Annotations, decorators, texts of f-strings, patterns and what is there for types alone stay.
    """

    def __init__(self, file: str, source: bytes) -> None:
        self.file, self.source = file, source
        lines = source.splitlines(keepends=True)
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line))
        self.names: list[str] = []
        self.statement = 1
        self.repeats: collections.Counter[tuple[str, ...]] = collections.Counter()
        self.mutants: list[Mutant] = []
        self.visit(ast.parse(source))

    def add(self, node: Any, kind: str, new: str) -> None:
        """Note a fault."""
        start = self.starts[node.lineno - 1] + node.col_offset
        end = self.starts[node.end_lineno - 1] + node.end_col_offset
        old = self.source[start:end].decode()
        key = (".".join(self.names), kind, old, new)
        mutant = Mutant(self.file, *key, self.repeats[key], node.lineno, self.statement, start, end)
        self.repeats[key] += 1
        self.mutants.append(mutant)

    def visit(self, node: ast.AST) -> None:
        """Note the faults of a node and of what is below it."""
        if isinstance(node, ast.stmt):
            self.statement = node.lineno
            for piece, kind, new in changed_statements(node):
                self.add(piece, kind, new)
        elif isinstance(node, ast.expr):
            for kind, new in changed_expressions(node):
                self.add(node, kind, f"({new})")
        super().visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        """Go on below a node, and come back to its statement."""
        statement = self.statement
        super().generic_visit(node)
        self.statement = statement

    def visit_body(self, node: Any, *parts: ast.AST) -> None:
        """Go on in a definition, whose name is part of the names of what is within."""
        for part in parts:
            self.visit(part)
        self.names.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self.names.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Go on in defaults and body."""
        defaults = [default for default in node.args.kw_defaults if default is not None]
        self.visit_body(node, *node.args.defaults, *defaults)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Go on in the body."""
        self.visit_body(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Go on in the value."""
        if node.value is not None:
            self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Go on, but for docstrings."""
        if not isinstance(node.value, ast.Constant):
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        """Go on, but for imports of types."""
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Stop: the places of what stands in an f-string are wrong before Python 3.12."""

    def visit_MatchValue(self, node: ast.MatchValue) -> None:
        """Stop: a pattern takes no expressions."""


def apply(source: bytes, mutant: Mutant) -> bytes:
    """Put a fault into a module's source."""
    return source[: mutant.start] + mutant.new.encode() + source[mutant.end :]


def is_sound(source: bytes, mutant: Mutant) -> bool:
    """Say whether a module with the fault can be compiled and differs."""
    try:
        tree = ast.parse(apply(source, mutant))
    except SyntaxError:
        return False
    return ast.dump(tree) != ast.dump(ast.parse(source))


def mutants_of(tree: Path) -> Iterator[Mutant]:
    """Yield every fault of the kernel."""
    for path in sorted((tree / KERNEL).rglob("*.py")):
        file = path.relative_to(tree).as_posix()
        yield from Changes(file, path.read_bytes()).mutants


def draw(tree: Path, count: int, seed: int) -> list[Mutant]:
    """Draw mutants by chance, all faults alike."""
    candidates = list(mutants_of(tree))
    random.Random(seed).shuffle(candidates)
    drawn: list[Mutant] = []
    for mutant in candidates:
        if len(drawn) == count:
            break
        if is_sound((tree / mutant.file).read_bytes(), mutant):
            drawn.append(mutant)
    return drawn


# Running tests


def write_report(line: dict[str, Any]) -> None:
    """Add a line to the file of reports; a test may have put something in the place of Path.open."""
    with open(os.environ[REPORTS], "a", encoding="utf-8") as reports:  # noqa: PTH123
        reports.write(json.dumps(line) + "\n")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write how a test went, where this file is loaded into pytest as a plugin."""
    line = {"test": report.nodeid, "outcome": report.outcome, "seconds": report.duration}
    write_report(line)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out tests whose work is done in other processes, where coverage does not look, and
    cases of one function beyond a number.
    """
    counts: collections.Counter[str] = collections.Counter()
    left = []
    for item in items:
        function = item.nodeid.partition("[")[0]
        counts[function] += 1
        is_elsewhere = ELSEWHERE & set(getattr(item, "fixturenames", ()))
        is_listed = item.config.option.collectonly or counts[function] <= MOST_CASES
        if is_listed and not is_elsewhere:
            left.append(item)
    items[:] = left
    if items and items[0].config.option.collectonly:
        lines = [json.dumps({"test": item.nodeid}) + "\n" for item in items]
        Path(os.environ[REPORTS]).write_text("".join(lines), encoding="utf-8")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Write which file cannot be collected."""
    if report.failed:
        line = {"test": f"collecting {report.nodeid}", "outcome": "failed", "seconds": 0.0}
        write_report(line)


def run_git(*arguments: str) -> str:
    """Run git in the repository, and give what it prints."""
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 - our own
    return done.stdout.strip()


class Laboratory:
    """A copy of one commit's tree, and what its tests reach, or those of an earlier commit.

    Attributes:
        tree: The copy.
        recording: The folder with the recording of coverage.
        golden: Tests that are tried on every mutant, when all others have passed.
    """

    def __init__(
        self, commit: str, folders: Sequence[str], place: Path, earlier: str | None = None
    ) -> None:
        self.commit, self.folders = commit, folders
        self.base = place.absolute() / commit[:12]
        self.tree = self.base / "tree"
        self.plugin = self.base / "plugin"  # alone, since benchmarks has a module called coverage
        self.reports = self.base / "reports.jsonl"
        self.recording = self.base if earlier is None else place.absolute() / earlier[:12]
        self.database = self.recording / "coverage"
        self.golden: list[str] = []
        if not self.tree.exists():
            self.unpack()
        if not (self.recording / "recorded").exists():
            self.record()
        self.seconds = self.read_seconds()
        if earlier is not None:
            self.keep_what_is_left()

    def unpack(self) -> None:
        """Copy the commit."""
        self.base.mkdir(parents=True, exist_ok=True)
        archive = self.base / "tree.tar"
        run_git("archive", "-o", str(archive), self.commit)
        with tarfile.open(archive) as tar:
            tar.extractall(self.tree, filter="data")
        archive.unlink()
        self.plugin.mkdir()
        shutil.copy(__file__, self.plugin)

    def environment(self, **variables: str) -> dict[str, str]:
        """Variables under which tests import the copy."""
        packages = [str(self.tree / part) for part in ("core", "plugins", "templates")]
        temporary = self.base / "temporary"
        temporary.mkdir(exist_ok=True)
        variables |= {
            "PYTHONPATH": os.pathsep.join([*packages, str(self.plugin)]),
            "TMPDIR": str(temporary),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # half the time of a start
            REPORTS: str(self.reports),
        }
        left = {
            name: value for name, value in os.environ.items() if not name.startswith("GRADESTACK")
        }
        return left | variables

    def pytest(self, *arguments: str, limit: float | None = None, **variables: str) -> int | None:
        """Run tests in the copy, and give the exit code, or None where the time is up."""
        self.reports.unlink(missing_ok=True)
        plugins = ["-p", "mutants", "-p", "_hypothesis_pytestplugin", "-p", "pytest_timeout"]
        with (self.base / "pytest.log").open("w") as log:
            process = subprocess.Popen(  # noqa: S603 - our own
                [
                    sys.executable,
                    "-m",
                    "pytest",
                    "-q",
                    *plugins,
                    "-p",
                    "no:cacheprovider",
                    "--hypothesis-seed=0",
                    "-m",
                    MARKED,
                    *arguments,
                ],
                cwd=self.tree,
                env=self.environment(**variables),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        confine(process.pid)
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            end_session(process.pid)
            process.wait()

    def record(self) -> None:
        """Run all tests once under coverage."""
        settings = self.base / "coveragerc"
        settings.write_text("[run]\nbranch = false\n")
        measured = ["-p", "pytest_cov", f"--cov={KERNEL}", "--cov-context=test", "--cov-report="]
        self.pytest(
            *measured,
            f"--cov-config={settings}",
            f"--ignore={LEFT_OUT}",
            *self.folders,
            COVERAGE_FILE=str(self.database),
        )
        self.reports.rename(self.base / "tests.jsonl")
        (self.base / "recorded").touch()

    def keep_what_is_left(self) -> None:
        """Forget the tests of the recording that are no more, and note the golden runs."""
        self.pytest("--collect-only", *self.folders)
        lines = self.reports.read_text(encoding="utf-8").splitlines()
        present = {json.loads(line)["test"] for line in lines}
        self.golden = sorted(test for test in present if test.startswith(GOLDEN))
        self.seconds = {test: taken for test, taken in self.seconds.items() if test in present}

    def read_seconds(self) -> dict[str, float]:
        """The tests that passed in the copy, with the seconds they took."""
        seconds: collections.Counter[str] = collections.Counter()
        failed = set()
        for line in (self.recording / "tests.jsonl").read_text(encoding="utf-8").splitlines():
            report = json.loads(line)
            seconds[report["test"]] += report["seconds"]
            if report["outcome"] != "passed":
                failed.add(report["test"])
        return {test: taken for test, taken in seconds.items() if test not in failed}

    @functools.cached_property
    def contexts(self) -> Callable[[str], dict[int, list[str]]]:
        """The function that gives, for a file, the tests that reach each line."""
        database = sqlite3.connect(self.database)

        @functools.cache
        def read(file: str) -> dict[int, list[str]]:
            tests: dict[int, list[str]] = {}
            for context, bits in database.execute(REACHED, [file]):
                for line in lines_of(bits):
                    tests.setdefault(line, []).append(context)
            return tests

        return read

    def tests_at(self, file: str, lines: Iterable[int]) -> set[str]:
        """The tests that reach one of some lines of a file; the empty name is the import."""
        contexts = self.contexts(file)
        names = {name.rpartition("|")[0] for line in lines for name in contexts.get(line, ())}
        return names & {"", *self.seconds}

    def reaching(self, mutant: Mutant) -> tuple[set[str], set[str]]:
        """The tests that reach the mutant's statement, and those that reach its module."""
        lines = range(mutant.statement, mutant.line + mutant.old.count("\n") + 1)
        module = self.tests_at(mutant.file, self.contexts(mutant.file)) - {""}
        reaching = self.tests_at(mutant.file, lines)
        return module if "" in reaching else reaching, module

    def choose(self, mutant: Mutant) -> list[str]:
        """Choose the tests that are tried: of those that reach the mutant, and a few of its module
        where they are few, since a value that is remembered is computed in one test only.
        """
        reaching, module = self.reaching(mutant)
        tests = self.in_turn(mutant, reaching)
        if len(tests) < FEWEST_TESTS:
            others = self.in_turn(mutant, module - reaching)
            tests += others[: FEWEST_TESTS - len(tests)]
        return tests

    def in_turn(self, mutant: Mutant, tests: set[str]) -> list[str]:
        """Order tests: one case of each test function, then another of each, the nearest first,
        up to a number and a time.
        """
        chance = random.Random("/".join(map(str, mutant.key)))
        cases: dict[str, list[str]] = {}
        for test in sorted(tests):
            cases.setdefault(test.partition("[")[0], []).append(test)
        functions = sorted(cases, key=lambda name: self.distance(mutant, name, cases[name]))
        for name in functions:
            chance.shuffle(cases[name])
        chosen: list[str] = []
        total = 0.0
        rounds = max(map(len, cases.values()), default=0)
        for index in range(rounds):
            for name in functions:
                if len(chosen) == MOST_TESTS:
                    return chosen
                if index >= len(cases[name]):
                    continue
                taken = self.seconds[cases[name][index]]
                if chosen and total + taken > SECONDS_OF_TESTS:
                    continue
                chosen.append(cases[name][index])
                total += taken
        return chosen

    def distance(self, mutant: Mutant, function: str, cases: list[str]) -> tuple[int, float]:
        """How far a test function is from a mutant: its room, then the kernel's tests; then how
        long it takes.
        """
        room = Path(mutant.file).relative_to(KERNEL)
        near = f"tests/core/{room.parts[0]}/" if len(room.parts) > 1 else f"test_{room.stem}.py"
        seconds = statistics.median(self.seconds[case] for case in cases)
        if near in function:
            return 0, seconds
        folder = next(n for n, name in enumerate(self.folders) if function.startswith(name))
        return 1 + folder, seconds

    def attempt(self, mutant: Mutant, tests: Sequence[str]) -> str | None:
        """Run tests on a mutant, and name the one that fails; None where none does."""
        path = self.tree / mutant.file
        source, times = path.read_bytes(), path.stat()
        path.write_bytes(apply(source, mutant))
        limit = 60 + 4 * sum(self.seconds.get(test, 5.0) for test in tests)
        try:
            # A module compiled with a fault would stay where size and second of both are the same.
            code = self.pytest("-x", *tests, limit=limit, PYTHONDONTWRITEBYTECODE="1")
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        if code == 0:
            return None
        return "time" if code is None else self.failed_test()

    def failed_test(self) -> str:
        """The first test that failed, or the start where none began."""
        lines = self.reports.read_text(encoding="utf-8") if self.reports.exists() else ""
        reports = map(json.loads, lines.splitlines())
        return next((each["test"] for each in reports if each["outcome"] == "failed"), "start")


def lines_of(bits: bytes) -> Iterator[int]:
    """The lines of a bitmap of coverage."""
    for index, byte in enumerate(bits):
        for bit in range(8):
            if byte >> bit & 1:
                yield 8 * index + bit


def confine(process: int) -> None:
    """Let a run of tests take its turn, and not all memory."""
    os.setpriority(os.PRIO_PROCESS, process, 10)
    resource.prlimit(process, resource.RLIMIT_AS, (MEMORY, MEMORY))


def end_session(leader: int) -> None:
    """End what a run of tests left behind."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


# Records


def read_record(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read a record's header and its lines."""
    if not path.exists():
        return {}, []
    header, *lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return header, lines


def write_line(path: Path, line: dict[str, Any]) -> None:
    """Add a line to a record."""
    with path.open("a", encoding="utf-8") as record:
        record.write(json.dumps(line) + "\n")


def describe(mutant: Mutant) -> dict[str, Any]:
    """The fields of a mutant that a record has."""
    fields = dataclasses.asdict(mutant)
    return {name: fields[name] for name in fields if name not in {"statement", "start", "end"}}


def judge(
    laboratory: Laboratory, mutant: Mutant, known: Mutant, first: str | None
) -> dict[str, Any]:
    """Try a mutant, with one test before the others where one is named.

    ``known`` is the mutant in the tree of the recording, whose lines may be others.
    """
    began = time.monotonic()
    line = describe(mutant) | {"tests": 0}
    attempts = [[first] if first in laboratory.seconds else []]
    attempts += [laboratory.choose(known), laboratory.golden]
    killer = None
    for tests in attempts:
        if tests and killer is None:
            line["tests"] += len(tests)
            killer = laboratory.attempt(mutant, tests)
    line["status"] = "killed" if killer else "survived" if line["tests"] else "not reached"
    line["by"] = killer
    line["seconds"] = round(time.monotonic() - began, 1)
    return line


Trial = tuple[Mutant | None, Mutant, dict[str, Any]]
"""A mutant, None where its statement is gone; the mutant in the tree of the recording; and its line
of the earlier record.
"""


def go_on(laboratory: Laboratory, trials: Sequence[Trial], header: Any, output: Path) -> None:
    """Try the mutants that a record does not have yet."""
    present, lines = read_record(output)
    if not present:
        write_line(output, header)
    elif present != header:
        sys.exit(f"{output}: is a record of {present}, not of {header}; name another file")
    for mutant, known, earlier in trials[len(lines) :]:
        if mutant is None:
            line = earlier | {"status": "gone", "by": None}
        else:
            line = judge(laboratory, mutant, known, earlier.get("by"))
        line["earlier"] = earlier.get("by")
        write_line(output, line)
        print(f"{line['status']:11} {line['file']}:{line['line']} {line['kind']}", flush=True)


def find_again(laboratory: Laboratory, lines: Iterable[dict[str, Any]]) -> list[Trial]:
    """Find the mutants that were killed in today's tree."""
    today = {mutant.key: mutant for mutant in mutants_of(laboratory.tree)}
    before = {mutant.key: mutant for mutant in mutants_of(laboratory.recording / "tree")}
    killed = [line for line in lines if line["status"] == "killed"]
    keys = [tuple(line[name] for name in KEY_FIELDS) for line in killed]
    return [(today.get(key), before[key], line) for key, line in zip(keys, killed, strict=True)]


def print_counts(output: Path) -> None:
    """Print how many mutants were killed."""
    header, lines = read_record(output)
    counts = collections.Counter(line["status"] for line in lines)
    texts = [f"{count} {status}" for status, count in counts.most_common()]
    print(f"{len(lines)} mutants, seed {header['seed']}: {', '.join(texts)}")


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="mode", required=True)
    record = commands.add_parser("record", help="draw mutants and try them")
    record.add_argument("output", type=Path)
    record.add_argument("--count", type=int, default=200)
    record.add_argument("--seed", type=int, default=20261129)
    compare = commands.add_parser("compare", help="try an earlier record's killed mutants again")
    compare.add_argument("earlier", type=Path)
    compare.add_argument("output", type=Path)
    for command in (record, compare):
        command.add_argument("--folders", nargs="+", default=FOLDERS, help="the tests that are run")
        command.add_argument("--commit", default="HEAD")
        command.add_argument("--place", type=Path, default=ROOT / "build" / "mutants")
    return parser.parse_args()


def main() -> None:
    """Record mutants, or compare with an earlier record."""
    options = parse_arguments()
    commit = run_git("rev-parse", options.commit)
    if options.mode == "record":
        seed = options.seed
        laboratory = Laboratory(commit, options.folders, options.place)
        drawn = draw(laboratory.tree, options.count, seed)
        trials: list[Trial] = [(mutant, mutant, {}) for mutant in drawn]
    else:
        header, lines = read_record(options.earlier)
        seed = header["seed"]
        laboratory = Laboratory(commit, options.folders, options.place, header["commit"])
        trials = find_again(laboratory, lines)
    header = {"commit": laboratory.commit, "seed": seed, "count": len(trials)}
    go_on(laboratory, trials, header, options.output)
    print_counts(options.output)


if __name__ == "__main__":
    main()
