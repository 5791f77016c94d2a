"""What all shards came to: results merged in shard order, and the figures finished."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

import attrs

from gradestack.api import Aggregator
from gradestack.grading.counts import Tally, merge_tallies
from gradestack.grading.duplicates import Identities
from gradestack.grading.plan import Plan
from gradestack.grading.result import LISTED, ShardResult
from gradestack.plugin_errors import error_text


@attrs.define
class Merged:
    """What all shards came to, or all rows of one run of several."""

    samples: int = 0
    tally: Tally = attrs.field(factory=dict)
    states: dict[str, Any] = attrs.field(factory=dict)
    by_input: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    """Input name -> states, for exporters."""
    tally_by_input: dict[str, Tally] = attrs.field(factory=dict)
    bad: int = 0
    bad_listed: list[dict[str, Any]] = attrs.field(factory=list)
    remarks: dict[str, list[Any]] = attrs.field(factory=dict)
    """Kind of remark on records -> how many, and where the first was."""
    ids: dict[str, str] = attrs.field(factory=dict)
    """How ids that are whole numbers were recorded, ``number`` or ``text`` -> where the first was."""
    duplicates: int = 0
    duplicates_listed: list[str] = attrs.field(factory=list)
    seen: set[tuple[str, str, str]] = attrs.field(factory=set)
    unmatched: tuple[list[str], list[str]] = ([], [])
    """Ids of samples without a row in the dataset, and of its rows that no sample answers."""
    contradicted: list[str] = attrs.field(factory=list)
    """Ids whose rows in the dataset expect different things."""
    broken: dict[str, str] = attrs.field(factory=dict)
    timings: dict[str, float] = attrs.field(factory=dict)
    """Grader key -> seconds over all shards."""
    tracebacks: dict[str, str] = attrs.field(factory=dict)
    """Grader key -> traceback of the first error it raised."""
    timed_out: int = 0
    interrupted: bool = False


class Merging:
    """Takes in shard results one after the other, in shard order.

    Attributes:
        merged: What they have come to so far.
        identities: Digests of all samples so far.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.merged, self.identities = plan, Merged(), Identities()
        self._finished: dict[str, dict[str, Any]] | None = None
        self.metrics: Mapping[str, Aggregator[Any]] = {metric.name: metric.stage.component for metric in plan.metrics}

    def add(self, result: ShardResult, offset: int = 0) -> None:
        """Take in the next shard's result; ``offset`` is where its rows start in results.jsonl."""
        self._finished, merged = None, self.merged
        merged.broken = {**result.broken, **merged.broken}
        merged.tracebacks = {**result.tracebacks, **merged.tracebacks}
        self._states(merged.states, result.states)
        merge_tallies(merged.tally, result.tally)
        if self.plan.exporters and len(self.plan.inputs.data) == 1:
            merged.by_input[result.input], merged.tally_by_input[result.input] = merged.states, merged.tally
        elif self.plan.exporters:
            # Merging may have taken pieces of the states over, so these need their own.
            self._states(merged.by_input.setdefault(result.input, {}), copy.deepcopy(result.states))
            merge_tallies(merged.tally_by_input.setdefault(result.input, {}), result.tally)
        merged.samples += result.samples
        merged.timed_out += result.timed_out
        merged.bad += result.bad
        merged.bad_listed += result.bad_listed[: LISTED - len(merged.bad_listed)]
        for kind, (times, place) in result.remarks.items():
            merged.remarks.setdefault(kind, [0, place])[0] += times
        merged.ids = {**result.ids, **merged.ids}
        merged.seen |= result.seen
        merged.interrupted |= result.interrupted
        merged.duplicates += len(result.superseded)
        merged.duplicates_listed += result.superseded[: LISTED - len(merged.duplicates_listed)]
        self.identities.add(bytes(result.keys), result.ordinal, result.samples, offset)
        for key, seconds in result.timings.items():
            merged.timings[key] = merged.timings.get(key, 0.0) + seconds

    def _states(self, into: dict[str, Any], states: dict[str, Any]) -> None:
        for name, state in states.items():
            if name in self.merged.broken:
                continue
            aggregator = self.metrics[name]
            try:
                into[name] = aggregator.merge(into[name] if name in into else aggregator.start(), state)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the other metrics must not be lost with it
                self.merged.broken[name] = error_text(error)

    def finish_states(self, states: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Return finished metrics: grader key -> aggregator key -> metrics; a broken one says so.

        Those of the whole run are worked out once, however often they are asked for.
        """
        if states is not self.merged.states:
            return self._finish(states)
        if self._finished is None:
            self._finished = self._finish(states)
        return {key: dict(metrics) for key, metrics in self._finished.items()}

    def _finish(self, states: dict[str, Any]) -> dict[str, dict[str, Any]]:
        done: dict[str, dict[str, Any]] = {stage.key: {} for stage in self.plan.graders}
        for metric in self.plan.metrics:
            name = metric.name
            try:
                if name not in self.merged.broken:
                    state = states[name] if name in states else metric.stage.component.start()
                    finished = dict(metric.stage.component.finish(state))
                    json.dumps(finished, sort_keys=True)  # it has to be JSON
                    done[metric.of][metric.stage.key] = finished
                    continue
            except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
                self.merged.broken[name] = error_text(error)
            done[metric.of][metric.stage.key] = {"error": self.merged.broken[name]}
        return done
