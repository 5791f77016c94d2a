"""Checks of one component: each raises AssertionError with what is wrong."""

from __future__ import annotations

import copy
import importlib
import json
import math
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from gradestack.aggregator import Aggregator
from gradestack.api import Extractor, Grader, Input, Inputs, Reader
from gradestack.errors import DataError, GradestackError, PluginError, error_text
from gradestack.grades import Grades
from gradestack.grading.graders import Graders, as_grade, begin_grading
from gradestack.grading.plan import Metric, Stage, needs_of_figures
from gradestack.grading.reading import records_of, shards_of
from gradestack.hooks import FUNCTIONS, Component
from gradestack.jsonio.values import dumps
from gradestack.metrics.computed import compute_figures, iterate_numbers, select_grades
from gradestack.model import BadRecord, Grade, Outcome, Sample, Status, explained, replace
from gradestack.registry import flaw
from gradestack.rows.read import grade_from_json
from gradestack.rows.write import grade_to_json
from gradestack.suites.code import load_file
from gradestack.suites.options import Problems, class_schema, structure
from gradestack.table import Columns, Table
from gradestack.testing.declarations import find_flaw
from gradestack.testing.samples import GradedKeys, nasty_samples, random_grades
from gradestack.testing.watched import WatchedTable

_BARE = Sample(id="")
_NEEDED = ("calls", "recorded", "state", "plan", "usage")
"""Fields that a grader says it needs when it grades nothing without them."""


def check_component(component: Component) -> None:
    """Check summary, docstring, interface and options of a component; make and pickle it.

    It is made without options. If it refuses that, it has to say why.
    """
    lines = component.summary.splitlines()
    is_one_line = len(lines) == 1
    assert is_one_line, f"{component.name}: its summary is not one line"
    module, _, attribute = component.target.partition(":")
    target = getattr(importlib.import_module(module), attribute)
    shown = re.sub(r"gradestack_user_code_(\w+)_\w+:", r"\1.py:", component.target)
    assert target.__doc__, f"{shown}: a docstring is missing"
    problem = flaw(target, component.kind)
    if problem is None and component.kind not in FUNCTIONS:
        problem = find_flaw(target)
    assert problem is None, f"{shown} {problem}"
    if component.kind in FUNCTIONS:
        is_mapping = component.kind != "stack" or isinstance(target(), dict)
        assert is_mapping, f"{shown}: a stack returns a mapping"
        return
    json.dumps(class_schema(target))
    is_frozen = target.__setattr__ is not object.__setattr__
    assert is_frozen, f"{shown}: its options can be changed; write @attrs.frozen(kw_only=True)"
    try:
        instance = structure({}, target)
    except Problems as problems:
        assert problems.listed, f"{shown}: refuses no options without saying why"
    else:
        assert _pickled(instance) == instance, f"{shown}: does not survive pickling"


def _pickled(component: Any) -> Any:
    """Return a component as it comes to another process."""
    return pickle.loads(pickle.dumps(component))  # noqa: S301


def _stage(kind: Any, key: str, component: Any) -> Stage:
    stage = Stage(
        kind=kind, key=key, name=key, component=component, options={}, version="1", distribution=""
    )
    force_setattr(stage, "foreign", True)  # checked, whosever it is
    return stage


def check_grader(grader: Grader, samples: Iterable[Sample] = ()) -> None:
    """Check a grader over typical samples and nasty ones.

    By what a strict run refuses, and by what it takes calls for that are not known. A base of
    graders that promises more has a method ``contract_problem``, which returns what is wrong over a
    sample, else None.
    """
    samples = [*samples, *nasty_samples()]
    contract_problem = getattr(grader, "contract_problem", lambda _: None)
    for sample in samples:
        with _named(sample):
            problem = contract_problem(sample)
            assert problem is None, problem
    begin_grading()
    key = type(grader).__name__
    stage = _pickled(_stage("grader", key, grader))
    graders = Graders((stage,), {stage.key: ()}, explain=True, strict=True)
    judged = [sample for sample in samples if sample.status in grader.graded_statuses]
    texts = [_check_grade(grader, graders, sample) for sample in judged]
    _check_unknown_calls(grader, judged)
    _check_needs(grader, judged)
    for sample, text in zip(reversed(judged), reversed(texts), strict=True):
        with _named(sample):
            copied, _ = fresh(sample)
            grade = explained_grade(grader, copied)
            is_same = _text(grade) == text
            problem = "gets another grade after other samples; keep nothing between samples"
            assert is_same, problem


