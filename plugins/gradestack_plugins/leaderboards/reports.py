"""Reports of benchmarks: AppWorld, Gaia2, SWE-bench and ToolSandbox."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
from typing_extensions import override

from gradestack import DataError, Input, Inputs, replace
from gradestack.jsonio import as_list, as_map, as_number
from gradestack_plugins.leaderboards.verdicts import (
    SURE,
    VerdictReader,
    document_at,
    is_true,
    only,
    texts_of,
)
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.runs import Record, Run


@attrs.frozen(kw_only=True)
class AppWorld(VerdictReader):
    """Reads evaluation reports of AppWorld: documents with ``individual`` results by task.

    The verdict is ``success``; ``recorded.requirements`` is the share of requirements that are
    met. Tasks of one scenario, whose ids begin alike, are a cluster.
    """

    version = "1"
    marks = (("individual", "passes", "failures"),)

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        tasks = as_map(as_map(record).get("individual"))
        first = as_map(next(iter(tasks.values()), None))
        return SURE if "success" in first else 0.0

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        for value, source in records:
            for place, (name, told) in enumerate(as_map(as_map(value).get("individual")).items()):
                about = as_map(told)
                met, unmet = len(as_list(about.get("passes"))), len(as_list(about.get("failures")))
                scenario = name.rpartition("_")[0] or name
                yield Run(
                    id=name,
                    entries=[],
                    source=replace(source, ordinal=place),
                    first=value,
                    cluster=scenario,
                    recorded={"success": is_true(about.get("success"))}
                    | ({"requirements": met / (met + unmet)} if met + unmet else {}),
                    facets=only({"difficulty": about.get("difficulty"), "scenario": scenario}),
                )


@attrs.frozen(kw_only=True)
class Gaia2(VerdictReader):
    """Reads ``output.jsonl`` of Gaia2: a run of a scenario a line.

    The id is the scenario's, ``run`` its number; the verdict is ``score``. A run that ended in an
    exception is a failure, and one that was not judged counts nowhere, as the benchmark's success
    rate has it.
    """

    version = "1"

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        about = as_map(as_map(record).get("metadata"))
        is_line = {"task_id", "trace_id", "score"} <= as_map(record).keys()
        return SURE if is_line and "scenario_id" in about else 0.0

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        for value, source in records:
            if not self.looks_like(value):
                raise ValueError("expected task_id, trace_id, score and metadata of a scenario")
            about = as_map(value["metadata"])
            said = value["score"]
            score = float(said) if isinstance(said, bool) else as_number(said)
            has_broken = about.get("has_exception") is True or about.get("status") == "exception"
            if score is None and has_broken:
                score = 0.0
            number = about.get("run_number")
            named = {name: about.get(name) for name in _ABOUT_SCENARIO}
            yield Run(
                id=str(value["task_id"]),
                trial=number if isinstance(number, int) else None,
                entries=[],
                source=source,
                first=value,
                model=word(dict(about), "model") or None,
                recorded={} if score is None else {"score": score},
                ended="error" if has_broken else None,
                error=about.get("rationale") or "exception" if has_broken else None,
                facets=only(named),
                remarks={"run_not_judged": 1} if score is None else {},
            )


_ABOUT_SCENARIO: Final = ("status", "exception_type", "config", "rationale")


@attrs.frozen(kw_only=True)
class ToolSandbox(VerdictReader):
    """Reads ``result_summary.json`` of ToolSandbox: a similarity for each scenario.

    The similarity is a figure, no verdict. A scenario that ended in an exception has 0, as the
    benchmark has it. Conversations beside the summary are those of its scenarios.
    """

    version = "1"
    marks = (("per_scenario_results",),)

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        rows = as_list(as_map(record).get("per_scenario_results"))
        return SURE if rows and "similarity" in as_map(rows[0]) else 0.0

    @classmethod
    @override
    def main_of(cls, path: Path) -> Path | None:
        above = path.parent.parent
        return above.parent / _SUMMARY if above.name == "trajectories" else None

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        for value, source in records:
            for place, row in enumerate(as_list(as_map(value).get("per_scenario_results"))):
                about = as_map(row)
                name = str(about.get("name"))
                talk = file.path.parent / "trajectories" / name / "conversation.json"
                kind = about.get("exception_type")
                similarity = as_number(about.get("similarity"))
                yield Run(
                    id=name,
                    entries=list(as_list(document_at(talk))),
                    source=replace(source, ordinal=place),
                    first=value,
                    recorded={"similarity": 0.0 if similarity is None else similarity},
                    ended="error" if kind else None,
                    error={"type": str(kind), "message": str(kind)} if kind else None,
                    facets=only(
                        {
                            "categories": texts_of(about.get("categories")),
                            "turns": about.get("turn_count"),
                        }
                    ),
                )


_SUMMARY: Final = "result_summary.json"
_NAMED: Final = ("submitted", "completed", "resolved", "unresolved", "error", "empty_patch")
"""Lists of instances in a report of a run, without those that were not handed in."""
_MOST_UNNAMED: Final = 100_000


@attrs.frozen(kw_only=True)
class SweBench(VerdictReader):
    """Reads reports of SWE-bench's harness, of a run or of one instance, and predictions.

    The verdict is ``resolved``. Every instance of a report of a run counts, also those that were
    not handed in, have no patch or ended in an error: the benchmark divides by
    ``total_instances``. Those it counts and does not name are runs under ids that are made up.
    Predictions (``instance_id``, ``model_patch``) beside a report are the answers of its runs.
    """

    version = "1"
    marks = (
        ("total_instances", "resolved_ids"),
        ("patch_successfully_applied", "tests_status"),
        ("instance_id", "model_patch"),
    )

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if not isinstance(record, dict):
            return 0.0
        is_known = _is_report(record) or _instances_in(record) or _predictions_in(record)
        return SURE if is_known else 0.0

    @override
    def index(self, inputs: Inputs) -> dict[str, Any]:
        """Return the patches of predictions, by instance.

        Raises:
            DataError: There are predictions only.
        """
        patches: dict[str, Any] = {}
        others = 0
        for given in inputs.data:
            values = [record.value for record in self._records(given, [], [])]
            found = {
                name: each for value in values for name, each in _predictions_in(value).items()
            }
            others += not found
            patches |= found
        if patches and not others:
            raise DataError(
                f"{inputs.data[0].shown}: predictions without a report: nothing was run that says "
                "whether they resolve anything",
                "run the benchmark's evaluation, and name the report it writes too",
            )
        return patches

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        for value, source in records:
            if not isinstance(value, dict):
                continue
            runs = _of_report(value, file) if _is_report(value) else _of_instances(value, file)
            for place, run in enumerate(runs):
                predicted = as_map(index.get(run.id))
                patch = predicted.get("model_patch")
                if isinstance(patch, str):
                    run.entries = [{"role": "assistant", "content": patch}]
                run.model = word(dict(predicted), "model_name_or_path") or run.model
                run.source, run.first = replace(source, ordinal=place), value
                yield run


def _is_report(value: Mapping[str, Any]) -> bool:
    """Return whether an object is the report of a whole run."""
    return isinstance(value.get("resolved_ids"), list) and "total_instances" in value


def _instances_in(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the instances of a report by id; none where it is no such report."""
    are_reports = all(isinstance(as_map(each).get("resolved"), bool) for each in value.values())
    return value if value and are_reports else {}


