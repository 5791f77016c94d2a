"""The command ``compare``, and pages of a comparison in HTML and Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

import gradestack
from gradestack import GradestackError, Report, compared_rows, terminal_line, with_unit
from gradestack_plugins.pages.draw import Shape
from gradestack_plugins.pages.environment import environment
from gradestack_plugins.pages.index import index_of
from gradestack_plugins.pages.panel import Panels, asked
from gradestack_plugins.pages.prose import bar, code, prose
from gradestack_plugins.pages.text import UNDEFINED, brief, capital, counted, end, number

_MOST_METRICS = 8
"""Graders in the table of the Markdown page; comparison.json has all."""
_MOST_CHANGES = 10
_MOST_MODELS, _MOST_COMPARED = 8, 10_000
"""Models of a run, and its samples, up to which its page compares them."""
_LONGEST = 120
"""Characters of a name."""
_KINDS = {"reasons": "Reasons", "tools": "Tools with errors", "arguments": "Arguments with errors"}


def markdown_page(data: Mapping[str, Any], panels: Panels) -> str:
    """Return comparison.md: a table of some thirty lines for a pull request, details folded."""
    env = environment()
    env.filters.update(md=prose, code=code, signed=signed, ends=ends, p=p_value, bar=bar)
    shown = compared_rows(data)[:_MOST_METRICS]
    found = asked(panels, ("compare",), data)
    filled = [each for each in found.filled if each.blocks]
    return env.get_template("comparison.md").render(**shown_of(data), shown=shown, panels=filled, rows=compared_rows)


def compared_models(report: Report) -> Mapping[str, Any] | None:
    """Return the comparison of the models of a run with the first; None where there is none, or too much."""
    entries = index_of(report).entries
    models = list(filter(None, dict.fromkeys(entry.model for entry in entries)))
    if not 1 < len(models) <= _MOST_MODELS or len(entries) > _MOST_COMPARED:
        return None
    try:
        data = gradestack.compare(report, registry=report.registry).data
    except GradestackError:  # such as models that share no task
        return None
    others = [{"a": models[0], "b": model} for model in models[1:]]  # the pairs of the first model come first
    run = f"{report.path.resolve().name if report.path else report.name}::"  # whose own name says nothing here
    pairs = [{**pair, **names} for pair, names in zip(data.get("pairs") or [data], others, strict=False)]
    groups = [{**each, "name": each["name"].removeprefix(run)} for each in data.get("groups", ())]
    return {**data, "pairs": pairs, "groups": groups, "sentence": data["sentence"].replace(run, "")}


def differences(pair: Mapping[str, Any], widest: float) -> tuple[Shape, ...]:
    """Return the differences of one pair; those between shares have places on an axis from minus to plus ``widest``."""
    return tuple(_difference(each, widest) for each in compared_rows(pair))


def _difference(each: Mapping[str, Any], widest: float) -> Shape:
    held, found = each["difference"], each["interval"]["ends"]

    def place(value: float | None) -> float | None:
        return None if value is None or not each["share"] else round(50 + 50 * value / widest, 2)

    low, high = found if found is not None else (None, None)
    share = each["unit"] == "share" and held is not None
    counts = counted(each["tasks"], "tasks")
    if each.get("better") is not None:
        counts = f"{each['better']} better, {each['worse']} worse, {each['same']} the same of {counts}"
    return Shape(
        key=str(each["path"]),
        label=str(each["label"]),
        a=_value(each["a"], each["unit"]),
        b=_value(each["b"], each["unit"]),
        text=_points(held, "+") if share else with_unit(signed(held), each["unit"]),
        interval=f"{_points(low)} to {_points(high)} points" if share and found else ends(found),
        at=place(held),
        low=place(low),
        high=place(high),
        word=str(each.get("verdict") or "no test"),
        counts=counts,
        p=p_value(each["p_holm"]),
        visible=f"{_points(each['mde80'])} points" if share and each["mde80"] else number(each["mde80"]),
    )


def _value(value: float | None, unit: str) -> str:
    return f"{_points(value)}%" if unit == "share" and value is not None else with_unit(number(value), unit)


def _points(value: float | None, sign: str = "") -> str:
    return f"{100 * (value or 0.0):{sign}.1f}"


def _widest(pairs: Iterable[Mapping[str, Any]]) -> float:
    """Return the largest distance from 0 of a difference between shares or an end of its interval, else 1."""
    found = [each for pair in pairs for each in compared_rows(pair) if each["share"]]
    values = [value for each in found for value in (each["difference"], *(each["interval"]["ends"] or ())) if value]
    return 1.08 * max(map(abs, values), default=1 / 1.08)


def moved(data: Mapping[str, Any]) -> str:
    """Return how many trials pass on one side alone: of two models who fails them, else that they changed."""
    trials, broken = counted(data["flips"]["fixed"], "trials"), number(data["flips"]["broken"])
    a, b = (brief(run.get("model") or "", 60) for run in data["runs"][:2])
    if not a or not b or a == b:
        return f"{trials} fixed, {broken} broken"
    return f"{b} passes {trials} that {a} fails, and fails {broken} that it passes"


def shown_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what pages show of a comparison."""
    first, second = data["runs"][:2]
    pairs = data.get("pairs") or [{**data, "a": first["name"], "b": second["name"]}]
    pairs = [{**pair, **{side: brief(pair[side], _LONGEST) for side in "ab"}} for pair in pairs]
    upward = all(row.get("better_is") == "higher" for pair in pairs for row in compared_rows(pair))
    confidence = next(iter(data["metrics"].values()))["interval"]["confidence"]
    widest = _widest(pairs)
    return {
        "data": data,
        "unmatched": any(row.get(f"only_{side}_count") for row in data["metrics"].values() for side in "ab"),
        "sentence": brief(capital(data["sentence"]), 6 * _LONGEST),
        "directions": ("worse", "better") if upward else ("lower", "higher"),
        "drawn": [(pair, differences(pair, widest)) for pair in pairs],
        "moved": moved(data),
        "what": [
            (title, [{**row, "name": brief(row["name"], _LONGEST)} for row in rows[:_MOST_CHANGES]])
            for kind, title in _KINDS.items()
            if (rows := data["changed"][kind])
        ],
        "pairs": pairs,
        "by": data.get("by"),
        "groups": [{**each, "name": brief(each["name"], _LONGEST)} for each in data.get("groups", ())],
        "confidence": f"{100 * confidence:.6g} % interval",
    }


