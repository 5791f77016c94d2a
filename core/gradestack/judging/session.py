"""One call of `gradestack judge`: which judgements are missing, and asking for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from typing_extensions import override

from gradestack.api import Grader
from gradestack.copies.files import named_as_given
from gradestack.errors import ConfigError, DataError
from gradestack.grading.plan import Stage
from gradestack.judging.contract import Judged, Request, cost, most_tokens
from gradestack.judging.journal import Line, Place, Reply, recorded, recording
from gradestack.model import Grade, Sample, skipped
from gradestack.output.words import counted
from gradestack.python_api import files_suite, installed, read_suite
from gradestack.rundir.recorder import stream_grades
from gradestack.suites.spec import RunOptions, Suite

Say = Callable[[str], None]
Recorder = Callable[[Request, int, Reply, str, Any], None]
"""Puts on record: request, vote, reply, the form it was asked for in, replies before it that were asked again."""
Ask = Callable[[Judged, Iterator[tuple[Request, int]], Recorder], str]
"""Asks for a judge's requests, each with its vote; returns why some have no reply, "" where all have."""
REPLY_CODES = ("refused", "filtered", "truncated", "tool_calls", "malformed", "wrong_check", "unclear")


class _Requests(Grader):
    """In a judge's place: notes what it would ask about each sample that it would grade."""

    def __init__(self, judged: Judged) -> None:
        self.judged, self.found = judged, list[tuple[Request, int]]()
        for name in ("handles", "needs", "submission", "alternatives"):
            setattr(self, name, getattr(judged, name))

    @override
    def grade(self, sample: Sample) -> Grade:
        votes: Counter[str] = Counter()
        for request in self.judged.requests(sample):
            self.found.append((request, votes[request.key]))
            votes[request.key] += 1
        return skipped("asked", "requests are noted")


def requests_of(suite: Suite, stage: Stage, say: Say = lambda _: None) -> Iterator[tuple[Request, int]]:
    """Yield every request of a judge about the samples of a suite, and which vote it is; equal ones once."""
    noting, seen = _Requests(stage.component), set[Place]()
    of = msgspec.structs.replace(stage, component=noting)
    changes: dict[str, Any] = {"graders": (of,), "metrics": (), "exporters": (), "table": False, "main": stage.key}
    plan = msgspec.structs.replace(suite.bare(), **changes)
    for _ in stream_grades(plan, lambda bad: say(f"warning: {bad.source}: {bad.reason}")):
        for request, vote in noting.found:
            if (place := (request.key, vote)) not in seen:
                seen.add(place)
                yield request, vote
        noting.found.clear()


@named_as_given()
def judge(
    suite: Any,
    *,
    rubric: str | Path | None = None,
    judgements: str | Path | None = None,
    ask: Ask,
    offline: bool = False,
    estimate: bool = False,
    again: Sequence[str] = (),
    overrides: Sequence[str] = (),
    allow_code: bool = False,
    say: Say = lambda _: None,
    **reading: Any,
) -> None:
    """Ask a model for the judgements that are not on record; what ``gradestack judge`` does.

    ``suite`` is a suite, or with ``rubric`` and ``judgements`` a list of result files, read as ``reading`` says.
    ``ask`` sends requests: the one thing with a network, which what a rubric names is no reason to use. ``say`` is
    called with lines about what is done; all else is as the command's options say.

    Raises:
        ConfigError: Suite, rubric or options that cannot be honoured, or a server that refuses them.
        DataError: Judgements are missing at the end.
    """
    if unknown := sorted(set(again) - set(REPLY_CODES)):
        raise ConfigError(f"--again {unknown[0]}: no state of a reply; there are: {', '.join(REPLY_CODES)}")
    options = RunOptions(registry=installed(None), overrides=tuple(overrides), allow_code=allow_code)
    if rubric is None:
        resolved = read_suite(suite, options)
    else:
        resolved = files_suite(suite, options, judged={"rubric": rubric, "judgements": judgements}, **reading)
    stages = [stage for stage in resolved.graders if isinstance(stage.component, Judged) and stage.component.judgements]
    if not stages:
        raise ConfigError("no grader of this suite asks a model; one that does has `judgements: FILE`")
    judging = [_Judging(suite=resolved, stage=stage, again=again, say=say) for stage in stages]
    if short := [why for each in judging for why in each.run(ask, offline=offline, estimate=estimate)]:
        raise DataError("; ".join(short))


class _Judging(msgspec.Struct, frozen=True, kw_only=True):
    """One judge of a suite at work."""

    suite: Suite
    stage: Stage
    again: Sequence[str]
    say: Say

    def missing(self, known: Mapping[Place, bytes], say: Say = lambda _: None) -> Iterator[tuple[Request, int]]:
        """Yield the requests whose reply is not on record, or has one of the states to ask again for."""
        problem, again = self.stage.component.problem, self.again
        for request, vote in requests_of(self.suite, self.stage, say):
            line = known.get((request.key, vote))
            if line is None or (again and problem(request, msgspec.json.decode(line, type=Reply)) in again):
                yield request, vote

    def run(self, ask: Ask, *, offline: bool, estimate: bool) -> list[str]:
        """Ask for what is missing; return why something still is."""
        judged: Judged = self.stage.component
        path, price, key = judged.judgements, judged.endpoint.price, self.stage.key
        part = path.with_name(f"{path.name}.part")
        known = recorded(path) | recorded(part, part=True)
        most = [(1, *most_tokens(request)) for request, _ in self.missing(known, self.say)]
        number, tokens_in, tokens_out = map(sum, zip((0, 0, 0), *most, strict=True))
        dollars = f", cost at most {cost(price, tokens_in, tokens_out):.4f} USD" if price else ""
        out = f"{tokens_out:,} out{dollars}" if tokens_out else "out as many as the model likes: no max_tokens"
        worst = f"; at most {tokens_in:,} tokens in, {out}" if number else ""
        self.say(f"{key}: {number:,} to ask, {len(known):,} on record{worst}")
        if estimate:
            return []
        if offline and number:
            return [f"{counted(number, 'judgement')} of {key} not on record, and --offline asks nothing"]
        if not number and not part.exists():
            return []
        why, done = "", set[Place]()
        with recording(path) as (known, add):  # joins what a killed process left

            def record(request: Request, vote: int, reply: Reply, mode: str, rejected: Any) -> None:
                line = Line(**msgspec.structs.asdict(reply), key=request.key, vote=vote, mode=mode, rejected=rejected)
                add(line)
                done.add(line.place)

            if number:
                why = ask(judged, self.missing(known), record)
        rest = number - len(done)
        return [f"{rest:,} of {number:,} judgements of {key} {why}; the same command goes on"] if rest else []
