"""A comparison as text: lines of the console, and a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from gradestack import __version__, compared_rows, with_unit
from gradestack_plugins.pages.prose import code, prose
from gradestack_plugins.pages.text import (
    UNDEFINED,
    brief,
    cause_text,
    counted,
    number,
    three_digits,
)

Fields = Mapping[str, Any]
MOST_LINES = 25
"""Lines of a comment on a pull request."""
_MOST_CAUSES, _MOST_WORSE, _MOST_NAMED = 10, 10, 4
_MOST_WORSE_IN_COMMENT = 4
_MOST_FIGURES_IN_COMMENT, _MOST_OF_A_KIND = 7, 2
_LONGEST_NAME, _LONGEST_LABEL, _LONGEST_TASK = 60, 40, 40
BY_CHANCE = "some of these change by chance alone"
_KINDS = {"reasons": "Reasons", "tools": "Reasons by tool", "arguments": "Reasons by argument"}
_CERTAIN = {"better", "worse", "higher", "lower", "more often", "less often"}
_MEASURED = ("usd", "tokens", "seconds")
"""Units of what a run takes."""
_MARKS = {"better": "🔵", "worse": "🟠"}


def verdict_text(row: Fields) -> str:
    """Return a verdict in words."""
    verdict = str(row["verdict"] or "no test")
    return "not clear" if verdict == "no evidence" else verdict


def is_certain(row: Fields) -> bool:
    """Return whether a verdict says that there is a difference."""
    return row["verdict"] in _CERTAIN


def value_text(value: float | None, row: Fields) -> str:
    """Return a figure of one side, a share as a percentage."""
    if value is None:
        return UNDEFINED
    if row.get("share", True):
        return f"{100 * value:.1f}%"
    unit = row["unit"]
    return with_unit(three_digits(value) if unit in _MEASURED else number(value), unit)


def points_text(value: float, row: Fields) -> str:
    """Return the size of a difference, between shares in points."""
    if row["share"]:
        return f"{100 * value:.1f} points"
    return value_text(value, row)


def smallest_found(row: Fields) -> str:
    """Return from which difference on so many tasks show it, as a sentence."""
    size = points_text(row["mde80"], row)
    return f"With so few tasks, differences below {size} are easily missed."


def p_text(row: Fields) -> str:
    """Return p of a row, and that it is adjusted where it was tested with others; "" without."""
    p = row["p_holm"]
    if p is None:
        return ""
    size = "< 0.001" if p < 0.001 else number(p)
    if row.get("tests", 1) > 1:
        return f"p (adjusted) {size}"
    return f"p {size}"


def change_text(row: Fields) -> str:
    """Return a difference with its sign, between shares in points."""
    gap = row["difference"]
    if gap is None:
        return UNDEFINED
    if row.get("share", True):
        points = f"{100 * gap:+.1f}"
        return points if float(points) else "0.0"
    sign = "-" if gap < 0 else "+"
    size = value_text(abs(gap), row).removesuffix(" tokens").removesuffix(" s")
    return f"{sign}{size}" if gap else size


def ends_text(row: Fields) -> str:
    """Return the ends of the interval that decides; empty where there is none."""
    if "interval" in row:
        ends = row["interval"]["ends"]
    else:
        ends = row["ends"]
    if ends is None:
        return ""
    is_share = row.get("share", True)
    if not is_share and row["unit"] in _MEASURED:
        low, high = map(three_digits, ends)
        return f"{low} to {high}"
    scale, decimals = (100, 1) if is_share else (1, 3)
    low, high = (_end_text(scale * end, decimals) for end in ends)
    return f"{low} to {high}"


def _end_text(value: float, decimals: int) -> str:
    """Return an end of an interval, which shows on which side of 0 it is."""
    if decimals > 1 and abs(value) >= 1:
        text = number(value)
    else:
        text = f"{value:.{decimals}f}"
    is_hidden = bool(value) and not text.strip("-0.,")
    return f"{value:.1g}" if is_hidden else text


def change_with_ends(row: Fields) -> str:
    """Return a difference with the interval that decides, or why there is none."""
    ends = ends_text(row)
    if not ends:
        reason = None
        if "interval" in row:
            reason = row["interval"]["reason"]
        ends = str(reason or "no interval")
    return f"{change_text(row)} ({ends})"


def trials_text(data: Fields) -> str:
    """Return the number of trials per task (``4 trials each``); "" where the sides differ."""
    runs = data["runs"][:2]
    trials = {run["trials"] for run in runs}
    if len(trials) == 1:
        return f"{counted(max(trials), 'trials')} each"
    return ""


def question_of(data: Fields) -> Fields:
    """Return the row of the question."""
    rows = [*compared_rows(data), *data["metrics"].values()]
    return next(row for row in rows if row.get("question"))


def pairs_of(data: Fields) -> list[Fields]:
    """Return the pairs of a comparison, of two sides the only one."""
    runs = data["runs"][:2]
    first, second = (run["name"] for run in runs)
    return data.get("pairs") or [{**data, "a": first, "b": second}]


def claim_of(data: Fields) -> str:
    """Return the result in few words: both values, the difference and its interval."""
    row = question_of(data)
    gap = row["difference"]
    label = row["label"]
    before = value_text(row["a"], row)
    after = value_text(row["b"], row)
    if gap is None:
        return str(data["sentence"])
    if row["verdict"] == "same":
        return f"{label} {after}: the same in every task"
    claim = f"{label} {after} instead of {before}"
    ends = row["interval"]["ends"]
    if gap:
        size = change_text(row).lstrip("+-")
        points = " points" if row["share"] else ""
        claim += f": {size}{points} {'more' if gap > 0 else 'less'}"
    if ends is not None:
        first_end = ends[0]
        interval = {"ends": [-ends[1], -first_end]}
        opposite = {**row, "interval": interval}
        is_loss = gap < 0 and is_certain(row)
        within = ends_text(opposite if is_loss else row)
        share = row["share"]
        if share and ends[0] < 0 < ends[1]:
            less, more = (abs(100 * end) for end in ends)
            within = f"{less:.1f} less to {more:.1f} more"
        claim += f" ({within})"
    if is_certain(row) or not gap:
        return claim
    return f"{claim}, which may be chance"


def passed_text(task: Fields) -> str:
    """Return the numbers of passed trials before and after: ``3 → 2 of 4``."""
    passed_a, _, trials_a = task["a"].partition("/")
    passed_b, _, trials_b = task["b"].partition("/")
    if trials_a == trials_b:
        before = passed_a
    else:
        before = f"{passed_a} of {trials_a}"
    return f"{before} → {passed_b} of {trials_b}"


def unchanged_text(unchanged: Mapping[str, int]) -> str:
    """Count the tasks that did not change by how often they pass; "" for none."""
    parts = [f"{number(count)} {name}" for name, count in unchanged.items() if count]
    total_unchanged = sum(unchanged.values())
    total = counted(total_unchanged, "tasks")
    if parts:
        return f"{total} unchanged: passed {', '.join(parts)}"
    return ""


def _names_of_some(tasks: Sequence[Fields]) -> list[str]:
    return [brief(task["task"], _LONGEST_TASK) for task in tasks[:_MOST_NAMED]]


def console_lines(data: Fields) -> list[str]:
    """Return the lines of the console: the sentence, tasks that got worse and better, figures."""
    lines = []
    if data["incomparable"]:
        lines = ["Compared although (--force):", *_indent(data["incomparable"]), ""]
    lines += [data["sentence"], ""]
    if data.get("warnings"):
        warnings = data["warnings"]
        lines += [*(f"warning: {warning}" for warning in warnings), ""]
    lines += _task_lines(data["flips"])
    for pair in pairs_of(data):
        lines += _pair_lines(pair)
    if data.get("not_compared"):
        not_compared = data["not_compared"].values()
        lines += ["Not compared:", *_indent(not_compared), ""]
    for kind, title in _KINDS.items():
        changed = data["changed"]
        rows = [row for row in changed[kind] if is_certain(row)]
        if rows:
            figure_lines = _figure_lines(rows[:_MOST_CAUSES])
            lines += [f"{title}, share of trials:", *figure_lines, ""]
    if "by" in data:
        lines += _facet_lines(data["by"])
    if data.get("groups"):
        lines += _leaderboard_lines(data)
    last_line = lines[-1]
    return lines[:-1] if not last_line else lines


def _indent(texts: Any) -> list[str]:
    return [f"  {text}" for text in texts]


def _task_lines(flips: Fields) -> Iterator[str]:
    worse = flips["worse"]
    better = flips["better"]
    if worse["count"]:
        yield f"{counted(worse['count'], 'tasks')} got worse; {BY_CHANCE}:"
        table = []
        for task in worse["tasks"][:_MOST_WORSE]:
            name = brief(task["task"], _LONGEST_TASK)
            table.append((name, passed_text(task), cause_text(task["cause"] or "")))
        yield from _align(table)
        if worse["count"] > _MOST_WORSE:
            yield f"  and {number(worse['count'] - _MOST_WORSE)} more"
    if better["count"]:
        names = _names_of_some(better["tasks"])
        rest = better["count"] - len(names)
        more = f" and {number(rest)} more" if rest else ""
        yield f"{counted(better['count'], 'tasks')} got better: {', '.join(names)}{more}"
    unchanged = unchanged_text(flips["unchanged"])
    if unchanged:
        yield unchanged
    if worse["count"] or better["count"] or unchanged:
        yield ""


def _align(table: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows of a table with columns of one width."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield f"  {'  '.join(cells)}".rstrip()


def _figure_lines(rows: Sequence[Fields], tasks: int | None = None) -> list[str]:
    """Return a line for each figure: before and after, difference, interval, verdict, p."""
    table = []
    for row in rows:
        before = value_text(row["a"], row)
        after = value_text(row["b"], row)
        values = f"{before} -> {after}"
        is_share = row.get("share", True)
        points = ""
        if is_share and row["difference"] is not None:
            points = " points"
        change = change_with_ends(row).replace(" (", f"{points} (", 1)
        label = _label_with_path(row)
        table.append((label, values, change, verdict_text(row), p_text(row), _tasks_of(row, tasks)))
    return [*_align(table)]


def _label_with_path(row: Fields) -> str:
    label = row.get("label", row.get("name"))
    path = row.get("path", label)
    limit = 2 * _LONGEST_NAME
    return brief(label if label == path else f"{label} ({path})", limit)


def _tasks_of(row: Fields, tasks: int | None) -> str:
    """Return the number of tasks of a figure, where it is not that of the question."""
    if tasks is None or row["tasks"] == tasks:
        return ""
    return counted(row["tasks"], "tasks")


def _pair_lines(pair: Fields) -> Iterator[str]:
    rows = compared_rows(pair)
    usage = [*pair.get("usage", {}).values()]
    tasks = rows[0]["tasks"]
    yield f"{pair['a']} -> {pair['b']}, {counted(tasks, 'tasks')}:"
    yield from _figure_lines(rows, tasks)
    if usage:
        yield "What a run takes:"
        yield from _figure_lines(usage, tasks)
    failed_count = pair.get("failed_count")
    for sentence in (pair.get("tested"), failed_count):
        if sentence:
            yield sentence
    yield ""


def _facet_lines(by: Fields) -> list[str]:
    groups = by["groups"]
    table = []
    for row in groups[:_MOST_CAUSES]:
        cells = (row["group"], change_text(row), ends_text(row), verdict_text(row))
        tasks = _tasks_of(row, 0)
        table.append((*cells, tasks))
    more = len(groups) - _MOST_CAUSES
    if more > 0:
        rest = [f"  and {number(more)} more"]
    else:
        rest = []
    return [f"Difference by {by['facet']}:", *_align(table), *rest, ""]


def _leaderboard_lines(data: Fields) -> list[str]:
    row = question_of(data)
    table = []
    for entry in data["groups"]:
        ranks = "-".join(map(str, entry["ranks"]))
        mean = entry["mean"]
        table.append((entry["name"], value_text(mean, row), f"rank {ranks}", entry["groups"]))
    title = f"Leaderboard by {data['question']}; rank intervals, letters for ties:"
    return [title, *_align(table), ""]


def comment(data: Fields) -> str:
    """Return a comment on a pull request, at most 25 lines without groups of a facet.

    What comes from the data is shown as code or escaped.
    """
    url = data.get("report_url")
    flips = data["flips"]
    claim = prose(claim_of(data))
    lines = [f"### {_mark(data)} {claim}", "", _context_line(data, url), ""]
    for text in _cautions(data):
        caution = prose(brief(text, 200))
        lines.append(f"⚠️ {caution}")
    worse = _worse_lines(flips["worse"], url)
    better = _better_line(flips, url)
    tasks = [*worse, *([""] if worse and better else []), *([better] if better else [])]
    lines += [*tasks, ""] if tasks else []
    footer = ["", f"<sub>{_footer(data)}</sub>"]
    room = MOST_LINES - len(lines) - len(footer) - 2
    groups = data.get("groups")
    lines += _board_rows(data, room) if groups else _table_rows(data, room)
    facet_table = _facet_table(data)
    return "\n".join([*lines, *facet_table, *footer]) + "\n"


def _mark(data: Fields) -> str:
    verdict = question_of(data)["verdict"]
    return _MARKS.get(verdict, "⚪")


def _cautions(data: Fields) -> list[str]:
    """Return the first problem that was passed over by force, and the first warning."""
    problems = data["incomparable"][:1]
    forced = [f"Compared although (--force): {problem}" for problem in problems]
    warnings = data.get("warnings", ())[:1]
    return [*forced, *warnings]


def _context_line(data: Fields, url: str | None) -> str:
    before, after = data["runs"][:2]
    names = f"{code(after['name'], _LONGEST_NAME)} against {code(before['name'], _LONGEST_NAME)}"
    models = dict.fromkeys(run["model"] for run in (after, before) if run["model"])
    named = [code(model, _LONGEST_NAME) for model in models if model not in names]
    question = question_of(data)
    tasks = counted(question["tasks"], "tasks")
    basis = ", ".join(filter(None, (tasks, trials_text(data))))
    parts = [*named[:2], basis, names]
    if url:
        parts.append(f"**[Full report]({_address(url)})**")
    return " · ".join(parts)


def _address(url: str, anchor: str = "") -> str:
    """Return an address that cannot leave the link it stands in."""
    address = quote(url, safe=":/?&=%#@!$*+,;~-._")
    return f"{address}#{quote(anchor, safe='')}" if anchor else address


def _task_link(task: str, url: str | None) -> str:
    name = code(task, _LONGEST_TASK)
    if url:
        return f"[{name}]({_address(url, f'task-{task}')})"
    return name


def _worse_lines(worse: Fields, url: str | None) -> list[str]:
    count = worse["count"]
    if not count:
        return []
    lines = [f"**{counted(count, 'tasks')} got worse** ({BY_CHANCE})"]
    listed = worse["tasks"][:_MOST_WORSE_IN_COMMENT]
    for task in listed:
        cause = prose(brief(cause_text(task["cause"] or ""), _LONGEST_NAME))
        why = f": {cause}" if cause else ""
        link = _task_link(task["task"], url)
        lines.append(f"- {link} {passed_text(task)}{why}")
    rest = count - len(listed)
    if rest > 0:
        text = f"{number(rest)} more"
        more = _link(text, url, "worse")
        lines.append(f"- {more}")
    return lines


def _link(text: str, url: str | None, anchor: str) -> str:
    if url:
        return f"[{text}]({_address(url, anchor)})"
    return text


def _better_line(flips: Fields, url: str | None) -> str:
    better = flips["better"]
    unchanged = flips["unchanged"]
    parts = []
    if better["count"]:
        tasks = better["tasks"][:_MOST_NAMED]
        names = [_task_link(task["task"], url) for task in tasks]
        rest = better["count"] - len(names)
        more = ""
        if rest:
            more = f" and {_link(f'{number(rest)} more', url, 'better')}"
        parts.append(f"**{number(better['count'])} got better:** {', '.join(names)}{more}")
    total = sum(unchanged.values())
    if total:
        never = unchanged["never"]
        text = f"{number(never)} of them never passed"
        of_these = _link(text, url, "both-fail")
        parts.append(f"{number(total)} unchanged{f', {of_these}' if never else ''}")
    return " · ".join(parts)


def _table_rows(data: Fields, room: int) -> list[str]:
    """Return a table of the question, other figures, what a run takes and causes."""
    most = min(room, _MOST_FIGURES_IN_COMMENT)
    figures = compared_rows(data)
    question = question_of(data)
    usage = [*data.get("usage", {}).values()][:_MOST_OF_A_KIND]
    reasons = data["changed"]["reasons"]
    causes = [*reasons][:_MOST_OF_A_KIND]
    others = _different_figures(question, figures)
    left = most - 1 - len(usage) - len(causes)
    others = others[: max(0, left)]
    rows = [question, *others, *usage, *causes][: max(1, most)]
    lines = ["| | before | after | change | |", "| :-- | --: | --: | --: | :-- |"]
    for row in rows:
        verdict = verdict_text(row)
        if is_certain(row):
            verdict = f"**{verdict}**"
        values = [value_text(row[side], row) for side in "ab"]
        row_label = _row_label(row)
        cells = [row_label, *values, change_with_ends(row), verdict]
        lines.append(_table_line(cells))
    return lines


def _table_line(cells: Sequence[str]) -> str:
    """Return a line of a table in Markdown."""
    inner = " | ".join(cells)
    return f"| {inner} |"


def _different_figures(question: Fields, rows: Sequence[Fields]) -> list[Fields]:
    """Return the figures beside the question; those with the same values are shown once."""
    known = {(question["a"], question["b"], question["difference"])}
    others = []
    for row in rows:
        values = (row["a"], row["b"], row["difference"])
        if row is not question and values not in known:
            others.append(row)
            known.add(values)
    return others


def _row_label(row: Fields) -> str:
    if "label" in row:
        return prose(brief(row["label"], _LONGEST_LABEL))
    return f"Failed: {prose(brief(cause_text(row['name']), _LONGEST_LABEL))}"


def _board_rows(data: Fields, room: int) -> list[str]:
    """Return a table of three runs or models and more, the best first."""
    row = question_of(data)
    lines = [f"| | {prose(row['label'])} | rank | ties |", "| :-- | --: | :-- | :-- |"]
    for entry in data["groups"][: max(1, room)]:
        value = value_text(entry["mean"], row)
        ranks = "–".join(map(str, entry["ranks"]))
        name = code(entry["name"], _LONGEST_NAME)
        cells = [name, value, ranks, entry["groups"]]
        table_line = _table_line(cells)
        lines.append(table_line)
    return lines


def _facet_table(data: Fields) -> list[str]:
    by = data.get("by")
    if by is None:
        return []
    lines = ["", f"| {prose(by['facet'])} | change | | tasks |", "| :-- | --: | :-- | --: |"]
    for row in by["groups"][:_MOST_CAUSES]:
        ends = ends_text(row) or "no interval"
        group = prose(brief(row["group"], _LONGEST_NAME))
        change = f"{change_text(row)} ({ends})"
        cells = [group, change, verdict_text(row), number(row["tasks"])]
        table_line = _table_line(cells)
        lines.append(table_line)
    return lines


def _footer(data: Fields) -> str:
    row = question_of(data)
    parts = ["Changes of shares in points, with the interval that decides"]
    if not is_certain(row) and row.get("mde80") is not None:
        size = points_text(row["mde80"], row)
        parts.append(f"a true difference of {size} would be found in four of five such comparisons")
    if data.get("failed_count"):
        parts.append(prose(data["failed_count"]))
    return " · ".join([*parts, f"gradestack {__version__}"])
