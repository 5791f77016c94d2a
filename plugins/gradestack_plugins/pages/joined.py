"""The sides of a comparison as one run, each a model of it, so that it has the page of a run."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from gradestack import Comparison, DataError, Outcome, Registry, Report
from gradestack.jsonio import as_list, as_map, as_text, dumps
from gradestack_plugins.pages.figures import headline
from gradestack_plugins.pages.tallies import sum_over

_SUCCESSES = ("passed", "failed", "share", "share_interval")
_decode, _encode = msgspec.json.Decoder(dict[str, Raw]).decode, msgspec.json.Encoder().encode


def joined(comparison: Comparison, registry: Registry | None) -> Report:
    """Return the sides of a comparison as one run with their names for models.

    Their rows, and figures by model.

    Tasks that were matched by something else than their ids have the id of the first side.
    Components and words are the baseline's.
    """
    times, sides, ids = Counter[str](), list[Any](), dict[str, Raw]()
    for side in comparison.sides:
        times[side.name] += 1
        number = f" ({times[side.name]})" if times[side.name] > 1 else ""
        sides.append(msgspec.structs.replace(side, name=side.name + number))
    held = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the report
    try:
        for side in sides:
            held.writelines(_lines(side, ids))
    except BaseException:
        held.close()
        raise
    reports = list({id(side.report): side.report for side in sides}.values())
    inputs = [each for report in reports for each in as_list(report.header.get("inputs"))]
    names = [side.name for side in sides]
    summary: dict[str, Any] = {
        "side": "run" if len(reports) > 1 else "model",
        "suite": f"{', '.join(names[1:])} against {names[0]}",
        "metrics": _metrics(sides, list(comparison.data["metrics"])),
        "outcome": _outcome(sides),
        "headline": {"letta": False, "figures": list(_headline(sides))},
        "gates": [],
        "gates_passed": None,
        "warnings": [
            *(f"compared although: {each} (--force)" for each in comparison.data["incomparable"]),
            *comparison.data.get("warnings", ()),
            *(
                f"not compared: {reason}"
                for reason in comparison.data.get("not_compared", {}).values()
            ),
        ],
    }
    header = {**reports[0].header, "notes": [], "inputs": inputs}
    return Report(
        path=None, header=header, summary=summary, row_buffer=held, registry=registry
    ).closing_itself()


def _lines(side: Any, ids: dict[str, Raw]) -> Iterator[bytes]:
    """Yield the rows of a side with its name for their model."""
    tasks = {row: task for task, rows in side.tasks.items() for row in rows}
    name, other = Raw(dumps(side.name).encode()), side.match != "id"
    facts = side.samples.facts
    for number, _, line in side.report.lines((row, facts[row].first_byte) for row in sorted(tasks)):
        try:
            row = _decode(line)
            sample = _decode(row["sample"]) if other else {}
        except (msgspec.MsgspecError, RecursionError):  # numbers that msgspec does not know
            whole = side.report.row(number, line)
            row, sample = (
                {key: Raw(dumps(each).encode()) for key, each in of.items()}
                for of in (whole, whole["sample"])
            )
        if not bytes(row["grade"]).startswith(b"{"):
            raise DataError(f"{side.report.rows_name}:{number}: expected an object at $.grade")
        row["model_name"] = name
        if other:
            row["sample"] = Raw(
                _encode({**sample, "id": ids.setdefault(tasks[number - 1], sample["id"])})
            )
        yield _encode(row) + b"\n"


def _own(side: Any, held: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a figure, or what an aggregator computed, is of one side."""
    models = as_map(held.get("models"))
    return (
        as_map(models[side.model])
        if side.model in models
        else {k: held[k] for k in held if k != "models"}
    )


def _metrics(sides: Sequence[Any], shared: Sequence[str]) -> dict[str, Any]:
    by_metric, states, aggregates = {}, {}, dict[str, dict[str, Any]]()
    for key in shared:
        grades = [grade for side in sides for grade in _grades(side, key)]
        counts, scores = (
            Counter(each.outcome for each in grades),
            [each.score for each in grades if each.score is not None],
        )
        of = {
            "attempted": len(scores),
            "total": len(scores) + counts[Outcome.FAILED] + counts[Outcome.MISSING],
        }
        by_metric[key] = {
            f"avg_score_{name}": sum_over(scores, n) if n else None for name, n in of.items()
        }
        states[key], aggregates[key] = {state.value: counts[state] for state in Outcome}, {}
        for side in sides:
            for name, metrics in side.report.aggregates.get(key, {}).items():
                aggregates[key].setdefault(name, {"models": {}})["models"][side.name] = _own(
                    side, as_map(metrics)
                )
    totals = {side.name: sum(map(len, side.tasks.values())) for side in sides}
    return {
        "total": sum(totals.values()),
        "per_model": [{"model_name": name, "total": total} for name, total in totals.items()],
        "by_metric": by_metric,
        "states": states,
        "aggregates": aggregates,
    }


def _grades(side: Any, key: str) -> Iterator[Any]:
    table = side.samples.table
    grades, codes = table.grades(key), table.verdicts[key].codes
    return (grades[codes[row]] for rows in side.tasks.values() for row in rows)


def _outcome(sides: Sequence[Any]) -> dict[str, Any] | None:
    """Return the successes of the sides by their common outcome; None where they have none."""
    if sides[0].outcome is None or any(side.outcome != sides[0].outcome for side in sides):
        return None
    found = []
    for side in sides:
        held = as_map(side.report.summary["outcome"])
        models = {
            as_text(each.get("model_name")): each
            for each in map(as_map, as_list(held.get("per_model")))
        }
        own = models.get(side.model, held)
        found.append({**{name: own.get(name) for name in _SUCCESSES}, "model_name": side.name})
    if not all(
        isinstance(each[name], int) for each in found for name in _SUCCESSES[:2]
    ):  # of a damaged summary
        return None
    both = {name: sum(each[name] for each in found) for name in _SUCCESSES[:2]}
    return {
        **sides[0].report.summary["outcome"],
        **both,
        "share": None,
        "share_interval": None,
        "per_model": found,
    }


def _headline(sides: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield the figures of the baseline's headline, of each side that has them."""
    known = [
        {as_text(each.get("figure")): each for each in headline(side.report.summary)}
        for side in sides
    ]
    for path, entry in known[0].items():
        own = {
            side.name: _own(side, each[path])
            for side, each in zip(sides, known, strict=True)
            if path in each
        }
        yield {"label": entry.get("label"), "figure": path, "value": None, "models": own}
