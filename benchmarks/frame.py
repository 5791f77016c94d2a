"""What the benchmark scripts share.

Their options, tables, fresh processes, and rounds that take turns.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import workload

HERE = Path(__file__).parent
RECORDS = 200_000
TIMEOUT = 900
"""Seconds one measured process may take."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reach:
    """A ratio to be reached, and what it came to."""

    what: str
    must: float
    aim: float
    measured: float | None
    lower: bool = False
    """True where small is good."""
    why: str = ""
    """Why there is no figure, where there is none."""

    def met(self, bound: float) -> bool:
        """Return whether the figure is as good as ``bound``."""
        if self.measured is None:
            return False
        return self.measured <= bound if self.lower else self.measured >= bound

    @property
    def verdict(self) -> str:
        """Which of the two bounds is met."""
        if self.measured is None:
            return f"not measured: {self.why}"
        return "aim" if self.met(self.aim) else "must" if self.met(self.must) else "missed"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
    """One table: cells are texts already."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    reach: Sequence[Reach] = ()

    def text(self) -> str:
        """Return the table in aligned columns, figures to the right."""
        lines = [list(self.columns), *map(list, self.rows)]
        widths = [max(_width(line[at]) for line in lines) for at in range(len(self.columns))]
        left = [
            at == 0 or any(line[at][:1].isalpha() for line in lines[1:])
            for at in range(len(self.columns))
        ]
        shown = [
            "  ".join(_padded(text, widths[at], left=left[at]) for at, text in enumerate(line))
            for line in lines
        ]
        rule = "  ".join("-" * width for width in widths)
        found = [f"{each.what}: {cell(each.measured)} ({each.verdict})" for each in self.reach]
        return "\n".join([self.title, "", shown[0], rule, *shown[1:], "", *self.notes, *found])

    def markdown(self) -> str:
        """Return the table as Markdown, without its title."""
        head = f"| {' | '.join(self.columns)} |\n|{' --- |' * len(self.columns)}"
        rows = [
            f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
            for row in self.rows
        ]
        return "\n".join([head, *rows, "", *self.notes])

    def json(self) -> dict[str, Any]:
        """Return the table as ``table_of`` takes it."""
        return dataclasses.asdict(self)


def table_of(data: Mapping[str, Any]) -> Table:
    """Return a table from its JSON."""
    return Table(**{**data, "reach": [Reach(**each) for each in data["reach"]]})


def _width(text: str) -> int:
    return sum(0 if unicodedata.combining(letter) else 1 for letter in text)


def _padded(text: str, width: int, *, left: bool) -> str:
    return text + " " * (width - _width(text)) if left else " " * (width - _width(text)) + text


# --------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Options every script has."""

    records: int
    rounds: int
    seed: int
    place: Path
    """Where workload files and outputs go."""
    cache: Path
    """Where virtual environments of peers are kept."""

    def recording(
        self,
        records: int | None = None,
        *,
        tasks: int = workload.TASKS,
        leave_out: Sequence[str] = (),
        wrong: int = workload.USUALLY_WRONG,
    ) -> Path:
        """Return a recording, written when it is first asked for."""
        number = self.records if records is None else records
        left = "".join(f"-without-{each}" for each in leave_out)
        path = self.place / f"recording-{number}-{tasks}-{self.seed}-{wrong}{left}.jsonl"
        if not path.exists():
            part = path.with_suffix(".part")
            workload.write(part, number, self.seed, tasks=tasks, leave_out=leave_out, wrong=wrong)
            part.replace(path)
        return path


Measure = Callable[[Options], Table]


def scaled(records: int) -> int:
    """Return a number of records, made smaller when ``GRADESTACK_BENCH_RECORDS`` says so."""
    given = os.environ.get("GRADESTACK_BENCH_RECORDS")
    return min(records, int(given)) if given else records