def _check_grade(grader: Grader, graders: Graders, sample: Sample) -> str:
    """Check the grade of a sample as a strict run makes it, and return it as JSON."""
    with _named(sample):
        copied, before = fresh(sample)
        ((grade,),) = graders.grade([copied]).columns.values()
        assert not _has_changed(copied, before), "changes its sample; copy what you change"
        repeated = explained_grade(grader, copied)
        assert repr(grade) == repr(repeated), "gives one sample two grades"
        is_missing = sample.status is Status.MISSING
        assert is_missing or grade.outcome is not Outcome.MISSING, "it is not missing"
        text = _text(grade)
        document = json.loads(text)
        read = _text(grade_from_json(document))
        assert read == text, "the grade does not survive results.jsonl"
    return text


def _check_unknown_calls(grader: Grader, samples: Iterable[Sample]) -> None:
    """Check that calls that are not known are not taken for no call."""
    for sample in samples:
        if not sample.calls:
            continue
        with _named(sample):
            known = _text(explained_grade(grader, sample))
            none = _text(explained_grade(grader, replace(sample, calls=())))
            unknown = explained_grade(grader, replace(sample, calls=None))
            is_taken_for_none = known != none and _text(unknown) == none
            is_wrong = is_taken_for_none and unknown.outcome is Outcome.GRADED
            advice = "skip where sample.calls is None"
            assert not is_wrong, f"takes calls that are not known for no call: {advice}"


def _check_needs(grader: Grader, samples: Iterable[Sample]) -> None:
    """Check that a grader which grades nothing without a field says that it needs it."""
    graded = [sample for sample in samples if _is_graded(grader, sample)]
    for name in _NEEDED:
        bare = getattr(_BARE, name)
        all_have_it = all(getattr(sample, name) != bare for sample in graded)
        if name in grader.needs or not graded or not all_have_it:
            continue
        without_field = [replace(sample, **{name: bare}) for sample in graded]
        needs = ", ".join(map(repr, sorted({*grader.needs, name})))
        advice = f"write needs = frozenset({{{needs}}})"
        is_optional = any(_is_graded(grader, sample) for sample in without_field)
        assert is_optional, f"grades nothing without Sample.{name}; {advice}"


def _is_graded(grader: Grader, sample: Sample) -> bool:
    return explained_grade(grader, sample).outcome is Outcome.GRADED


@contextmanager
def _named(sample: Sample) -> Iterator[None]:
    """Put the place of a sample before the message of an error in the ``with`` block."""
    try:
        yield
    except PluginError:  # names it
        raise
    except Exception as error:
        where = sample.source or repr(sample.id)
        raise AssertionError(f"{where}: {problem_text(error)}") from error


def problem_text(error: BaseException) -> str:
    """Return the message of an error of gradestack; describe any other error with its place."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    names: Mapping[str, Any] = {} if trace is None else trace.tb_frame.f_globals
    module = names.get("__name__", "")
    if isinstance(error, AssertionError) and module.startswith("gradestack."):
        return str(error)
    if isinstance(error, GradestackError):
        return error.line
    return f"raised {error_text(error)}"


def explained_grade(grader: Grader, sample: Sample) -> Grade:
    """Return a grader's grade of a sample with items and reasons, as rows show it."""
    return explained(as_grade(grader.grade(sample)))


def _text(grade: Grade) -> str:
    return dumps(grade_to_json(grade))


def fresh(sample: Sample) -> tuple[Sample, Any]:
    """Return a copy that shares nothing that can be changed, and its form; None without one."""
    with suppress(Exception):  # its native form may be anything
        copied = copy.deepcopy(sample)
        return copied, _form(copied)
    return sample, None


def _form(sample: Sample) -> Any:
    """Return a form that differs when anything in a sample changes, be it a number's type."""
    with suppress(Exception):
        return msgspec.msgpack.encode(sample)
    with suppress(Exception):
        return repr([getattr(sample, name) for name in sample.__struct_fields__])
    return None


def _has_changed(sample: Sample, before: Any) -> bool:
    return before is not None and _form(sample) != before


def check_extractor(extractor: Extractor, samples: Iterable[Sample] = ()) -> None:
    """Check that an extractor gives text, the same twice, and changes nothing.

    Args:
        extractor: It is checked over ``samples`` and the nasty ones.
        samples: Typical samples.
    """
    pickle.dumps(extractor)
    for sample in [*samples, *nasty_samples()]:
        with _named(sample):
            copied, before = fresh(sample)
            text = extractor.extract(copied)
            repeated = extractor.extract(copied)
            kind = type(text).__name__
            assert isinstance(text, str), f"gives {kind}, not text; empty for none"
            assert text == repeated, "gives two texts for one sample"
            is_changed = _has_changed(copied, before)
            assert not is_changed, "the extractor changed its sample; copy what you change"


