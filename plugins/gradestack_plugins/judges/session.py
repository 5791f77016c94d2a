"""One call of `gradestack judge`: the judgements that are missing, and asking for them."""

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
from gradestack_plugins.judges.contract import Endpoint, Judged, Request
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

Echo = Callable[[str], None]
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
        self.judged, self.noted = judged, list[tuple[Request, Place]]()
        for name in ("graded_statuses", "needs", "compares"):
            setattr(self, name, getattr(judged, name))

    @property
    @override
    def takes_text(self) -> bool:
        return self.judged.takes_text

    @override
    def grade(self, sample: Sample) -> Grade:
        requests = self.judged.requests(sample)
        keys = [request.key for request in requests]
        places = numbered(keys)
        self.noted += zip(requests, places, strict=True)
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
    echo: Echo = lambda _: None,
    **reading: Any,
) -> None:
    """Ask a model for the judgements that are missing, as ``gradestack judge`` does.

    ``suite`` is a suite, or with ``rubric`` and ``judgements`` a list of result files, read as
    ``reading`` says. ``ask`` sends requests: the one thing with a network, which what a rubric
    names is no reason to use. ``echo`` is called with lines about what is done; all else is as the
    command's options say.

    Raises:
        ConfigError: Suite, rubric or options that are wrong, or a server that refuses
            them.
        DataError: Judgements are missing at the end, or replies have no verdict.
    """
    if unknown := sorted(set(again) - set(REPLY_CODES)):
        known = ", ".join(REPLY_CODES)
        raise ConfigError(f"--again {unknown[0]}: no state of a reply; there are: {known}")
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
    session: Any = {
        "offline": offline,
        "estimate": estimate,
        "repeated_states": again,
        "echo": echo,
    }
    problems = [_ask_missing(resolved, key, judge, ask, **session) for key, judge in judges.items()]
    if any(problems):
        raise DataError("; ".join(filter(None, problems)))


def _ask_missing(
    suite: Any,
    key: str,
    judged: Judged,
    ask: Ask,
    *,
    offline: bool,
    estimate: bool,
    repeated_states: Sequence[str],
    echo: Echo,
) -> str:
    """Ask for the replies that one judge lacks.

    Return why a verdict is still missing, "" where all are on record.
    """
    path = judged.judgements
    part = part_of(path)
    known = recorded(path) | recorded(part, part=True)
    missing = _Missing(suite, key, judged, repeated_states)
    requests = [request for request, _ in missing.requests(known, echo)]
    number = len(requests)
    total = len(missing.places)
    worst = ""
    if number:
        worst = f"; at most {_most_tokens(requests, judged.endpoint)}"
    echo(f"{key}: {number:,} to ask, {len(known):,} on record{worst}")
    if estimate:
        return ""
    if offline and number:
        if number == 1:
            many = "1 judgement"
        else:
            many = f"{number:,} judgements"
        unasked = f"{many} of {key} have no stored verdict, and --offline does not ask"
        return "; ".join(filter(None, [unasked, _without_verdict(key, missing.codes, total)]))
    if not (number or part.exists()):
        return _without_verdict(key, missing.codes, total)
    why = ""
    done = set[Place]()
    with recording(path) as (lines, add):  # joins the lines that a killed process left

        def record(request: Request, vote: int, reply: Reply, mode: str, rejected: Any) -> None:
            fields = msgspec.structs.asdict(reply)
            line = Line(**fields, key=request.key, vote=vote, mode=mode, rejected=rejected or UNSET)
            add(line)
            done.add(line.place)
            problem = judged.problem(request, reply)
            missing.codes[line.place] = problem or ""

        if number:
            why = ask(judged, missing.requests(lines), record)
    rest = number - len(done)
    unasked = f"{rest:,} of {number:,} judgements of {key} {why}; the same command goes on"
    without_verdict = _without_verdict(key, missing.codes, total)
    problems = [unasked if rest else "", without_verdict]
    return "; ".join(filter(None, problems))


class _Missing:
    """The requests of a judge whose reply is not on record, or has a state to ask again for."""

    def __init__(self, suite: Any, key: str, judged: Judged, states: Sequence[str]) -> None:
        self._suite = suite
        self._key = key
        self._judged = judged
        self._repeated_states = states
        self._noted = _Requests(judged)
        self.places = set[Place]()
        """Of all requests, once they were looked through."""
        self.codes = dict[Place, str]()
        """Of replies on record, "" for a sound one."""

    def requests(
        self, known: Mapping[Place, bytes], echo: Echo = lambda _: None
    ) -> Iterator[tuple[Request, int]]:
        """Yield each request once, with its vote."""
        self.places.clear()
        bad = lambda record: echo(f"warning: {record.source}: {record.reason}")  # noqa: E731
        graders = {self._key: self._noted}
        for _ in stream_suite(self._suite, graders, bad=bad):
            for request, key_and_vote in self._noted.noted:
                if key_and_vote not in self.places:
                    self.places.add(key_and_vote)
                    if self._is_missing(request, key_and_vote, known):
                        yield request, key_and_vote[1]
            self._noted.noted.clear()

    def _is_missing(self, request: Request, place: Place, known: Mapping[Place, bytes]) -> bool:
        if place not in known:
            return True
        reply = msgspec.json.decode(known[place], type=Reply)
        problem = self._judged.problem(request, reply)
        self.codes[place] = problem or ""
        return self.codes[place] in self._repeated_states


def _most_tokens(requests: Sequence[Request], endpoint: Endpoint) -> str:
    """Return the most tokens that requests take, and their cost."""
    tokens = [request.most_tokens for request in requests]
    tokens_in = sum(most for most, _ in tokens)
    tokens_out = sum(most for _, most in tokens)
    out = "out as many as the model likes: no max_tokens"
    if tokens_out:
        cost = endpoint.cost(tokens_in, tokens_out)
        dollars = ""
        if endpoint.price:
            dollars = f", cost at most {cost:.4f} USD"
        out = f"{tokens_out:,} out{dollars}"
    return f"{tokens_in:,} tokens in, {out}"


def _without_verdict(key: str, codes: Mapping[Place, str], total: int) -> str:
    """Return the number of replies on record without a verdict, and the option that asks again."""
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
