"""The checks: plain functions for any test runner, each raising AssertionError that says why."""

from __future__ import annotations

import copy
import importlib
import json
import os
import pickle
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from typing import Any, ClassVar, get_type_hints

from gradestack.api import Aggregator, Extractor, Grader, Input, Inputs, Reader, misdeclared
from gradestack.errors import DataError, GradestackError, message_of
from gradestack.estimates import Grades
from gradestack.grading.graders import as_grade
from gradestack.grading.metrics import differing, figures_of, grades_of, wanted
from gradestack.grading.plan import Metric, Stage
from gradestack.grading.reading import wrong_types
from gradestack.hooks import Component
from gradestack.jsonio.values import dumps
from gradestack.judging.contract import Judged
from gradestack.judging.journal import Reply
from gradestack.model import BadRecord, Grade, Key, Outcome, Sample, Status, check_grade
from gradestack.registry import flaw
from gradestack.report import Report, Reporter
from gradestack.rows.read import grade_from_json
from gradestack.rows.write import grade_to_json
from gradestack.suites.code import load_file
from gradestack.suites.schema import class_schema
from gradestack.suites.strict import Problems, structure
from gradestack.table import Columns, Table
from gradestack.testing.samples import masked, nasty_samples, random_grades


def check_component(component: Component) -> None:
    """Check that a component can be imported, is of its kind, is documented, and that its options are plain.

    A class must be buildable from ``{}``, or refuse with a named problem.
    """
    assert component.summary, f"{component.name}: summary is empty"
    assert "\n" not in component.summary, f"{component.name}: summary has several lines"
    module, _, attribute = component.target.partition(":")
    target = getattr(importlib.import_module(module), attribute)
    shown = re.sub(r"gradestack_user_code_(\w+)_\w+:", r"\1.py:", component.target)
    assert target.__doc__, f"{shown}: a docstring is missing"
    problem = flaw(target, component.kind)
    assert problem is None, f"{shown} {problem}"
    if component.kind in ("stack", "command"):
        sound = component.kind == "command" or isinstance(target(), dict)
        assert sound, f"{shown}: a stack returns a mapping"
        return
    json.dumps(options := class_schema(target)["properties"])
    own, theirs = get_type_hints(target), get_type_hints(target.__mro__[1])
    taken = [name for name in options if name in theirs and theirs[name] not in (own[name], ClassVar[own[name]])]
    assert not taken, f"{shown}: an option has the name of the contract's {taken[0]!r}; name it otherwise"
    frozen = target.__setattr__ is not object.__setattr__
    assert frozen, f"{shown}: its options can be changed; write @attrs.frozen(kw_only=True)"
    try:
        made = structure({}, target)
    except Problems as problems:
        assert problems.found, f"{shown}: refuses no options without saying why"
    else:
        assert pickle.loads(pickle.dumps(made)) == made, f"{shown}: does not survive pickling"  # noqa: S301


def check_grader(grader: Grader, samples: Iterable[Sample] = ()) -> None:
    """Check a grader over ``samples`` and the nasty ones: no exception, right scores, deterministic, pure, frugal.

    What ``explain`` gives is the same grade, with items and reasons.

    Args:
        grader: The grader, with its options.
        samples: Samples typical of it, in addition to ``nasty_samples``.
    """
    if isinstance(grader, Judged):
        _check_judged(grader, samples := [*samples])
    assert grader.requires <= grader.needs, "requires must be part of needs"
    pickle.dumps(grader)
    for sample in [*samples, *nasty_samples()]:
        if sample.status not in grader.handles:
            continue
        with _about(sample):
            before = _fingerprint(sample)
            brief, masks = as_grade(grader.grade(sample)), masked(sample, grader.needs)
            assert (problem := check_grade(brief)) is None, problem
            stray = (brief.numbers or {}).keys() ^ grader.sums if brief.numbers is not None else ()
            assert not stray, f"its numbers and the grader's sums differ: {', '.join(sorted(stray))}"
            first, second = grader.explain(sample, brief), explained(grader, masks)
            assert (problem := check_grade(first)) is None, f"explain {problem}"
            for name in ("outcome", "score", "passed", "label", "gold", "counts", "parts"):
                assert getattr(first, name) == getattr(brief, name), f"explain gives another {name} than grade"
            answered = sample.status is not Status.MISSING
            assert first.outcome is not Outcome.MISSING or not answered, "it is not missing"
            text = _text(first)
            assert text == _text(second), "two grades of one sample differ"
            assert _fingerprint(sample) == before, "the grader changed its sample; copy what you change"
            low, high = grader.bounds
            fits = first.score is None or low <= first.score <= high
            assert fits, f"the score {first.score} is not within bounds, {low:g} to {high:g}"
            assert _text(grade_from_json(json.loads(text))) == text, "the grade does not survive results.jsonl"