def signed(value: float | None) -> str:
    """Return a difference with its sign."""
    return UNDEFINED if value is None else f"{'+' if value > 0 else ''}{number(value)}"


def p_value(value: float | None) -> str:
    """Return a p value; of a small one the bound it is below."""
    return "< 0.001" if value is not None and value < 0.001 else number(value)


def ends(value: list[float] | None) -> str:
    """Return the ends of an interval."""
    return "no interval" if value is None else f"{end(value[0])} to {end(value[1])}"


@click.command(epilog="Example: gradestack compare before after -o comparison")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("-o", "--output", metavar="DIR", help="Write comparison.json and its pages into DIR.")
@click.option("--baseline", metavar="MODEL", help="Model or run the others are compared with [default: the first].")
@click.option(
    "--match", type=click.Choice(["id", "input", "ordinal"]), default="id", help="How tasks of two runs are matched."
)
@click.option(
    "--failed",
    type=click.Choice(["zero", "skip"]),
    default="zero",
    help="Failed trials count as the worst score, or are left out [default: zero].",
)
@click.option("--confidence", type=float, default=0.95, help="Confidence level of intervals [default: 0.95].")
@click.option("--metric", "headline", metavar="GRADER", help="Grader of the sentence and the leaderboard.")
@click.option(
    "--figure",
    "figures",
    multiple=True,
    metavar="PATH",
    help="Further figure, such as label.classification.macro_f1; may be repeated [default: the headline's].",
)
@click.option("--by", metavar="FACET", help="Facet: differences within each of its values, the worst first.")
@click.option("--filter", metavar="EXPR", help="Only samples it is true of: 'facet.domain == \"air\"'.")
@click.option("--tasks", metavar="FILE", help="Only tasks whose ids FILE lists, one a line.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N of these tasks.")
@click.option("--allow-code", is_flag=True, help="Import Python files that the runs used. Only if you trust them.")
@click.option("--force", is_flag=True, help="Compare although graders, expectations or inputs differ.")
def compare(runs: tuple[str, ...], **given: Any) -> None:
    """Compare two or more RUNs task by task: run directories, RUN::MODEL, or result files, which are graded first.

    The first is the baseline; of one run its models are compared. Exit code 0 whatever the difference, 3 when the runs
    cannot be compared.
    """
    found = gradestack.compare(*runs, **{**given, "figures": given["figures"] or None})
    shown = lines(found.data)
    if given["output"] is not None:
        shown += ["", f"Comparison: {given['output']}"]
    click.echo("\n".join(map(terminal_line, shown)))