def check_hash_seeds(component: Any, path: Path | None = None, code: Path | None = None) -> None:
    """Check that processes with other hash seeds get the same from a component.

    Args:
        component: A grader, an aggregator, or a reader of ``path``.
        path: A file of the reader's format.
        code: The Python file of the component's class, where no module of it can be imported.
    """
    name = type(component).__name__
    pickled_component = pickle.dumps(component)
    pickled = pickle.dumps((code, path, pickled_component))
    program = "from gradestack.testing.components import print_outputs; print_outputs()"
    outputs = set()
    for seed in ("1", "2"):
        process = subprocess.run(  # noqa: S603 - this program
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            input=pickled,
            capture_output=True,
            check=False,
        )
        lines = process.stderr.decode(errors="replace").splitlines()
        problem = "".join(lines[-1:])
        is_done = process.returncode == 0
        assert is_done, f"{name} cannot be used in another process: {problem}"
        outputs.add(process.stdout)
    problem = "what it gives depends on PYTHONHASHSEED; sort what comes out of a set"
    assert len(outputs) == 1, f"{name}: {problem}"


def print_outputs() -> None:
    """Print the outputs of the pickled component of ``check_hash_seeds``."""
    code, path, pickled = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the check
    if code:
        load_file(code)
    component = pickle.loads(pickled)  # noqa: S301
    outputs: object
    try:
        if isinstance(component, Grader):
            statuses = component.graded_statuses
            samples = [sample for sample in nasty_samples() if sample.status in statuses]
            outputs = [_text(explained_grade(component, sample)) for sample in samples]
        elif isinstance(component, Aggregator):
            outputs = _figures(component, [random_grades()])
        else:
            outputs = _read(component, path)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the check of its laws names it
        outputs = type(error)
    print(outputs)  # noqa: T201 - to be compared


def check_aggregator(
    aggregator: Aggregator, graded: GradedKeys | None = None, *, seed: int = 0
) -> None:
    """Check that figures are declared, and the same for equal grades, any order and any cut.

    Args:
        aggregator: It is checked over ``graded``.
        graded: Keys and grades typical of it, default ``random_grades(seed)``.
        seed: Of random grades, and of where samples are cut.
    """
    graded = random_grades(seed) if graded is None else list(graded)
    problem = find_flaw(aggregator)
    assert problem is None, f"{type(aggregator).__name__} {problem}"
    pickle.dumps(aggregator)
    for _, grade in graded:
        numbers = aggregator.contribution(grade)
        numbers_of_copy = aggregator.contribution(copy.deepcopy(grade))
        problem = f"gives equal grades other numbers: {numbers} and {numbers_of_copy}"
        assert numbers == numbers_of_copy, f"contribution() {problem}"
    figures = _figures(aggregator, [graded])
    repeated = _figures(aggregator, [graded], WatchedTable)
    assert repeated == figures, "gives other figures the second time"
    problem = _order_problem(aggregator, graded)
    assert problem is None, f"the figure {problem}; sort what order decides"
    text = _figures(aggregator, [[]])
    assert json.loads(text) is not None
    rng = random.Random(seed)  # noqa: S311 - test data
    for _ in range(6):
        number = len(graded)
        cuts = [rng.randrange(number + 1) for _ in range(rng.randrange(1, 5))]
        cuts.sort()
        ends = zip([0, *cuts], [*cuts, number], strict=True)
        pieces = [graded[start:end] for start, end in ends]
        assert _figures(aggregator, pieces) == figures, f"a cut at {cuts} gives other figures"


def _order_problem(aggregator: Aggregator, graded: GradedKeys) -> str | None:
    """Return the figure that changes with the order of tasks, by more than rounding; else None."""
    # runs of a task stay in order
    reordered = sorted(graded, key=lambda entry: entry[0].id, reverse=True)
    try:
        figures, reordered_figures = (
            dict(iterate_numbers(compute_figures(aggregator, make_grades(aggregator, [rows]))))
            for rows in (graded, reordered)
        )
    except Exception:  # noqa: BLE001 - of so few; of all it has figures
        return None
    for path, value in figures.items():
        reordered_value = reordered_figures.get(path)
        is_close = value == reordered_value
        if value is not None and reordered_value is not None:
            is_close = math.isclose(value, reordered_value, rel_tol=1e-9)
        if not is_close:
            name = ".".join(path)
            figure = f"{name} of the first {len(graded)} samples"
            return f"{figure} is another when tasks come in another order"
    return None


