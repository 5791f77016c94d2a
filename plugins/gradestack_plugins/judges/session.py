"""One call of `gradestack judge`: which judgements are missing, and asking for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET
from typing_extensions import override

from gradestack import (
    ConfigError,
    DataError,
    Grade,
    Grader,
    Sample,
    load_files_suite,
    load_suite,
    skipped,
    stream_suite,
)
from gradestack_plugins.judges.contract import Judged, Request
from gradestack_plugins.judges.journal import (
    Line,
    Place,
    Reply,
    numbered,
    part_of,
    recorded,
    recording,
)

__all__ = ["REPLY_CODES", "Recorder", "judge"]

Say = Callable[[str], None]
Recorder = Callable[[Request, int, Reply, str, Any], None]
"""Puts on record: request, vote, reply, the form it was asked for in, replies before it that were
asked again.
"""
Ask = Callable[[Judged, Iterator[tuple[Request, int]], Recorder], str]
"""Asks for a judge's requests, each with its vote.

Returns why some have no reply, "" where all have.
"""
NO_VERDICT = ("refused", "filtered", "truncated", "tool_calls", "malformed", "wrong_check")
"""States of replies in which there is no verdict."""
REPLY_CODES = (*NO_VERDICT, "unclear")


class _Requests(Grader):
    """In a judge's place: notes what it would ask about each sample that it would grade."""

    def __init__(self, judged: Judged) -> None:
        self.judged, self.found = judged, list[tuple[Request, Place]]()
        for name in ("graded_statuses", "needs", "compares"):
            setattr(self, name, getattr(judged, name))

    @property
    @override
    def takes_text(self) -> bool:
        return self.judged.takes_text

    @override
    def grade(self, sample: Sample) -> Grade:
        requests = self.judged.requests(sample)
        self.found += zip(requests, numbered([each.key for each in requests]), strict=True)
        return skipped("asked", "requests are noted")


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
    allow_outside: bool = False,
    say: Say = lambda _: None,
    **reading: Any,
) -> None:
    """Ask a model for the judgements that are missing, as ``gradestack judge`` does.

    ``suite`` is a suite, or with ``rubric`` and ``judgements`` a list of result files, read as
    ``reading`` says. ``ask`` sends requests: the one thing with a network, which what a rubric
    names is no reason to use. ``say`` is called with lines about what is done; all else is as the
    command's options say.

    Raises:
        ConfigError: Suite, rubric or options that are wrong, or a server that refuses
            them.
        DataError: Judgements are missing at the end, or replies have no verdict.
    """
    if unknown := sorted(set(again) - set(REPLY_CODES)):
        raise ConfigError(
            f"--again {unknown[0]}: no state of a reply; there are: {', '.join(REPLY_CODES)}"
        )
    options: Any = {
        "overrides": tuple(overrides),
        "allow_code": allow_code,
        "allow_outside": allow_outside,
    }
    if rubric is None:
        resolved = load_suite(suite, **options)
    else:
        judged = {"rubric": rubric, "judgements": judgements}
        resolved = load_files_suite(suite, judged=judged, **reading, **options)
    judges = {
        stage.key: stage.component
        for stage in resolved.graders
        if isinstance(stage.component, Judged) and stage.component.judgements
    }
    if not judges:
        raise ConfigError(
            "no grader of this suite asks a model; one that does has `judgements: FILE`"
        )
    session: Any = {"offline": offline, "estimate": estimate, "again": again, "say": say}
    short = [
        why
        for key, each in judges.items()
        if (why := _ask_missing(resolved, key, each, ask, **session))
    ]
    if short:
        raise DataError("; ".join(short))


def _ask_missing(  # noqa: C901
    suite: Any,
    key: str,
    judged: Judged,
    ask: Ask,
    *,
    offline: bool,
    estimate: bool,
    again: Sequence[str],
    say: Say,
) -> str:
    """Ask for what one judge lacks.

    Return why a verdict is still missing, "" where all are on record.
    """
    noting = _Requests(judged)
    places = set[Place]()
    codes = dict[Place, str]()  # of replies on record, "" for a sound one

    def missing(
        known: Mapping[Place, bytes], say: Say = lambda _: None
    ) -> Iterator[tuple[Request, int]]:
        """Yield, once each, requests whose reply is not on record, or has one of the states to ask
        again for.
        """
        places.clear()
        bad = lambda record: say(f"warning: {record.source}: {record.reason}")  # noqa: E731
        for _ in stream_suite(suite, {key: noting}, bad=bad):
            for request, place in noting.found:
                if place in places:
                    continue
                places.add(place)
                if place in known:
                    reply = msgspec.json.decode(known[place], type=Reply)
                    codes[place] = judged.problem(request, reply) or ""
                if place not in known or codes[place] in again:
                    yield request, place[1]
            noting.found.clear()

    path, endpoint = judged.judgements, judged.endpoint
    part = part_of(path)
    known = recorded(path) | recorded(part, part=True)
    most = [(1, *request.most_tokens) for request, _ in missing(known, say)]
    total = len(places)
    number, tokens_in, tokens_out = map(sum, zip((0, 0, 0), *most, strict=True))
    dollars = (
        f", cost at most {endpoint.cost(tokens_in, tokens_out):.4f} USD" if endpoint.price else ""
    )
    out = (
        f"{tokens_out:,} out{dollars}"
        if tokens_out
        else "out as many as the model likes: no max_tokens"
    )
    worst = f"; at most {tokens_in:,} tokens in, {out}" if number else ""
    say(f"{key}: {number:,} to ask, {len(known):,} on record{worst}")
    if estimate:
        return ""
    if offline and number:
        many = "1 judgement" if number == 1 else f"{number:,} judgements"
        unasked = f"{many} of {key} have no stored verdict, and --offline does not ask"
        return "; ".join(filter(None, [unasked, _without_verdict(key, codes, total)]))
    if not (number or part.exists()):
        return _without_verdict(key, codes, total)
    why, done = "", set[Place]()
    with recording(path) as (known, add):  # joins what a killed process left

        def record(request: Request, vote: int, reply: Reply, mode: str, rejected: Any) -> None:
            of = msgspec.structs.asdict(reply)
            line = Line(**of, key=request.key, vote=vote, mode=mode, rejected=rejected or UNSET)
            add(line)
            done.add(line.place)
            codes[line.place] = judged.problem(request, reply) or ""

        if number:
            why = ask(judged, missing(known), record)
    rest = number - len(done)
    unasked = f"{rest:,} of {number:,} judgements of {key} {why}; the same command goes on"
    short = [unasked] if rest else []
    return "; ".join(filter(None, [*short, _without_verdict(key, codes, total)]))


def _without_verdict(key: str, codes: Mapping[Place, str], total: int) -> str:
    """Return how many replies on record have no verdict, and how to ask again; "" for none."""
    counts = Counter(code for code in codes.values() if code in NO_VERDICT)
    if not counts:
        return ""
    kinds = ", ".join(f"{number:,} {code}" for code, number in sorted(counts.items()))
    states = ",".join(sorted(counts))
    number = sum(counts.values())
    return (
        f"{number:,} of {total:,} replies of {key} have no verdict ({kinds}); "
        f"to ask again: --again {states}"
    )
