"""The page of a comparison as sections of blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from gradestack import Declarations, Report, Row
from gradestack.jsonio import as_list, as_map, as_number, as_text, compact
from gradestack_plugins.pages.blocks import (
    BeforeAfter,
    Block,
    CallDiff,
    CallPair,
    Caveat,
    Change,
    Dumbbells,
    Figure,
    Head,
    Link,
    Matrix,
    PairedDifference,
    Part,
    Section,
    Table,
    TaskChange,
    TaskGroup,
    Text,
    Words,
)
from gradestack_plugins.pages.compare_text import (
    BY_CHANCE,
    cause_text,
    change_text,
    change_with_ends,
    claim_of,
    is_certain,
    pairs_of,
    question_of,
    unchanged_text,
    value_text,
    verdict_text,
)
from gradestack_plugins.pages.figures import results_of
from gradestack_plugins.pages.index import RowIndex, index_of, names_of
from gradestack_plugins.pages.rows import rows_at
from gradestack_plugins.pages.sample import calls_of
from gradestack_plugins.pages.text import brief, capital, counted, number

Fields = Mapping[str, Any]
_MOST_WORSE, _MOST_BETTER, _MOST_LISTED = 20, 20, 200
_MOST_SIDE_BY_SIDE, _MOST_CAUSES = 6, 8
_LONGEST_TEXT, _LONGEST_CALL, _LONGEST_NAME = 60, 160, 80
_MARKS = {"matched": "equal", "differs": "different", "absent": "not called"}
_WHY_PAIRED = (
    "The two intervals above are of each side alone. They do not decide: a task that is hard is "
    "hard for both sides, so the difference is taken task by task."
)


def _amount(value: float, row: Fields) -> str:
    """Return a mean amount of a run; the label names tokens and seconds."""
    return value_text(value, row) if row["unit"] == "usd" else f"{value:,.1f}"


class Trials(NamedTuple):
    """The trials of a task on one side: whether each passed, and its place among the rows."""

    passed: list[bool | None]
    positions: list[int]

    def first(self, *, passed: bool) -> int | None:
        """Return the position of the first trial that passed, or failed."""
        known = zip(self.passed, self.positions, strict=True)
        return next((position for verdict, position in known if verdict is passed), None)


class ComparisonPage:
    """The sections of the page of a comparison: of its first pair, and of all pairs the matrix.

    Args:
        data: Content of comparison.json.
        report: All sides as one run, each a model of it.
        models: Names of both models in it. Default: the first two.
    """

    def __init__(self, data: Fields, report: Report, models: Sequence[str] = ()) -> None:
        self._data, self._report = data, report
        self._is_first = not models
        self._question = question_of(data)
        self._a, self._b = (brief(run["name"], _LONGEST_NAME) for run in data["runs"][:2])
        index = index_of(report)
        self._models = [*models] or _models_of(index)[:2]
        self._trials = _trials_of(index)
        self._texts = self._short_texts()

    def head(self) -> Head:
        """Return the result in one sentence, what was compared, and the verdict."""
        data, row = self._data, self._question
        models = dict.fromkeys(run["model"] for run in data["runs"][:2] if run["model"])
        trials = {run["trials"] for run in data["runs"][:2]}
        each = f", {counted(max(trials), 'trials')} each" if len(trials) == 1 else ""
        about = [Part(brief(model, _LONGEST_NAME), tone="strong") for model in models]
        about += [Part(f"{self._b} against {self._a}")]
        about += [Part(f"{counted(row['tasks'], 'tasks')}{each}")]
        verdict: Any = verdict_text(row)
        shown = verdict if verdict in ("better", "worse", "not clear") else None
        return Head(brief(claim_of(data), 400), about, self._counts(), shown)

    def _counts(self) -> str:
        """Count the tasks that got worse, got better, and did not change."""
        flips = self._data["flips"]
        parts = []
        for kind in ("worse", "better"):
            if flips[kind]["count"]:
                parts.append(f"{counted(flips[kind]['count'], 'tasks')} got {kind}")
        unchanged = sum(flips["unchanged"].values())
        if unchanged:
            parts.append(f"{counted(unchanged, 'tasks')} did not change")
        return f"{', '.join(parts)}." if parts else ""

    def left(self) -> list[Section]:
        """Return the difference, what a run takes, and causes."""
        note = f"{self._b} minus {self._a}"
        sections = [Section("Difference", [self._difference()], id="difference", note=note)]
        usage = [*self._data.get("usage", {}).values()]
        if usage:
            sections.append(Section("What a run takes", [self._amounts(usage)], id="takes"))
        if self._data["changed"]["reasons"]:
            sections.append(Section("Why runs fail", [self._causes()], id="why"))
        return sections

    def right(self) -> list[Section]:
        """Return the tasks that changed."""
        flips = self._data["flips"]
        if not flips["worse"]["count"] and not flips["better"]["count"]:
            return []
        return [self._changed_tasks()]

    def below(self) -> list[Section]:
        """Return caveats, worse tasks side by side, pairs, and unchanged tasks."""
        sections = [*self._caveats(), *self._sides_of_worse()]
        if len(self._data["runs"]) > 2:
            blocks: list[Block] = [pair_matrix(self._data), *self._other_pairs()]
            sections.append(Section("Every pair", blocks, id="pairs"))
        return [*sections, *self._unchanged_tasks()]

    def _other_pairs(self) -> Iterator[Section]:
        """Yield each other pair, folded: its difference and the tasks that changed."""
        names = [run["name"] for run in self._data["runs"]]
        models = dict(zip(names, _models_of(index_of(self._report)), strict=False))
        runs = {run["name"]: run for run in self._data["runs"]}
        for pair in self._data.get("pairs", ())[1:]:
            sides = [pair["a"], pair["b"]]
            if "flips" not in pair or not all(name in models for name in sides):
                continue
            data = {**self._data, **pair, "runs": [runs[name] for name in sides]}
            page = ComparisonPage(data, self._report, [models[name] for name in sides])
            blocks = [block for section in page.short() for block in section.blocks]
            title = f"{sides[1]} against {sides[0]}: {claim_of(data)}"
            yield Section(brief(title, 300), blocks, folded=True)

    def short(self) -> list[Section]:
        """Return the difference and the tasks that changed."""
        return [*self.left()[:1], *self.right()]

    def _difference(self) -> PairedDifference:
        row = self._question
        label = str(row["label"])
        unit = "share" if row["share"] else str(row["unit"])
        ends = row["interval"]["ends"]
        notes = [self._data["tested"]] if self._data.get("tested") else []
        if row["mde80"] is not None and not is_certain(row):
            size = value_text(row["mde80"], row).replace("%", " points")
            share = "would be found in four of five such comparisons"
            notes.append(f"A true difference of {size} {share}.")
        a, b = self._side_figure(0, unit), self._side_figure(1, unit)
        if a.interval is not None and b.interval is not None:
            notes.insert(0, _WHY_PAIRED)
        return PairedDifference(
            label,
            a,
            b,
            row["difference"],
            None if ends is None else (ends[0], ends[1]),
            verdict_text(row),
            row["p_holm"],
            unit,
            [*notes, brief(capital(self._data["sentence"]), 700)],
            confidence=row["interval"]["confidence"],
            better_is=row.get("better_is", "higher"),
        )

    def _side_figure(self, side: int, unit: str) -> Figure:
        """Return the question's figure of one side, with its own interval where it is the same."""
        value = self._question[("a", "b")[side]]
        name = (self._a, self._b)[side]
        summary = self._report.summary
        interval = None
        for result in results_of(summary, Declarations(self._report.header)):
            figure = result.figure
            is_side = figure.model == brief(self._models[side], 40)
            is_same = isinstance(figure.value, float) and value is not None
            if is_side and is_same and abs(figure.value - value) < 1e-9 and interval is None:
                interval = figure.interval
        return Figure(name, value, interval, unit=unit)

    def _changed_tasks(self) -> Section:
        flips = self._data["flips"]
        groups = []
        for kind, most in (("worse", _MOST_WORSE), ("better", _MOST_BETTER)):
            tasks = [self._task_change(task) for task in flips[kind]["tasks"][:most]]
            count = flips[kind]["count"]
            title = f"{counted(count, 'tasks')} got {kind}"
            if tasks and kind == "worse":
                title = f"{title}; {BY_CHANCE}"
                groups.append(TaskGroup(title, tasks, "bad", count - len(tasks)))
            elif tasks:
                groups.append(TaskGroup(title, tasks, "good", count - len(tasks)))
        unchanged = flips["unchanged"]
        chips: list[str | Part | Link] = []
        for count, name, id_ in (
            (flips["worse"]["count"], "broke", "worse"),
            (flips["better"]["count"], "fixed", "better"),
            (unchanged["never"], "both fail", "both-fail"),
        ):
            if count:
                chips += [Link(f"{name} {number(count)}", href=f"#{id_}"), " · "]
        rest = unchanged_text(unchanged)
        block = Dumbbells(groups, self._a, self._b, "trials passed", rest, has_ids=self._is_first)
        return Section("Tasks that changed", [block], id="changed-tasks", note=chips[:-1])

    def _task_change(self, task: Fields) -> TaskChange:
        passed_a, trials_a = map(int, task["a"].split("/"))
        passed_b, trials_b = map(int, task["b"].split("/"))
        of = trials_a
        if trials_a != trials_b:
            passed_a, passed_b, of = passed_a * trials_b, passed_b * trials_a, trials_a * trials_b
        name = task["task"]
        cause = cause_text(task.get("cause"))
        text = cause or self._texts.get(name, "")
        return TaskChange(name, text, passed_a, passed_b, of, self._link(name))

    def _link(self, task: str) -> Link:
        """Return a link to B's first failed trial of a task, else to its first."""
        trials = self._trials.get((task, self._models[-1]))
        if trials is None:
            return Link(task)
        position = trials.first(passed=False)
        return Link(task, position=trials.positions[0] if position is None else position)

    def _amounts(self, usage: Sequence[Fields]) -> BeforeAfter:
        rows = []
        for row in usage:
            values = [f"{_amount(row['a'], row)} → {_amount(row['b'], row)}"]
            values += [change_with_ends(row), verdict_text(row)]
            rows.append(Change(row["label"], values, clear=is_certain(row)))
        columns = [f"{self._a} → {self._b}", "change", ""]
        return BeforeAfter(columns, rows, note="Bold: a clear change. Others may be chance.")

    def _causes(self) -> Table:
        rows, links = {}, {}
        for row in self._data["changed"]["reasons"][:_MOST_CAUSES]:
            name = brief(cause_text(row["name"]), _LONGEST_NAME)
            before, after = row["trials"]
            change = change_with_ends(row) if row["ends"] is not None else change_text(row)
            rows[name] = [f"{number(before)} → {number(after)}", change, verdict_text(row)]
            links[name] = Link(name, search=row["name"])
        columns = ["runs", "change in points", ""]
        return Table(columns, rows, corner="Reason", links=links)

    def _caveats(self) -> Iterator[Section]:
        caveats = [Caveat(brief(text, 400)) for text in self._data.get("warnings", ())]
        caveats += [Caveat(f"Compared although: {text}") for text in self._data["incomparable"]]
        better, unchanged = self._data["flips"]["better"], self._data["flips"]["unchanged"]
        is_whole = 0 < better["count"] == len(better["tasks"])
        has_new = any(task["a"].startswith("0/") for task in better["tasks"])
        if is_whole and unchanged["never"] and not has_new:
            gains = f"All gains are in tasks that {self._a} passed sometimes before."
            never = f"The {counted(unchanged['never'], 'tasks')} it never passed still fail."
            text: Text = [f"{gains} ", Link(never, href="#both-fail")]
            caveats.append(Caveat(text))
        if caveats:
            yield Section("Before you ship", caveats, id="caveats", tone="bad")

    def _sides_of_worse(self) -> Iterator[Section]:
        """Yield A's first passed and B's first failed trial of tasks that got worse."""
        diffs: list[Any] = []
        for task in self._data["flips"]["worse"]["tasks"][:_MOST_SIDE_BY_SIDE]:
            diff = self._side_by_side(task["task"])
            if diff is not None:
                diffs.append(diff)
        if diffs:
            text = (
                "Of each task that got worse: the first run that passed, and the first that fails."
            )
            yield Section("Side by side", [Words(text), *diffs], id="side-by-side")

    def _side_by_side(self, task: str) -> CallDiff | None:
        trials = [self._trials.get((task, model)) for model in self._models]
        before, after = (*trials, None, None)[:2]
        first = None if before is None else before.first(passed=True)
        second = None if after is None else after.first(passed=False)
        if first is None or second is None:
            return None
        rows = dict(zip((first, second), rows_at(self._report, (first, second)), strict=True))
        text = self._texts.get(task, "")
        title = f"{brief(task, 40)} {text}".strip()
        names = (f"{self._a}: passed", f"{self._b}: failed")
        links = [Link(name, position=at) for name, at in zip(names, rows, strict=True)]
        return call_diff(title, links, [*rows.values()])

    def _unchanged_tasks(self) -> Iterator[Section]:
        """Yield the tasks that no trial of either side passed, and the other unchanged ones."""
        failed: list[str | Part | Link] = []
        others: list[str | Part | Link] = []
        for task in dict.fromkeys(task for task, _ in self._trials):
            shares = [self._share_passed(task, model) for model in self._models]
            if None in shares or len(set(shares)) > 1:
                continue
            links = others if shares[0] else failed
            links += [self._link(task), ", "]
        for links, title, id_ in (
            (failed, "Tasks that both fail", "both-fail"),
            (others, "Other tasks that did not change", "unchanged"),
        ):
            if links:
                count = len(links) // 2
                shown = links[: 2 * _MOST_LISTED - 1][: len(links) - 1]
                rest = count - _MOST_LISTED
                more = [f" and {number(rest)} more"] if rest > 0 else []
                yield Section(title, [Words([*shown, *more])], id=id_, note=number(count))

    def _share_passed(self, task: str, model: str) -> Fraction | None:
        trials = self._trials.get((task, model))
        known = [] if trials is None else [passed for passed in trials.passed if passed is not None]
        return Fraction(sum(known), len(known)) if known else None

    def _short_texts(self) -> dict[str, str]:
        """Return the inputs of the tasks that are shown, without their common beginning."""
        flips = self._data["flips"]
        names = [task["task"] for kind in ("worse", "better") for task in flips[kind]["tasks"]]
        positions = {}
        for name in names[: _MOST_WORSE + _MOST_BETTER]:
            trials = self._trials.get((name, self._models[-1]))
            if trials is not None:
                positions[trials.positions[0]] = name
        if not positions:
            return {}
        ordered = sorted(positions)
        texts = {}
        for position, row in zip(ordered, rows_at(self._report, ordered), strict=True):
            texts[positions[position]] = _question_text(row)
        return _without_common_beginning(texts)