def _table(
    aggregator: Aggregator, pieces: Sequence[GradedKeys], kind: type[Table] = Table
) -> Table:
    """Build a table of the keys and grades of several pieces, as an aggregator would receive it."""
    keys = ["grader", *getattr(aggregator, "raters", ())]
    stage = _stage("aggregator", "metric", aggregator)
    metrics = [Metric(of="grader", stage=stage)]
    need = needs_of_figures(keys, metrics)
    table = kind(keys)
    for piece in pieces:
        grades = [grade for _, grade in piece]
        columns = Columns(need)
        columns.add([key for key, _ in piece], dict.fromkeys(keys, grades), [True] * len(piece))
        table.extend(columns.to_bytes())
    return table


def make_grades(
    aggregator: Aggregator, pieces: Sequence[GradedKeys], kind: type[Table] = Table
) -> Grades:
    """Return the grades that an aggregator is given, merged from several pieces."""
    table = _table(aggregator, pieces, kind)
    return select_grades(aggregator, table, "grader", "grader/metric")


def _figures(
    aggregator: Aggregator, pieces: Sequence[GradedKeys], kind: type[Table] = Table
) -> str:
    grades = make_grades(aggregator, pieces, kind)
    return dumps(compute_figures(aggregator, grades))


def inputs_of(path: Path) -> Inputs:
    """Return the inputs of one file or folder."""
    entry = Input(path=path, name=path.stem, shown=path.name)
    return Inputs(data=(entry,))


def _read(reader: Reader, path: Path) -> list[Sample | BadRecord]:
    """Read the records of a file shard by shard; check the order of the shards."""
    shards, index = shards_of(reader, inputs_of(path))
    ordinals = [shard.ordinal for shard in shards]
    expected = list(range(len(shards)))
    assert ordinals == expected, "shards must be numbered from 0"
    pickle.dumps((reader, index, shards))
    records: list[Sample | BadRecord] = []
    end = 0
    for number, shard in enumerate(shards):
        problem = "positions must grow from shard to shard by its records at least"
        assert number == 0 or shard.position >= end, problem
        of_shard = list(records_of(reader, shard, index))
        end = shard.position + len(of_shard)
        records += of_shard
    return records


def _type_problem(record: Sample | BadRecord) -> str | None:
    """Return the field of a record that holds a value of a wrong type, or None."""
    kind = Sample if isinstance(record, Sample) else BadRecord  # not what a reader makes of it
    fields = {name: getattr(record, name) for name in kind.__struct_fields__ if name != "native"}
    try:
        msgspec.convert(msgspec.to_builtins(kind(**fields)), kind)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        field = kind.__name__ + path.rstrip("`")
        return f"{field}: {problem[:1].lower()}{problem[1:]}"
    except (TypeError, ValueError, RecursionError):  # its row is checked for what is no JSON
        return None
    return None


def check_reader(reader: Reader, path: Path, *, scratch: Path) -> None:
    """Check that a reader knows its files, reads them twice the same, and is sound on broken ones.

    Args:
        reader: The reader.
        path: A sound file of its format with two records or more, or a folder of such files.
        scratch: An empty directory, for copies that are cut off or garbled.
    """
    sniff = type(reader).sniff
    if path.is_dir():
        assert reader.takes_directories, "takes no folder (takes_directories); give it a file"
        assert sniff(path, b"") > 0, "its own folder is not recognised"
        assert sniff(scratch, b"") == 0, "an empty folder is recognised"
    else:
        head = path.read_bytes()[: 64 * 1024]
        assert sniff(path, head) > 0, "its own file is not recognised"
        assert sniff(path, b"\x00\xff garbage") == 0, "garbage is recognised"
    records = _read(reader, path)
    assert records, "no sample was read"
    assert records == _read(reader, path), "two readings differ"
    for record in records:
        problem = _type_problem(record)
        assert problem is None, f"it yields a {problem}"
    for broken in _broken_copies(path, scratch):
        try:
            _read(reader, broken)
        except DataError as error:
            assert str(broken) in str(error), f"the message does not name the file: {error}"


def _broken_copies(path: Path, scratch: Path) -> Iterator[Path]:
    """Yield copies of a file, or of a folder with its files, cut off or garbled."""
    copy_to = shutil.copytree if path.is_dir() else shutil.copyfile
    for number in range(5):
        broken = scratch / f"broken-{number}{path.suffix}"
        copy_to(path, broken)
        for file in [broken, *broken.rglob("*")]:
            if file.is_file():
                content = file.read_bytes()
                half = content[: len(content) // 2]
                contents = (half, content[:-1], b"", b"null", content + b"\n{]")
                file.write_bytes(contents[number])
        yield broken
