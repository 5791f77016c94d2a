"""Conformance kit for plugin authors: plain functions for any test runner, each raising AssertionError that says why.

    from gradestack import testing

    def test_my_grader_keeps_the_contract():
        testing.check_grader(MyGrader())

Run them over every component you publish; gradestack runs them over its own.
"""

from __future__ import annotations

import copy
import importlib
import json
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs

from gradestack.api import Aggregator, Component, Grader, Input, Inputs, Reader, Reporter
from gradestack.errors import DataError
from gradestack.jsontext import dumps
from gradestack.model import (
    BadRecord,
    Expectation,
    Fault,
    Grade,
    Item,
    Key,
    Message,
    Outcome,
    Reason,
    Sample,
    Source,
    Status,
    ToolCall,
    ToolSpec,
    check_grade,
)
from gradestack.registry import BASES, discover
from gradestack.report import Report
from gradestack.rowbytes import grade_to_json
from gradestack.rows import grade_from_json
from gradestack.schema import class_schema
from gradestack.structure import Problems, structure

__all__ = [
    "check_aggregator",
    "check_component",
    "check_grader",
    "check_hash_seeds",
    "check_reader",
    "check_reporter",
    "masked",
    "nasty_samples",
    "random_grades",
]

ALWAYS_READABLE = frozenset({"id", "status", "error"})
_DEEP = 60


def _deep() -> Any:
    value: Any = 1
    for _ in range(_DEEP):
        value = {"a": [value]}
    return value


def nasty_samples() -> list[Sample]:
    """Return valid samples with everything that breaks careless graders."""
    odd = {
        "text": "<script>\u202e\ud800\x00",
        "big": 10**40,
        "nan": float("nan"),
        "null": None,
        "deep": _deep(),
        "": [],
    }
    call = ToolCall(name="search", arguments={"q": "x", "n": 1})
    tool = ToolSpec(name="search", parameters={"type": "object", "properties": {"q": {"type": "string"}}})
    broken_tool = ToolSpec(name="search", parameters={"type": 3, "properties": ["q"], "required": "q"})
    both = Expectation(calls=(call,), label="tool_call", text="x")
    bare = Sample(id="bare")
    return [
        bare,
        Sample(id="", expected=Expectation(calls=()), calls=()),
        Sample(id="none-called", expected=both, calls=(), tools=(), label="direct"),
        Sample(id="right", expected=both, calls=(call,), tools=(tool,), label="tool_call", text="x"),
        Sample(id="twice", expected=Expectation(calls=(call, call)), calls=(call, call), tools=(tool, tool)),
        Sample(id="unparsable", expected=both, calls=(ToolCall(name="", arguments=None, raw_arguments="{"),)),
        Sample(id="odd", expected=Expectation(calls=(ToolCall(name="x", arguments=odd),)), calls=(call,), recorded=odd),
        Sample(id="odd calls", expected=both, calls=(ToolCall(name="search", arguments=odd),), tools=(broken_tool,)),
        Sample(id="labels", expected=Expectation(label="no such label"), label="\ud800", text="\x00" * 10),
        Sample(id="recorded", recorded={"reward": "1", "score": [], "reward_info": None}, run="a", model=""),
        Sample(
            id="talk",
            run=10**20,
            input=("one", ""),
            turns=((), (Message(role="", content=[{"type": "image"}, None, "t"], tool_calls=(call,)),)),
            facets={"x": None},
            usage="?",
            source=Source(file="f", ordinal=3, line=4),
            expected=Expectation(text=("a",), plan={"workflow_1": None}),
            plan=["?"],
        ),
        Sample(id="failed", status=Status.FAILED, error=Fault(category="target", code="x"), expected=both),
        Sample(id="missing", status=Status.MISSING, expected=both),
        attrs.evolve(bare, id="stranger", native=object()),
    ]


def masked(sample: Sample, allowed: Iterable[str]) -> Sample:
    """Return a copy of a sample whose other fields raise AssertionError when read."""
    names = {field.name for field in attrs.fields(Sample)}
    readable = ALWAYS_READABLE | set(allowed)

    class Masked(Sample):
        def __getattribute__(self, name: str) -> Any:
            if name in names and name not in readable:
                msg = f"the grader read Sample.{name}, which its `needs` does not declare"
                raise AssertionError(msg)
            return super().__getattribute__(name)

    copied = object.__new__(Masked)
    for name in names:
        object.__setattr__(copied, name, getattr(sample, name))
    return copied


