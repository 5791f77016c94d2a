"""The page of a comparison as sections of blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from gradestack import Declarations, Report, Row
from gradestack.jsonio import as_list, as_map, as_text, compact
from gradestack_plugins.pages.blocks import (
    BeforeAfter,
    Block,
    CallDiff,
    Caveat,
    Change,
    Dumbbells,
    Figure,
    Head,
    Link,
    PairedDifference,
    Part,
    Section,
    Table,
    TaskChange,
    TaskGroup,
    Text,
    Words,
)
from gradestack_plugins.pages.compare_answers import answers_of
from gradestack_plugins.pages.compare_figures import (
    differences_of,
    facet_table,
    leaderboard_table,
    pair_matrix,
)
from gradestack_plugins.pages.compare_text import (
    BY_CHANCE,
    change_text,
    change_with_ends,
    claim_of,
    is_certain,
    question_of,
    smallest_found,
    trials_text,
    unchanged_text,
    value_text,
    verdict_text,
)
from gradestack_plugins.pages.figures import results_of
from gradestack_plugins.pages.index import RowIndex, index_of, names_of
from gradestack_plugins.pages.rows import rows_at
from gradestack_plugins.pages.side_by_side import call_diff
from gradestack_plugins.pages.text import brief, capital, cause_text, counted, number

Fields = Mapping[str, Any]
_MOST_WORSE, _MOST_BETTER, _MOST_LISTED = 12, 10, 200
_MOST_SIDE_BY_SIDE, _MOST_CAUSES = 6, 8
_LONGEST_TEXT, _LONGEST_NAME = 110, 80
_WHY_PAIRED = (
    "The two intervals above are of each side alone. They do not decide: a task that is hard is "
    "hard for both sides, so the difference is taken task by task."
)
_KINDS = {"tools": "Reasons by tool", "arguments": "Reasons by argument"}
_FILTERS = {"broke": "worse", "fixed": "better", "both fail": "never"}
"""Filter of the table of tasks -> the count of the tasks it shows."""
_LISTS = {"broke": "#worse", "fixed": "#better", "both fail": "#both-fail"}
"""Filter -> the list of its tasks on the page."""
_SAME_VALUE = 1e-9
_SENTENCE_ENDS = (".", "!", "?", ":")


def _amounts_text(before: float, after: float, row: Fields) -> str:
    """Return an amount of a run on both sides; the label names tokens and seconds."""
    texts = [value_text(value, row) for value in (before, after)]
    return " → ".join(text.removesuffix(" tokens").removesuffix(" s") for text in texts)


class Trials(msgspec.Struct, frozen=True):
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
        runs = data["runs"][:2]
        self._a, self._b = (brief(run["name"], _LONGEST_NAME) for run in runs)
        index = index_of(report)
        self._models = [*models] or _models_of(index)[:2]
        self._trials = _trials_of(index)
        self._texts = self._short_texts()
        self._pairs = self._find_pairs() if self._is_first else {}
        self._side_links: dict[str, Link] = {}
        for position, task in enumerate(self._pairs, start=1):
            self._side_links[task] = Link(task, href=f"#side-{position}")

    def head(self) -> Head:
        """Return the result in one sentence, what was compared, and the verdict."""
        data, row = self._data, self._question
        runs = data["runs"][:2]
        models = dict.fromkeys(run["model"] for run in runs if run["model"])
        tasks = counted(row["tasks"], "tasks")
        basis = ", ".join(filter(None, (tasks, trials_text(data))))
        about = [Part(brief(model, _LONGEST_NAME), tone="strong") for model in models]
        about += [Part(f"{self._b} against {self._a}"), Part(basis)]
        verdict: Any = verdict_text(row)
        shown = verdict if verdict in ("better", "worse", "not clear") else None
        claim = claim_of(data)
        return Head(brief(claim, 400), about, verdict=shown, answers=answers_of(data))

    def left(self) -> list[Section]:
        """Return the difference, what a run takes, and causes."""
        note = f"{self._b} minus {self._a}"
        difference = self._difference()
        sections = [Section("Difference", [difference], id="difference", note=note)]
        usage = [*self._data.get("usage", {}).values()]
        if usage:
            amounts = self._amounts(usage)
            sections.append(Section("What a run takes", [amounts], id="takes"))
        if self._data["changed"]["reasons"]:
            causes = self._causes()
            section = Section("Why runs fail", [causes], id="why")
            sections.append(section)
        return sections

    def right(self) -> list[Section]:
        """Return the tasks that changed."""
        flips = self._data["flips"]
        count = flips["worse"]["count"]
        if not count and not flips["better"]["count"]:
            return []
        return [self._changed_tasks()]

    def below(self) -> list[Section]:
        """Return caveats, worse tasks side by side, figures, pairs, and tasks that both fail."""
        data = self._data
        caveats = self._caveats()
        sides_of_worse = self._sides_of_worse()
        figures = self._figures()
        sections = [*caveats, *sides_of_worse, figures]
        sections += [*self._causes_by_place()]
        if len(data["runs"]) > 2:
            blocks: list[Block] = [pair_matrix(data), *self._other_pairs()]
            section = Section("Every pair", blocks, id="pairs")
            sections.append(section)
        if data.get("groups"):
            title = f"Leaderboard by {data['question']}"
            sections.append(Section(title, [leaderboard_table(data)], id="leaderboard"))
        if data.get("by"):
            facet = brief(data["by"]["facet"], _LONGEST_NAME)
            sections.append(Section(f"Difference by {facet}", [facet_table(data)], id="by"))
        return [*sections, *self._failed_tasks()]

    def _figures(self) -> Section:
        """Return every figure before and after, with its difference on an axis."""
        note = f"{self._b} minus {self._a}"
        differences = differences_of(self._data)
        return Section("All figures", [differences], id="differences", note=note)

    def _causes_by_place(self) -> Iterator[Section]:
        """Yield the tools and arguments that reasons are about, before and after."""
        blocks = []
        for kind, title in _KINDS.items():
            if self._changed(kind):
                blocks.append(self._causes(kind, title))
        if blocks:
            yield Section("Where runs fail", blocks, id="changed")

    def _other_pairs(self) -> Iterator[Section]:
        """Yield each other pair, folded: its difference, figures, and the tasks that changed."""
        names = [run["name"] for run in self._data["runs"]]
        index = index_of(self._report)
        models = dict(zip(names, _models_of(index), strict=False))
        runs = {run["name"]: run for run in self._data["runs"]}
        pairs = self._data.get("pairs", ())
        for pair in pairs[1:]:
            sides = [pair["a"], pair["b"]]
            if "flips" not in pair or not all(name in models for name in sides):
                continue
            data = {**self._data, **pair, "runs": [runs[name] for name in sides]}
            page = ComparisonPage(data, self._report, [models[name] for name in sides])
            sections = page.short()
            blocks = [block for section in sections for block in section.blocks]
            title = f"{sides[1]} against {sides[0]}: {claim_of(data)}"
            yield Section(brief(title, 300), blocks, folded=True)

    def short(self) -> list[Section]:
        """Return the difference, what a run takes, figures, and the tasks that changed."""
        sections = [section for section in self.left() if section.id != "why"]
        figures = self._figures()
        return [*sections, figures, *self.right()]

    def _difference(self) -> PairedDifference:
        row = self._question
        label = str(row["label"])
        unit = "share" if row["share"] else str(row["unit"])
        ends = row["interval"]["ends"]
        notes = []
        mde80 = row["mde80"]
        if mde80 is not None and not is_certain(row) and not self._is_first:
            notes.append(smallest_found(row))
        noise = row.get("noise")
        if noise is not None or row.get("only_a_count") or row.get("only_b_count"):
            sentence = self._data["sentence"]
            notes.append(brief(capital(sentence), 700))
        a = self._side_figure(0, unit)
        b = self._side_figure(1, unit)
        if a.interval is not None and b.interval is not None:
            notes.insert(0, _WHY_PAIRED)
        difference = row["difference"]
        return PairedDifference(
            label,
            a,
            b,
            difference,
            None if ends is None else (ends[0], ends[1]),
            verdict_text(row),
            row["p_holm"],
            unit,
            notes,
            confidence=row["interval"]["confidence"],
            better_is=row.get("better_is", "higher"),
        )

    def _side_figure(self, side: int, unit: str) -> Figure:
        """Return the question's figure of one side, with its own interval where it is the same."""
        value = self._question[("a", "b")[side]]
        name = (self._a, self._b)[side]
        summary = self._report.summary
        interval = None
        declarations = Declarations(self._report.header)
        for result in results_of(summary, declarations):
            figure = result.figure
            model = self._models[side]
            is_side = figure.model == brief(model, 40)
            is_same = isinstance(figure.value, float) and value is not None
            if is_side and is_same and abs(figure.value - value) < _SAME_VALUE:
                interval = interval or figure.interval
        return Figure(name, value, interval, unit=unit)

    def _changed_tasks(self) -> Section:
        flips = self._data["flips"]
        groups = []
        for kind, most in (("worse", _MOST_WORSE), ("better", _MOST_BETTER)):
            if flips[kind]["count"]:
                groups.append(self._task_group(kind, most))
        rest = unchanged_text(flips["unchanged"])
        block = Dumbbells(groups, self._a, self._b, "trials passed", rest, has_ids=self._is_first)
        note = self._filters() if self._is_first else ""
        return Section("Tasks that changed", [block], id="changed-tasks", note=note)

    def _task_group(self, kind: str, most: int) -> TaskGroup:
        """Return the tasks that got worse, or better, the largest changes first."""
        flips = self._data["flips"]
        tasks = [self._task_change(task) for task in flips[kind]["tasks"][:most]]
        flip = self._data["flips"][kind]
        count = flip["count"]
        title = f"{counted(count, 'tasks')} got {kind}"
        is_worse = kind == "worse"
        if is_worse:
            title = f"{title}; {BY_CHANCE}"
        left_out = count - len(tasks)
        address = self._address_of("broke" if is_worse else "fixed")
        more = None
        if self._is_first:
            more = Link(f"{number(left_out)} more", href=address)
        return TaskGroup(title, tasks, "bad" if is_worse else "good", left_out, more)

    def _address_of(self, word: str) -> str:
        """Return the address of the tasks of a filter.

        It is that of the table, which filters two sides by their outcome; else of the list here.
        """
        runs = self._data["runs"]
        if len(runs) == 2 and "outcome" in self._data:
            return f"#view=compare&show={word.removeprefix('both ')}"
        return _LISTS[word]

    def _filters(self) -> list[str | Part | Link]:
        """Return links that filter the table of tasks, each with its number of tasks."""
        flips = self._data["flips"]
        worse = flips["worse"]["count"]
        better = flips["better"]["count"]
        counts = {"worse": worse, "better": better}
        counts |= flips["unchanged"]
        links: list[str | Part | Link] = []
        for word, kind in _FILTERS.items():
            if counts[kind]:
                text = f"{word} {number(counts[kind])}"
                address = self._address_of(word)
                link = Link(text, href=address)
                links += [link, " · "]
        return links[:-1]

    def _task_change(self, task: Fields) -> TaskChange:
        passed_a, trials_a = map(int, task["a"].split("/"))
        passed_b, trials_b = map(int, task["b"].split("/"))
        of = trials_a
        if trials_a != trials_b:
            passed_a = passed_a * trials_b
            passed_b = passed_b * trials_a
            of = trials_a * trials_b
        name = task["task"]
        text = self._texts.get(name, "")
        if "cause" in task:
            text = cause_text(task["cause"] or "") or "no new cause"
        link = self._side_links.get(name) or self._link(name)
        return TaskChange(name, text, passed_a, passed_b, of, link)

    def _link(self, task: str) -> Link:
        """Return a link to B's first failed trial of a task, else to its first."""
        last_model = self._models[-1]
        trials = self._trials.get((task, last_model))
        if trials is None:
            return Link(task)
        position = trials.first(passed=False)
        return Link(task, position=trials.positions[0] if position is None else position)

    def _amounts(self, usage: Sequence[Fields]) -> BeforeAfter:
        """Return the means of runs with their verdicts; medians and quotients have none."""
        rows = []
        for row in usage:
            values = [_amounts_text(row["a"], row["b"], row)]
            values += [change_with_ends(row), verdict_text(row)]
            clear = is_certain(row)
            change = Change(row["label"], values, clear=clear)
            rows.append(change)
            label = str(row["label"])
            name = label.removesuffix(" of a run")
            if row.get("per_passed"):
                quantity = f"{name} per passed run"
                rows += _untested_row(quantity, row["per_passed"], row)
            if row.get("medians"):
                rows += _untested_row(f"{name} of a run, median", row["medians"], row)
        columns = [f"{self._a} → {self._b}", "change", ""]
        note = "Bold: a clear change. Others may be chance. Medians and quotients are not tested."
        return BeforeAfter(columns, rows, note=note)

    def _causes(self, kind: str = "reasons", title: str = "") -> Table:
        """Return a table of reasons, tools or arguments with their runs before and after."""
        rows, links = {}, {}
        for row in self._changed(kind)[:_MOST_CAUSES]:
            if kind == "reasons":
                text = cause_text(row["name"])
            else:
                text = row["name"]
            name = brief(text, _LONGEST_NAME)
            before, after = row["trials"]
            if row["ends"] is not None:
                change = change_with_ends(row)
            else:
                change = change_text(row)
            runs = f"{number(before)} → {number(after)}"
            rows[name] = [runs, change, verdict_text(row)]
            links[name] = Link(name, search=row["name"])
        columns = ["runs", "change in points", ""]
        corner = {"reasons": "Reason", "tools": "Tool", "arguments": "Argument"}[kind]
        return Table(columns, rows, title=title, corner=corner, links=links)

    def _changed(self, kind: str) -> list[Fields]:
        """Return the reasons, or the tools or arguments that are not the same in every task."""
        changed: list[Fields] = self._data["changed"][kind]
        return [row for row in changed if kind == "reasons" or row["verdict"] != "same"]

    def _caveats(self) -> Iterator[Section]:
        warnings = self._data.get("warnings", ())
        caveats = [Caveat(brief(text, 400)) for text in warnings]
        incomparable = self._data["incomparable"]
        caveats += [Caveat(f"Compared although: {text}") for text in incomparable]
        better = self._data["flips"]["better"]
        unchanged = self._data["flips"]["unchanged"]
        count = better["count"]
        is_whole = 0 < count == len(better["tasks"])
        tasks = better["tasks"]
        has_new = any(task["a"].startswith("0/") for task in tasks)
        if is_whole and unchanged["never"] and not has_new:
            gains = f"All gains are in tasks that {self._a} passed sometimes before."
            never = f"The {counted(unchanged['never'], 'tasks')} it never passed still fail."
            text: Text = [f"{gains} ", Link(never, href="#both-fail")]
            caveats.append(Caveat(text))
        if caveats:
            yield Section("Before you ship", caveats, id="caveats", tone="bad")

    def _sides_of_worse(self) -> Iterator[Section]:
        """Yield A's first passed and B's first failed trial of tasks that got worse."""
        blocks: list[Block] = []
        for task in self._side_links:
            names = (brief(task, 40), self._texts.get(task))
            title = ": ".join(name for name in names if name)
            side_by_side = self._side_by_side(task)
            block = Section(title, [side_by_side], folded=bool(blocks))
            blocks.append(block)
        if blocks:
            text = (
                "Of each task that got worse: the first run that passed, and the first that "
                "fails. Equal calls, and messages before both runs part, are folded."
            )
            words = Words(text)
            yield Section("Side by side", [words, *blocks], id="side-by-side")

    def _find_pairs(self) -> dict[str, tuple[int, int]]:
        """Return the first worse tasks with A's first passed and B's first failed trial."""
        pairs: dict[str, tuple[int, int]] = {}
        flips = self._data["flips"]
        tasks = flips["worse"]["tasks"]
        for task in tasks[:_MOST_SIDE_BY_SIDE]:
            name = task["task"]
            first_model = self._models[0]
            before = self._trials.get((name, first_model))
            last_model = self._models[-1]
            after = self._trials.get((name, last_model))
            if before is None:
                first = None
            else:
                first = before.first(passed=True)
            if after is None:
                second = None
            else:
                second = after.first(passed=False)
            if first is not None and second is not None:
                pairs[name] = first, second
        return pairs

    def _side_by_side(self, task: str) -> CallDiff:
        pair = self._pairs[task]
        rows = dict(zip(pair, rows_at(self._report, pair), strict=True))
        names = (f"{self._a}: passed", f"{self._b}: failed")
        links = [Link(name, position=at) for name, at in zip(names, pair, strict=True)]
        side_link = self._side_links[task]
        href = side_link.href[1:]
        return call_diff(links, [rows[at] for at in pair], href)

    def _failed_tasks(self) -> Iterator[Section]:
        """Yield the tasks that no trial of either side passed."""
        links: list[str | Part | Link] = []
        for task in dict.fromkeys(task for task, _ in self._trials):
            shares = {self._share_passed(task, model) for model in self._models}
            if shares == {0}:
                links += [self._link(task), ", "]
        if links:
            count = len(links) // 2
            shown = links[: 2 * _MOST_LISTED - 1][: len(links) - 1]
            rest = count - _MOST_LISTED
            if rest > 0:
                more = [f" and {number(rest)} more"]
            else:
                more = []
            text = Words([*shown, *more])
            note = number(count)
            yield Section("Tasks that both fail", [text], id="both-fail", note=note)

    def _share_passed(self, task: str, model: str) -> Fraction | None:
        trials = self._trials.get((task, model))
        if trials is None:
            known = []
        else:
            known = [passed for passed in trials.passed if passed is not None]
        return Fraction(sum(known), len(known)) if known else None

    def _short_texts(self) -> dict[str, str]:
        """Return the inputs of the tasks that are shown, without their common beginning."""
        flips = self._data["flips"]
        worse = flips["worse"]["tasks"]
        better = flips["better"]["tasks"]
        tasks = [*worse[:_MOST_WORSE], *better[:_MOST_BETTER]]
        positions = {}
        for name in [task["task"] for task in tasks]:
            last_model = self._models[-1]
            trials = self._trials.get((name, last_model))
            if trials is not None:
                positions[trials.positions[0]] = name
        if not positions:
            return {}
        ordered = sorted(positions)
        texts = {}
        rows = rows_at(self._report, ordered)
        for position, row in zip(ordered, rows, strict=True):
            texts[positions[position]] = _question_text(row)
        return _without_common_beginning(texts)