def _predictions_in(value: Any) -> dict[str, Any]:
    """Return predictions by instance: one that a record is, or those that stand under their ids."""
    if not isinstance(value, dict):
        return {}
    rows = [value] if "instance_id" in value else list(value.values())
    are_predictions = all("model_patch" in as_map(row) for row in rows)
    if not rows or not are_predictions:
        return {}
    names = [value.get("instance_id")] if rows == [value] else list(value)
    return {str(name): row for name, row in zip(names, rows, strict=True)}


def _of_report(report: Mapping[str, Any], file: Input) -> Iterator[Run]:
    """Yield a run for every instance that a report counts."""
    listed = {name: dict.fromkeys(map(str, as_list(report.get(f"{name}_ids")))) for name in _NAMED}
    incomplete = dict.fromkeys(map(str, as_list(report.get("incomplete_ids"))))
    names = {name: None for own in (*listed.values(), incomplete) for name in own}
    model = file.path.name.split(".")[0] if file.path.name.count(".") > 1 else None
    for name in names:
        has_broken = name in listed["error"]
        states = [state for state in ("resolved", "empty_patch", "error") if name in listed[state]]
        state = states[0] if states else "unresolved" if name not in incomplete else "incomplete"
        yield Run(
            id=name,
            entries=[],
            model=model,
            recorded={"resolved": name in listed["resolved"]},
            ended="error" if has_broken else None,
            error="the evaluation ended in an error" if has_broken else None,
            facets={"state": state},
        )
    total = report.get("total_instances")
    unnamed = total - len(names) if isinstance(total, int) else 0
    for number in range(min(unnamed, _MOST_UNNAMED)):
        yield Run(
            id=f"unnamed-{number + 1}",
            entries=[],
            model=model,
            recorded={"resolved": False},
            facets={"state": "incomplete"},
            remarks={"instance_counted_and_not_named": 1},
        )


def _of_instances(value: Mapping[str, Any], file: Input) -> Iterator[Run]:
    """Yield a run for every instance of a report by id."""
    for name, told in _instances_in(value).items():
        about = as_map(told)
        folder = file.path.parent
        yield Run(
            id=name,
            entries=[],
            model=folder.parent.name if folder.name == name else None,
            recorded={"resolved": about.get("resolved") is True},
        )