@contextmanager
def _about(sample: Sample) -> Iterator[None]:
    """Name the sample in what is wrong with what was made of it."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{sample.id!r}: {what_is_wrong(error)}") from error


def what_is_wrong(error: BaseException) -> str:
    """Return what an assertion of ours says; else what was raised, and the innermost line of the package."""
    frames = [(Path(step.filename), step.lineno) for step in extract_tb(error.__traceback__)]
    theirs = [(file, line) for file, line in frames if not file.is_relative_to(_OURS)]
    if isinstance(error, AssertionError) and frames[-1] not in theirs:
        return str(error)
    where = [f" ({file.name}:{line})" for file, line in theirs if file.parent == theirs[0][0].parent][-1:]
    said = error.line if isinstance(error, GradestackError) else f"{type(error).__name__}: {message_of(error)}"
    return "".join([f"raised {said}", *where])


_OURS = Path(__file__).parents[1]
_ODD = (None, "", "null", "[]", '{"check": 1}', "NaN", "\ud800", "[" * 100_000, "9" * 5000)
_ODD_REPLIES = (*(Reply(content=text) for text in _ODD), Reply(finish="length"), Reply(finish=""), Reply(refusal="no"))


def _check_judged(grader: Judged, samples: Iterable[Sample]) -> None:
    """Check that the same sample has the same requests, and that every reply, however odd, gives a grade."""
    for sample in [*samples, *nasty_samples()]:
        with _about(sample):
            requests = grader.requests(sample)
            keys = [each.key for each in requests]
            again = [each.key for each in grader.requests(masked(sample, grader.needs))]
            assert keys == again, "two times the same sample, two different requests"
            for reply in (None, *_ODD_REPLIES):
                grade = grader.verdict(sample, [reply] * len(requests))
                assert (problem := check_grade(grade)) is None, f"the verdict: {problem}"


def explained(grader: Grader, sample: Sample) -> Grade:
    """Return a grader's grade of a sample with items and reasons, as rows show it."""
    return grader.explain(sample, as_grade(grader.grade(sample)))


def _fingerprint(sample: Sample) -> str:
    return repr({name: getattr(sample, name) for name in Sample.__struct_fields__ if name != "native"})


def _text(grade: Grade) -> str:
    return dumps(grade_to_json(grade))


def check_extractor(extractor: Extractor, samples: Iterable[Sample] = ()) -> None:
    """Check an extractor over ``samples`` and the nasty ones: it gives text, the same twice, and changes nothing."""
    pickle.dumps(extractor)
    for sample in [*samples, *nasty_samples()]:
        with _about(sample):
            before = _fingerprint(sample)
            first, second = extractor.extract(sample), extractor.extract(sample)
            assert isinstance(first, str), f"gives {type(first).__name__}, not text; empty for none"
            assert first == second, "gives two texts for one sample"
            assert _fingerprint(sample) == before, "the extractor changed its sample; copy what you change"