def check_component(component: Component) -> None:
    """Check that a component can be imported, is of its kind, is documented, and that its options are plain.

    A class must be buildable from ``{}``, or refuse with a named problem.
    """
    assert component.summary, f"{component.name}: summary is empty"
    assert "\n" not in component.summary, f"{component.name}: summary has several lines"
    module, _, attribute = component.target.partition(":")
    target = getattr(importlib.import_module(module), attribute)
    assert target.__doc__, f"{component.target}: a docstring is missing"
    base = BASES.get(component.kind)
    if base is None:
        assert isinstance(target(), dict), f"{component.target}: a stack returns a mapping"
        return
    assert issubclass(target, base), f"{component.target}: not derived from {base.__name__}"
    json.dumps(class_schema(target))
    try:
        made = structure({}, target)
    except Problems as problems:
        assert problems.found, f"{component.target}: refuses no options without saying why"
    else:
        assert pickle.loads(pickle.dumps(made)) == made, f"{component.target}: does not survive pickling"  # noqa: S301


def check_grader(grader: Grader, samples: Iterable[Sample] = ()) -> None:
    """Check a grader over ``samples`` and the nasty ones: no exception, right scores, deterministic, pure, frugal.

    Its short form has to give the same grades but for reasons and rationale.

    Args:
        grader: The grader, with its options.
        samples: Samples typical of it, in addition to :func:`nasty_samples`.
    """
    known = {field.name for field in attrs.fields(Sample)}
    assert grader.needs <= known, f"needs names no Sample field: {sorted(grader.needs - known)}"
    assert grader.requires <= grader.needs, "requires must be part of needs"
    pickle.dumps(grader)
    for sample in [*samples, *nasty_samples()]:
        if sample.status not in grader.handles:
            continue
        before = _fingerprint(sample)
        first, second = grader.grade(sample), grader.grade(masked(sample, grader.needs))
        assert isinstance(first, Grade), f"{sample.id!r}: returned {type(first).__name__}"
        assert (problem := check_grade(first)) is None, f"{sample.id!r}: {problem}"
        answered = sample.status is not Status.MISSING
        assert first.outcome is not Outcome.MISSING or not answered, f"{sample.id!r}: it is not missing"
        assert _text(first) == _text(second), f"{sample.id!r}: two grades of one sample differ"
        brief = _text(unexplained(grader.brief(masked(sample, grader.needs))))
        assert brief == _text(unexplained(first)), f"{sample.id!r}: brief and grade differ in more than reasons"
        assert _text(grader.grade(sample)) == _text(first), f"{sample.id!r}: the grade differs after a brief one"
        assert _fingerprint(sample) == before, f"{sample.id!r}: the grader changed its sample"
        back = grade_from_json(json.loads(dumps(grade_to_json(first))))
        assert _text(back) == _text(first), f"{sample.id!r}: the grade does not survive results.jsonl"


def unexplained(grade: Grade) -> Grade:
    """Return a grade without what :meth:`gradestack.api.Grader.brief` may leave out."""
    items = tuple(attrs.evolve(item, reasons=()) for item in grade.items)
    return attrs.evolve(grade, reasons=(), rationale="", items=items)


def _fingerprint(sample: Sample) -> str:
    return repr({f.name: getattr(sample, f.name) for f in attrs.fields(Sample) if f.name != "native"})


def _text(grade: Grade) -> str:
    return dumps(grade_to_json(grade))