def _models_of(index: RowIndex) -> list[str]:
    return [*dict.fromkeys(entry.model for entry in index.entries)]


def _trials_of(index: RowIndex) -> dict[tuple[str, str], Trials]:
    """Return task and model -> its trials."""
    names = names_of(index.names)
    trials: dict[tuple[str, str], Trials] = {}
    for task, entry in zip(index.tasks, index.entries, strict=True):
        name = (names[task], entry.model)
        of_task = trials.get(name) or trials.setdefault(name, Trials([], []))
        passed = False if entry.state in ("failed", "missing") else entry.passed
        of_task.passed.append(passed)
        of_task.positions.append(entry.position)
    return trials


def _question_text(row: Row) -> str:
    sample = row.get("sample")
    question = as_map(sample).get("input")
    turns = [as_text(turn) or compact(turn) for turn in as_list(question)]
    text = question if isinstance(question, str) else " ".join(turns)
    return " ".join(text.split())


def _without_common_beginning(texts: Mapping[str, str]) -> dict[str, str]:
    """Return texts on one line each, without the sentences that all begin with."""
    words = [text.split() for text in texts.values()]
    start = 0
    if len(words) > 1:
        for position, several in enumerate(zip(*words, strict=False), start=1):
            if len(set(several)) > 1:
                break
            if several[0].endswith(_SENTENCE_ENDS):
                start = position
    rests = zip(texts, words, strict=True)
    return {name: brief(" ".join(rest[start:]), _LONGEST_TEXT) for name, rest in rests}


def _untested_row(quantity: str, sides: Sequence[float | None], row: Fields) -> Iterator[Change]:
    """Yield an amount before and after, and by how much it changed, where both are known."""
    before, after = sides
    if before is None or after is None:
        return
    rise = after / before - 1 if before else None
    if rise is None:
        change = ""
    else:
        change = f"{100 * rise:+.0f}%"
    amounts_text = _amounts_text(before, after, row)
    yield Change(quantity, [amounts_text, change, ""])