def check_hash_seeds(component: Any, path: Path | None = None, code: Path | None = None) -> None:
    """Check that what a component gives does not depend on the order of sets: processes with other hash seeds agree.

    Args:
        component: A grader, an aggregator, or a reader, with its options.
        path: What a reader reads.
        code: The Python file of the component's class, where it is none of a module that can be imported.
    """
    with tempfile.TemporaryDirectory() as place:
        (file := Path(place) / "component").write_bytes(pickle.dumps(component))
        given = (str(file), str(path or ""), str(code or ""))
        told = set()
        for seed in ("1", "2"):
            done = subprocess.run(  # noqa: S603 - our own interpreter on our own text
                [sys.executable, "-c", f"from gradestack.testing.checks import tell; tell{given}"],
                env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
                capture_output=True,
                check=False,
            )
            problem = "".join(done.stderr.decode(errors="replace").splitlines()[-1:])
            assert done.returncode == 0, f"{type(component).__name__} cannot be used in another process: {problem}"
            told.add(done.stdout)
    name = type(component).__name__
    assert len(told) == 1, f"{name}: what it gives depends on PYTHONHASHSEED; sort what comes out of a set"


def tell(component: str, path: str, code: str) -> None:
    """Print what a pickled component makes of what those of its kind are checked with."""
    if code:
        load_file(Path(code))
    found = pickle.loads(Path(component).read_bytes())  # noqa: S301 - written by the check
    try:
        if isinstance(found, Grader):
            gives: object = [_text(explained(found, each)) for each in nasty_samples() if each.status in found.handles]
        else:
            grades = isinstance(found, Aggregator)
            gives = _figures(found, [random_grades()]) if grades else _read(found, Path(path))
    except Exception as error:  # noqa: BLE001 - the check of its laws names it
        gives = type(error)
    print(gives)  # noqa: T201 - to be compared


def check_aggregator(
    aggregator: Aggregator, graded: Sequence[tuple[Key, Grade]] | None = None, *, seed: int = 0
) -> None:
    """Check that figures are declared, and the same for equal grades and for any order and cut of samples.

    Args:
        aggregator: The aggregator, with its options.
        graded: Keys and grades typical of it; default ``random_grades``.
        seed: Seed of the random orders and cuts.
    """
    graded = list(graded) if graded is not None else random_grades(seed)
    problem = misdeclared(aggregator)
    assert problem is None, f"{type(aggregator).__name__} {problem}"
    pickle.dumps(aggregator)
    expected = _figures(aggregator, [graded])
    other = sorted(graded, key=lambda pair: pair[0].id, reverse=True)  # of one task in the order they were in
    place = differing(*(figures_of(aggregator, _grades(aggregator, [each])) for each in (graded, other)))
    assert place is None, f"the figure {place} is another when tasks come in another order; sort what order decides"
    assert json.loads(_figures(aggregator, [[]])) is not None
    for _, grade in graded:
        first, second = aggregator.numbers(grade), aggregator.numbers(copy.deepcopy(grade))
        assert first == second, f"equal grades give other numbers: {first} and {second}"
    rng = random.Random(seed)  # noqa: S311 - test data
    for _ in range(6):
        cuts = sorted(rng.randrange(len(graded) + 1) for _ in range(rng.randrange(1, 5)))
        pieces = [graded[a:b] for a, b in zip([0, *cuts], [*cuts, len(graded)], strict=True)]
        assert _figures(aggregator, pieces) == expected, f"a cut at {cuts} gives other figures"


def _grades(aggregator: Aggregator, pieces: Sequence[Sequence[tuple[Key, Grade]]]) -> Grades:
    stage = Stage(
        kind="aggregator", key="metric", name="metric", component=aggregator, options={}, version="1", distribution=""
    )
    metric = Metric(of="grader", stage=stage)
    keys = ["grader", *getattr(aggregator, "raters", ())]
    need = wanted(keys, [metric])
    table = Table(keys)
    for piece in pieces:
        columns = Columns(need)
        columns.add([key for key, _ in piece], {key: [each for _, each in piece] for key in keys}, [True] * len(piece))
        table.extend(columns.to_bytes())
    return grades_of(aggregator, table, "grader", metric.name)


def _figures(aggregator: Aggregator, pieces: Sequence[Sequence[tuple[Key, Grade]]]) -> str:
    return dumps(figures_of(aggregator, _grades(aggregator, pieces)))


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
    odd = {type(each).__name__ for each in first if not isinstance(each, Sample | BadRecord)}
    assert not odd, f"it yields {', '.join(odd)}, expected Sample or BadRecord"
    flaw = next(filter(None, map(wrong_types, first)), None)
    assert flaw is None, f"it yields a {flaw}"
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