def check_hash_seeds(target: str, options: str = "") -> None:
    """Check that grades do not depend on the order of sets: two processes with different hash seeds must agree.

    Args:
        target: ``package.module:Class`` of a grader.
        options: Python keyword arguments for it, as source text.
    """
    module, _, name = target.partition(":")
    code = (
        f"from {module} import {name} as G\nfrom gradestack.testing import nasty_samples, _text\n"
        f"g = G({options})\nprint([_text(g.grade(s)) for s in nasty_samples() if s.status in g.handles])"
    )
    said = {
        subprocess.run(  # noqa: S603 - our own interpreter on our own text
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1, f"{target}: grades depend on PYTHONHASHSEED"


def random_grades(seed: int = 0, count: int = 60) -> list[tuple[Key, Grade]]:
    """Return seeded keys and grades of every outcome, with what families put into them."""
    rng = random.Random(seed)  # noqa: S311 - test data
    labels = ["direct", "tool_call", "request_for_info", "cannot_answer", "invalid"]
    found = []
    for ordinal in range(count):
        outcome = rng.choice([Outcome.GRADED] * 5 + [Outcome.SKIPPED, Outcome.FAILED, Outcome.MISSING])
        score = rng.choice([0.0, 1.0, rng.random(), 1e-17, 0.1]) if outcome is Outcome.GRADED else None
        key = Key(
            id=f"t{rng.randrange(8)}",
            model=rng.choice([None, "m1", "m2"]),
            run=rng.choice([None, 0, 1, 2]),
            ordinal=ordinal,
            facets={"domain": rng.choice("ab")},
        )
        item = Item(id="0", score=score or 0.0, parts={"argument_similarity": rng.random()}, counts={"tp": 1})
        grade = Grade(
            outcome=outcome,
            score=score,
            passed=rng.choice([None, score == 1.0]) if score is not None else None,
            counts={"expected_calls": rng.randrange(3), "called": rng.randrange(3)},
            parts={"reward": rng.choice([0.0, 1.0]), "tool_selection": rng.random()} if score is not None else {},
            label=rng.choice(labels),
            gold=rng.choice(labels[:4]),
            items=(item,) if score is not None else (),
            fault=Fault(category="data", code="x") if outcome is Outcome.FAILED else None,
            reasons=(Reason(code="missing_call", subject="f"),) if score == 0.0 else (),
        )
        found.append((key, grade))
    return found


def fold(aggregator: Aggregator[Any], graded: Iterable[tuple[Key, Grade]]) -> Any:
    """Return the state after all of ``graded``."""
    state = aggregator.start()
    for key, grade in graded:
        state = aggregator.add(state, key, grade)
    return state


def check_aggregator(
    aggregator: Aggregator[Any], graded: Sequence[tuple[Key, Grade]] | None = None, *, seed: int = 0
) -> None:
    """Check the laws of merging with ``==`` after finish: identity, associativity, any split, JSON round trips.

    Blocks of grades have to come to what grades one by one come to, and reasons to nothing if it does not read them.

    Args:
        aggregator: The aggregator, with its options.
        graded: Keys and grades typical of it; default :func:`random_grades`.
        seed: Seed of the random splits.
    """
    graded = list(graded) if graded is not None else random_grades(seed)
    whole = fold(aggregator, graded)
    expected = _done(aggregator, whole)
    assert _round_trip(whole) == whole, "the state is not made of JSON values"
    assert _done(aggregator, whole) == expected, "finish changed the state"
    on_left = _done(aggregator, aggregator.merge(aggregator.start(), _round_trip(whole)))
    on_right = _done(aggregator, aggregator.merge(_round_trip(whole), aggregator.start()))
    assert on_left == expected, "start() on the left"
    assert on_right == expected, "start() on the right"
    json.loads(_done(aggregator, aggregator.start()))
    _check_blocks(aggregator, graded, expected, seed)
    rng = random.Random(seed)  # noqa: S311 - test data
    for _ in range(12):
        cuts = sorted(rng.randrange(len(graded) + 1) for _ in range(rng.randrange(1, 5)))
        pieces = [graded[a:b] for a, b in zip([0, *cuts], [*cuts, len(graded)], strict=True)]
        states = [_round_trip(fold(aggregator, piece)) for piece in pieces]
        left = states[0]
        for state in states[1:]:
            before = copy.deepcopy(state)
            left = aggregator.merge(_round_trip(left), state)
            assert state == before, "merge changed its right side"
        assert _done(aggregator, left) == expected, f"a split at {cuts} gives other metrics"
        right = states[-1]
        for state in reversed(states[:-1]):
            right = aggregator.merge(_round_trip(state), _round_trip(right))
        assert _done(aggregator, right) == expected, f"merging is not associative (split at {cuts})"
    if aggregator.memory == "constant":
        sizes = [len(json.dumps(fold(aggregator, random_grades(seed, n)))) for n in (400, 4000)]
        assert sizes[1] < 2 * sizes[0] + 200, f"memory is declared constant, but the state grew: {sizes}"


def _check_blocks(aggregator: Aggregator[Any], graded: Sequence[tuple[Key, Grade]], expected: str, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - test data
    for size in (1, 2, 7, len(graded) + 1):
        state, rest = aggregator.start(), list(graded)
        while rest:
            cut = rng.randrange(1, size + 1)
            state = aggregator.add_many(state, [key for key, _ in rest[:cut]], [grade for _, grade in rest[:cut]])
            rest = rest[cut:]
        assert _round_trip(state) == state, "the state after blocks is not made of JSON values"
        assert _done(aggregator, state) == expected, f"blocks of up to {size} grades give other metrics"
    if not aggregator.reads_reasons:
        bare = fold(aggregator, [(key, unexplained(grade)) for key, grade in graded])
        assert _done(aggregator, bare) == expected, "it reads reasons, but reads_reasons is False"


def _round_trip(state: Any) -> Any:
    return json.loads(json.dumps(state))


def _done(aggregator: Aggregator[Any], state: Any) -> str:
    return dumps(dict(aggregator.finish(state)))


def _read(reader: Reader, path: Path) -> list[Sample | BadRecord]:
    inputs = Inputs(data=(Input(path=path, name=path.stem, shown=path.name),))
    index = reader.index(inputs)
    shards = list(reader.plan(inputs, index))
    assert [shard.ordinal for shard in shards] == list(range(len(shards))), "shards must be numbered from 0"
    pickle.dumps((reader, index, shards))
    positions = [shard.position for shard in shards]
    assert positions == sorted(positions), "positions must grow from shard to shard"
    found: list[Sample | BadRecord] = []
    for shard in shards:
        part = list(reader.read(shard, index))
        later = positions[shard.ordinal + 1 :]
        assert not later or shard.position + len(part) <= later[0], "shard positions overlap"
        found += part
    return found


def check_reader(reader: Reader, path: Path, *, scratch: Path) -> None:
    """Check a reader on a sound file: recognised, same samples twice, lazy, and sound on the file cut off or garbled.

    Args:
        reader: The reader, with its options.
        path: A sound file of its format with at least two records.
        scratch: An empty directory for broken copies.
    """
    whole = path.read_bytes()
    assert type(reader).sniff(path, whole[: 64 * 1024]) > 0, "its own file is not recognised"
    assert type(reader).sniff(path, b"\x00\xff garbage") == 0, "garbage is recognised"
    first, second = _read(reader, path), _read(reader, path)
    assert first, "no sample was read"
    assert first == second, "two readings differ"
    known = {field.name for field in attrs.fields(Sample)}
    assert reader.provides <= known, f"provides names no Sample field: {sorted(reader.provides - known)}"
    for number, broken in enumerate((whole[: len(whole) // 2], whole[:-1], b"", b"null", whole + b"\n{]")):
        copy_path = scratch / f"broken-{number}{path.suffix}"
        copy_path.write_bytes(broken)
        try:
            _read(reader, copy_path)
        except DataError as error:
            assert str(copy_path) in str(error), f"the message does not name the file: {error}"


def check_reporter(reporter: Reporter, report: Report, scratch: Path) -> None:
    """Check that the same report gives the same bytes, written where asked, and nothing else.

    Args:
        reporter: The reporter, with its options.
        report: Report of a finished run.
        scratch: An empty directory.
    """
    written = []
    for name in ("one", "two"):
        out = scratch / name
        out.mkdir()
        pages = sorted(reporter.write(report, out))
        assert pages, "no page was written"
        assert pages == sorted(path for path in out.rglob("*") if path.is_file()), "it wrote files it does not return"
        written.append({page.relative_to(out): page.read_bytes() for page in pages})
    assert written[0] == written[1], "the same report gave different bytes"


def installed_components() -> list[Component]:
    """Return every component of every sound plugin installed, for parametrised tests."""
    return [component for component, _ in discover().components()]
