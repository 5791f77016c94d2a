"""Grader ``judged``: a model's verdict on every criterion of a rubric, from the journal of `gradestack judge`."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import compress
from operator import mul
from pathlib import Path
from statistics import median_low
from typing import Any, ClassVar

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    JSON,
    Endpoint,
    Grade,
    Item,
    Judged,
    Message,
    Outcome,
    Reply,
    Request,
    Sample,
    delimited,
    failed,
    fault_of,
    nonce_of,
    replace,
    reply_text,
    visible,
)
from gradestack.jsonio import dumps
from gradestack_plugins.judges.calibrated import Calibrated, read_calibration
from gradestack_plugins.judges.labels import Labels, read_verdicts, verdict_of_people
from gradestack_plugins.judges.rubric import Criterion, Rubric, read_rubric

_SYSTEM = Path(__file__).with_name("system.txt").read_text(encoding="utf-8").rstrip("\n")
_CHECK_SIZE = 8


@attrs.frozen(kw_only=True)
class LabelledJudge(Judged):
    """Base of judges that labels of people correct."""

    aggregators: ClassVar[tuple[str, ...]] = ("calibrated", "mean")
    label: ClassVar[str] = "Mean score by the judge"
    words: ClassVar[tuple[str, str]] = ("passed by the judge", "not passed by the judge")

    labels: Path | None = None
    calibration: Path | None = None
    people: Labels = attrs.field(init=False, eq=False, repr=False)

    def read_people(self, criteria: Collection[str] = ()) -> None:
        """Read the labels; what cannot be is refused here, where their options stand."""
        object.__setattr__(self, "people", read_verdicts(self.labels, criteria))
        read_calibration(self.calibration)

    def for_metric(self, metric: Any) -> Any:
        """Return an aggregator of its grades that knows whose labels there are."""
        names = ("labels", "calibration") if isinstance(metric, Calibrated) else ()
        return attrs.evolve(metric, **{name: getattr(metric, name) or getattr(self, name) for name in names})


@attrs.frozen(kw_only=True)
class JudgedByRubric(LabelledJudge):
    """A model's verdict on each criterion of a rubric.

    A criterion is worth 1 for ``pass``, 0 for ``fail``; on a scale from a to b a verdict v is worth (v - a) / (b - a).
    Of several votes the majority counts, a tie fails; on a scale the median, the lower of two. ``score`` = sum(weight x
    value) / sum(weight). The sample passes when ``score`` >= ``pass`` and every required criterion's value >= ``pass``.

    Without more than half of the votes valid the grade is failed, with the code most invalid ones have: ``not_judged``,
    ``refused``, ``filtered``, ``truncated``, ``tool_calls``, ``malformed`` (the whole reply, in one fence or none, is
    not JSON of the schema), ``wrong_check``. It is failed as ``unclear`` where the verdict on a criterion is.

    Counts are ``votes``, those that are valid, and ``votes_passed``, those that alone would pass the sample. ``label``
    is the verdict, ``gold`` that of people. Both profiles are the same.

    Attributes:
        rubric: YAML file of criteria and model.
        judgements: The journal that `gradestack judge` writes.
        labels: Verdicts of people, by id: JSON Lines or CSV of ``id`` and ``label`` (``pass``, ``fail``), and where
            wanted ``model``, ``run`` and ``criterion``.
        calibration: ``summary.json`` of another run of this judge, which has labels.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = frozenset(
        {"input", "turns", "calls", "text", "label", "plan", "state", "expected", "model", "run"}
    )

    rubric: Path
    content: Rubric = attrs.field(init=False, eq=False, repr=False)

    @content.default
    def _content(self) -> Rubric:
        return read_rubric(self.rubric)

    def __attrs_post_init__(self) -> None:
        self.read_people(self.content.criteria)

    @property
    @override
    def endpoint(self) -> Endpoint:
        return self.content.judge

    @override
    def requests(self, sample: Sample) -> Sequence[Request]:
        return [self._request(sample)] * self.content.judge.votes

    def _request(self, sample: Sample) -> Request:
        """Return what is asked about a sample; what marks its data, and the check code, no data can hold."""
        content = self.content
        data, half = visible(dumps(shown_run(sample, content.show))), content.max_chars // 2
        if len(data) > content.max_chars:
            data = f"{data[:half]}[... {len(data) - 2 * half} characters left out ...]{data[-half:]}"
        nonce = nonce_of(content.asked, data)
        check = hashlib.sha256(f"check{nonce}".encode()).hexdigest()[:_CHECK_SIZE]
        expected = f"\nReference:\n{visible(dumps(_expected(sample)))}" if content.reference else ""
        system = f"{_SYSTEM.format(nonce=nonce)}\n{content.schema_text}\nCheck code: {check}"
        user = f"Criteria:\n{content.asked}{expected}\n{delimited(nonce, data)} Judge them by the criteria above."
        return content.judge.request(system, user, content.schema)

    @override
    def problem(self, request: Request, reply: Reply) -> str | None:
        verdicts, code = self._read(reply, _check_of(request))
        return "unclear" if "unclear" in [each.verdict for each in verdicts] else code

    @override
    def grade(self, sample: Sample) -> Grade:
        request = self._request(sample)  # once
        return self._verdict(sample, request, self.journal.replies([request.key] * self.content.judge.votes))

    @override
    def verdict(self, sample: Sample, replies: Sequence[Reply | None]) -> Grade:
        return self._verdict(sample, self._request(sample), replies)

    def _verdict(self, sample: Sample, request: Request, replies: Sequence[Reply | None]) -> Grade:
        check = _check_of(request)
        read = [((), "not_judged") if reply is None else self._read(reply, check) for reply in replies]
        votes = [verdicts for verdicts, code in read if code is None]
        if 2 * len(votes) <= len(replies):
            return failed(fault_of(Counter(code for _, code in read if code).most_common(1)[0][0]))
        criteria = self.content.criteria.items()
        items = tuple(
            [self._item(sample, *of, given) for of, given in zip(criteria, zip(*votes, strict=True), strict=True)]
        )
        score, passed = self._judged([item.score for item in items])
        worth = [[of.worth(each.verdict) for (_, of), each in zip(criteria, vote, strict=True)] for vote in votes]
        counts = {"votes": len(votes), "votes_passed": sum(self._judged(values)[1] for values in worth)}
        if score is None:
            return replace(failed(fault_of("unclear")), items=items, counts=counts)
        return Grade(
            score=score,
            passed=passed,
            counts=counts,
            label="pass" if passed else "fail",
            gold=verdict_of_people(self.people, sample),
            items=items,
            rationale="\n".join([f"{item.id}: {item.metadata['reason']}" for item in items]),
        )

    def _item(self, sample: Sample, name: str, criterion: Criterion, votes: Sequence[Any]) -> Item:
        """Return what all votes together say of a criterion, with the reason of the first that says so."""
        given = [vote.verdict for vote in votes]
        if criterion.scale is not None:
            chosen = median_low(given)
        else:
            passed, unclear = 2 * given.count("pass") > len(given), 2 * given.count("fail") < len(given)
            chosen = "pass" if passed else "unclear" if unclear else "fail"
        reason = votes[given.index(chosen)].reason
        score, gold = criterion.worth(chosen), verdict_of_people(self.people, sample, name)
        item = Item(id=name, score=score, label=str(chosen), gold=gold, metadata={"reason": reason})
        return item if score is not None else replace(item, outcome=Outcome.FAILED, fault=fault_of("unclear"))

    def _judged(self, values: Sequence[float | None]) -> tuple[float | None, bool]:
        """Return score and verdict by the values of all criteria; none, and not passed, where one is unclear."""
        known, criteria = [value for value in values if value is not None], self.content.criteria.values()
        if len(known) < len(values):
            return None, False
        weights = [of.weight for of in criteria]
        score = math.fsum(map(mul, known, weights)) / math.fsum(weights)
        return score, min([score, *compress(known, [of.required for of in criteria])]) >= self.content.pass_mark

    def _read(self, reply: Reply, check: str) -> tuple[tuple[Any, ...], str | None]:
        """Return the verdicts of a reply, in the order of the criteria, or the code of why it has none."""
        text, code = reply_text(reply)
        if code is not None:
            return (), code
        try:
            data = self.content.decoder.decode(text)
        except (ValueError, RecursionError):  # msgspec's own is a ValueError
            return (), "malformed"
        return (msgspec.structs.astuple(data.criteria), None) if data.check == check else ((), "wrong_check")