def _models_of(index: RowIndex) -> list[str]:
    return [*dict.fromkeys(entry.model for entry in index.entries)]


def _trials_of(index: RowIndex) -> dict[tuple[str, str], Trials]:
    """Return task and model -> its trials."""
    names = names_of(index.names)
    trials: dict[tuple[str, str], Trials] = {}
    for task, entry in zip(index.tasks, index.entries, strict=True):
        of_task = trials.setdefault((names[task], entry.model), Trials([], []))
        passed = False if entry.state in ("failed", "missing") else entry.passed
        of_task.passed.append(passed)
        of_task.positions.append(entry.position)
    return trials


def _question_text(row: Row) -> str:
    question = as_map(row.get("sample")).get("input")
    turns = [as_text(turn) or compact(turn) for turn in as_list(question)]
    text = question if isinstance(question, str) else " ".join(turns)
    return " ".join(text.split())


def _without_common_beginning(texts: Mapping[str, str]) -> dict[str, str]:
    """Return texts on one line each, without the words that all begin with."""
    words = [text.split() for text in texts.values()]
    start = 0
    if len(words) > 1:
        for several in zip(*words, strict=False):
            if len(set(several)) > 1:
                break
            start += 1
    rests = zip(texts, words, strict=True)
    return {name: brief(" ".join(rest[start:]), _LONGEST_TEXT) for name, rest in rests}