def main(measure: Measure, about: str | None, *, records: int = RECORDS, rounds: int = 3) -> int:
    """Run a script: print its table, or give it to whoever collects it.

    Args:
        measure: Makes the table.
        about: The script's docstring.
        records: Its usual number of records.
        rounds: Its usual number of rounds.
    """
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--records", type=int, default=None, help=f"default: {records}")
    parser.add_argument(
        "--rounds", type=int, default=rounds, help="every item is measured so often, in turns"
    )
    parser.add_argument("--seed", type=int, default=workload.SEED)
    parser.add_argument(
        "--place", type=Path, help="directory for recordings and outputs; default: a temporary one"
    )
    parser.add_argument(
        "--cache", type=Path, help="directory that keeps the virtual environments of peers"
    )
    parser.add_argument(
        "--json", type=Path, help="write the table to this file instead of printing it"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gradestack-bench-") as temporary:
        place = given.place or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        table = measure(
            Options(
                records=given.records or scaled(records),
                rounds=given.rounds,
                seed=given.seed,
                place=place,
                cache=given.cache or place / "environments",
            )
        )
    if given.json is None:
        print(table.text())
    else:
        given.json.write_text(json.dumps(table.json()), encoding="utf-8")
    return 0


# -------------------------------------------------------------------------------------------- proce


class ChildFailed(Exception):
    """A measured process failed; the text is the last thing it said."""


def cores() -> list[int]:
    """Return the cores this process may use."""
    return (
        sorted(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else list(range(os.cpu_count() or 1))
    )


def one_core() -> list[int]:
    """Return the core that work of one core is pinned to.

    The last, the first has most interrupts.
    """
    return cores()[-1:]


def without_places(text: str) -> str:
    """Return a message without addresses and paths, which are of one machine only."""
    return re.sub(r"\w+://\S+|(?<![\w.])(?:/[\w.+@-]+){2,}/?", "…", text)


def child(
    job: Mapping[str, Any], *, script: str = "jobs.py", python: str | Path = sys.executable
) -> dict[str, Any]:
    """Do a job in a fresh process and return what it measured.

    Raises:
        ChildFailed: It failed.
    """
    command = [str(python), str(HERE / script), json.dumps(job, default=str)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)  # noqa: S603 - our own
    except subprocess.TimeoutExpired as error:
        raise ChildFailed(f"not finished after {TIMEOUT} s") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise ChildFailed(f"exit code {done.returncode}: {without_places(said)[:300]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


Item = Callable[[], dict[str, Any]]


@dataclasses.dataclass
class Runs:
    """What an item measured in every round, or why it did not."""

    rounds: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    failed: str = ""

    def median(self, key: str) -> float | None:
        """Return the median of one figure over the rounds, None for an item that failed."""
        return None if self.failed else float(statistics.median(each[key] for each in self.rounds))

    def highest(self, key: str) -> float | None:
        """Return the largest of one figure over the rounds, None for an item that failed."""
        return None if self.failed else float(max(each[key] for each in self.rounds))

    def same(self, key: str) -> Any:
        """Return what is the same in every round, None when it is not, or for an item
        that failed.
        """
        values = [] if self.failed else [each[key] for each in self.rounds]
        return values[0] if values and all(value == values[0] for value in values) else None


def take_turns(items: Mapping[str, Item], rounds: int) -> dict[str, Runs]:
    """Measure every item once a round, every other round in reverse order.

    One that failed is not asked again.
    """
    found = {name: Runs() for name in items}
    for number in range(rounds):
        names = list(items) if number % 2 == 0 else list(items)[::-1]
        for name in names:
            if found[name].failed:
                continue
            try:
                found[name].rounds.append(items[name]())
            except ChildFailed as error:
                found[name].failed = str(error)
    return found


def ratio(above: Runs, below: Runs, key: str = "wall") -> float | None:
    """Return the median over the rounds of the ratio within a round, None where one side failed."""
    if above.failed or below.failed:
        return None
    pairs = zip(above.rounds, below.rounds, strict=True)
    return float(statistics.median(one[key] / other[key] for one, other in pairs))


def cell(value: float | None, form: str = ".2f") -> str:
    """Return a figure as text."""
    return "–" if value is None else format(value, form)


def failures(found: Mapping[str, Runs]) -> list[str]:
    """Return a note per item that failed."""
    return [f"{name}: no figure, {runs.failed}." for name, runs in found.items() if runs.failed]


def reached(
    what: str, must: float, aim: float, measured: float | None, *sides: Runs, lower: bool = False
) -> Reach:
    """Return a line for the table of what is to be reached.

    Without figure it says which side failed.
    """
    why = next((side.failed for side in sides if side.failed), "")
    return Reach(what=what, must=must, aim=aim, measured=measured, lower=lower, why=why)


@contextlib.contextmanager
def scratch(place: Path) -> Iterator[Path]:
    """Give a directory for one output, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="out-", dir=place) as path:
        yield Path(path)


def ours(path: Path, place: Path, **job: Any) -> dict[str, Any]:
    """Run gradestack on a recording in a fresh process (``job="report"`` is for its pages alone).

    Args:
        path: The recording.
        place: Where the run directory is made and removed.
        **job: Further options, see ``jobs.py``.

    Raises:
        ChildFailed: It failed.
    """
    with scratch(place) as out:
        return child({"job": "gradestack", "path": path, "output": out / "run", **job})


def by_hand(path: Path, place: Path, *, rows: bool, **job: Any) -> dict[str, Any]:
    """Run the script by hand on a recording in a fresh process.

    Args:
        path: The recording.
        place: Where its rows are written, if any, and removed.
        rows: Whether it writes any.
        **job: Further options, see ``jobs.py``.

    Raises:
        ChildFailed: It failed.
    """
    with scratch(place) as out:
        return child(
            {"job": "script", "path": path, "rows": out / "rows.jsonl" if rows else None, **job}
        )