def _check_of(request: Request) -> str:
    return request.messages[0]["content"][-_CHECK_SIZE:]


_CALL = ("name", "arguments", "raw_arguments")


def _fields(value: Any, *names: str) -> dict[str, Any]:
    """Return what a part of a sample has under these names; what was not recorded is left out."""
    return {name: each for name in names if (each := getattr(value, name)) is not None and each != ()}


def _message(message: Message) -> dict[str, Any]:
    found = _fields(message, "role", "content", "name")
    return (
        found | {"tool_calls": [_fields(each, *_CALL) for each in message.tool_calls]} if message.tool_calls else found
    )


def shown_run(sample: Sample, show: Sequence[str]) -> dict[str, Any]:
    """Return what a model, or a person, sees of a run."""
    found = _fields(sample, *show)
    if "turns" in show and not any(sample.turns):
        found = _fields(sample, *[name for name in show if name != "turns"], "text", "label", "plan", "calls")
    if "turns" in found:
        found["turns"] = [[_message(each) for each in turn] for turn in sample.turns]
    if "calls" in found:
        found["calls"] = [_fields(each, *_CALL, "result", "error") for each in sample.calls or ()]
    return found


def _expected(sample: Sample) -> JSON:
    found = _fields(sample.expected, "calls", "text", "label", "state")
    calls = [_fields(each, "name", "names", "arguments") for each in sample.expected.calls or ()]
    return {**found, "calls": calls} if "calls" in found else found