def call_diff(title: str, sides: Sequence[Link], rows: Sequence[Row]) -> CallDiff:
    """Return the calls of two runs of one task beside the expected ones; equal ones are folded."""
    made = [calls_of(row) for row in rows]
    expected = [as_map(call) for call in as_list(as_map(rows[0].get("expected")).get("calls"))]
    pairs: list[CallPair] = []
    equal = 0
    for position, call in enumerate(expected[: min(len(side.pairs) for side in made)]):
        shown, marks = [], []
        for side in made:
            pair = side.pairs[position]
            shown.append("" if pair.actual is None else _call_text(as_map(pair.actual)))
            marks.append(_MARKS[pair.status])
        if marks == ["equal", "equal"]:
            equal += 1
        else:
            pairs.append(CallPair(_call_text(call), shown, marks))  # type: ignore[arg-type]
    if equal:
        both = f"{counted(equal, 'calls')} as expected on both sides"
        pairs.append(CallPair(both, ["", ""], ["equal", "equal"]))
    others = [[_call_text(as_map(call)) for _, call in side.others] for side in made]
    return CallDiff(sides, pairs, others if any(others) else (), _facts(rows), title)


def _call_text(call: Mapping[str, Any]) -> str:
    arguments = call.get("arguments")
    inner = ", ".join(f"{name}={compact(value)}" for name, value in as_map(arguments).items())
    return brief(f"{as_text(call.get('name'))}({inner})", _LONGEST_CALL)