def lines(data: Mapping[str, Any]) -> list[str]:
    """Return what the console prints of a comparison: the sentence, figures, what changed, the leaderboard."""
    found = []
    if data["incomparable"]:
        found += ["Compared although (--force):", *(f"  {each}" for each in data["incomparable"]), ""]
    found += [data["sentence"], ""]
    if "warnings" in data:
        found += [*(f"warning: {each}" for each in data["warnings"]), ""]
    first = {"a": data["runs"][0]["name"], "b": data["runs"][1]["name"], **data}
    for pair in data.get("pairs") or [first]:
        found += [f"a: {pair['a']}, b: {pair['b']}; failed trials {_FAILED[data['failed']]}:"]
        found += _rows(compared_rows(pair))
        found.append("")
    if "not_compared" in data:
        found += ["Not compared:", *(f"  {reason}" for reason in data["not_compared"].values()), ""]
    for kind, rows in data["changed"].items():
        if changed := [row for row in rows if row["verdict"] != "no evidence"]:
            found.append(f"{_KINDS[kind]}, share of trials:")
            found += [f"  {_change(row)}" for row in changed[:_MOST_CHANGES]]
            found.append("")
    flips = data["flips"]
    if flips["count"]:
        found.append(f"{moved(data)}; tasks that changed most:")
        found += [f"  {each['task']}: {each['a']} -> {each['b']}" for each in flips["tasks"][:_MOST_CHANGES]]
        if flips["count"] > _MOST_CHANGES:
            found.append(f"  and {flips['count'] - _MOST_CHANGES} more")
        found.append("")
    if "by" in data:
        found.append(f"Difference by {data['by']['facet']}:")
        found += [
            f"  {each['group']}: {signed(each['difference'])} ({ends(each['ends'])}), {counted(each['tasks'], 'tasks')}"
            for each in data["by"]["groups"][:_MOST_CHANGES]
        ]
        found.append("")
    if "groups" in data:
        found.append(f"Leaderboard by {_name(compared_rows(first)[0])}; rank intervals, letters for ties:")
        width = max(len(each["name"]) for each in data["groups"])
        for each in data["groups"]:
            ranks = "-".join(map(str, each["ranks"]))
            found.append(f"  {each['name']:<{width}}  {each['mean']:.3f}  rank {ranks}  {each['groups']}")
        found.append("")
    return found[:-1]


_FAILED = {"zero": "count with the worst score", "skip": "are left out"}


def _name(row: Mapping[str, Any]) -> str:
    return str(row["label"] if row["label"] == row["path"] else f"{row['label']} ({row['path']})")


def _rows(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    width = max(len(_name(row)) for row in rows)
    found = []
    for each in rows:
        unit = each["unit"]
        values = f"a {with_unit(number(each['a']), unit)}  b {with_unit(number(each['b']), unit)}"
        values += f"  difference {with_unit(signed(each['difference']), unit)}"
        tasks = counted(each["tasks"], "tasks")
        if each.get("better") is not None:
            tasks += f": {each['better']} better, {each['worse']} worse, {each['same']} same"
        only = [f"{each[f'only_{side}_count']} only in {side}" for side in "ab" if each[f"only_{side}_count"]]
        text = f"  {_name(each):<{width}}  {values} ({ends(each['interval']['ends'])})  p {p_value(each['p_holm'])}"
        found.append(f"{text}  {each['verdict']}  {', '.join([tasks, *only])}")
    return found


def _change(row: Mapping[str, Any]) -> str:
    values = f"{100 * row['a']:.1f}% -> {100 * row['b']:.1f}%"
    return f"{row['name']}: {values}, {row['verdict']} (p {p_value(row['p_holm'])})"