def _facts(rows: Sequence[Row]) -> list[Change]:
    """Return the number of messages, cost and seconds of both runs, as far as recorded."""
    messages = [sum(len(as_list(turn)) for turn in as_list(row.get("trajectory"))) for row in rows]
    facts = [Change("messages", [number(count) for count in messages])] if any(messages) else []
    for name, label, form in (
        ("cost_usd", "cost", "${:.3f}"),
        ("seconds", "seconds", "{:.1f}"),
    ):
        values = [as_number(as_map(row.get("usage")).get(name)) for row in rows]
        if any(value is not None for value in values):
            texts = ["" if value is None else form.format(value) for value in values]
            facts.append(Change(label, texts))
    return facts


def pair_matrix(data: Fields) -> Matrix:
    """Return the question's difference of every pair: row minus column."""
    names = [brief(run["name"], 40) for run in data["runs"]]
    cells: dict[tuple[str, str], str] = {}
    for pair in pairs_of(data):
        row = question_of(pair)
        a, b = brief(pair["a"], 40), brief(pair["b"], 40)
        word = verdict_text(row)
        cells[b, a] = f"{change_text(row)} {word}"
        opposite = {**row, "difference": None if row["difference"] is None else -row["difference"]}
        back = {"better": "worse", "worse": "better", "higher": "lower", "lower": "higher"}
        cells[a, b] = f"{change_text(opposite)} {back.get(word, word)}"
    values = [[cells.get((row, column)) for column in names] for row in names]
    return Matrix(names, names, values, corner="row minus column")
