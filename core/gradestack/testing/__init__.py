"""Conformance kit for plugin authors.

Plain functions for any test runner, each raising AssertionError that says why.

    from gradestack import testing

    @pytest.mark.parametrize("check", testing.checks("gradestack-acme", reads={"acme": FILE}),
    ids=str) def test_it_keeps_the_contract(check):
        check()

``checks`` checks everything a distribution offers, and ``gradestack plugins check`` runs it; the
functions it is made of check one component each. Tables of inputs and what is expected of
them are best written as data, in YAML files of ``cases``, each for ``check_case``.
"""

from __future__ import annotations

import contextlib
import copy
import decimal
import importlib
import io
import json
import math
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import attrs
import msgspec
from msgspec.structs import force_setattr

from gradestack.api import Aggregator, Extractor, Grader, Input, Inputs, Reader, misdeclared
from gradestack.errors import (
    ConfigError,
    DataError,
    GradestackError,
    PluginError,
    error_text,
    suggest,
)
from gradestack.estimates import Grades
from gradestack.grading.graders import Graders, as_grade, begin_grading
from gradestack.grading.metrics import figures_of, grades_of, numbers_in, wanted
from gradestack.grading.plan import Metric, Stage
from gradestack.grading.reading import records_of, shards_of
from gradestack.hooks import FUNCTIONS, Component
from gradestack.interpreter import ticking
from gradestack.jsonio.values import dumps
from gradestack.model import (
    BadRecord,
    Expectation,
    ExpectedCall,
    Fault,
    Grade,
    Item,
    Key,
    Message,
    Outcome,
    Reason,
    Rule,
    Sample,
    Source,
    Status,
    ToolCall,
    ToolSpec,
    Usage,
    explained,
    replace,
)
from gradestack.python_api import run
from gradestack.registry import BUILT_IN, Plugin, Registry, discover, flaw, normal, qualified
from gradestack.rows.read import grade_from_json
from gradestack.rows.write import grade_to_json
from gradestack.suites.code import load_file, with_files
from gradestack.suites.components import samples_of, stack_for
from gradestack.suites.options import Problems, class_schema, structure
from gradestack.table import Columns, Table
from gradestack.testing.case_files import Case, cases, check_case
from gradestack.testing.lines import check_summary, with_line
from gradestack.testing.upgrade import upgrade
from gradestack.testing.watched import WatchedTable

__all__ = [
    "Case",
    "Check",
    "NeedsExample",
    "cases",
    "changed",
    "check_aggregator",
    "check_case",
    "check_component",
    "check_extractor",
    "check_grader",
    "check_hash_seeds",
    "check_reader",
    "checks",
    "explained_grade",
    "fresh",
    "nasty_samples",
    "order_flaw",
    "random_grades",
    "tell",
    "upgrade",
    "what_is_wrong",
    "wrong_types",
]

SECONDS = 60.0  # how long one check may take; more than it needs beside much else on the machine
_BARE = Sample(id="")
_FIRST = 200  # samples of each file that graders are checked over


Graded = Sequence[tuple[Key, Grade]]
Steps = Callable[[Path], object]
Laws = Iterator[tuple[str, Steps]]


def check_component(component: Component) -> None:
    """Check that a component is of its kind and documented, and that its options are plain."""
    assert len(component.summary.splitlines()) == 1, (
        f"{component.name}: its summary is not one line"
    )
    module, _, attribute = component.target.partition(":")
    target = getattr(importlib.import_module(module), attribute)
    shown = re.sub(r"gradestack_user_code_(\w+)_\w+:", r"\1.py:", component.target)
    assert target.__doc__, f"{shown}: a docstring is missing"
    problem = flaw(target, component.kind)
    assert problem is None, f"{shown} {problem}"
    check_summary(component, target)
    if component.kind in FUNCTIONS:
        assert component.kind != "stack" or isinstance(target(), dict), (
            f"{shown}: a stack returns a mapping"
        )
        return
    json.dumps(class_schema(target))
    frozen = target.__setattr__ is not object.__setattr__
    assert frozen, f"{shown}: its options can be changed; write @attrs.frozen(kw_only=True)"
    try:
        made = structure({}, target)
    except Problems as problems:
        assert problems.found, f"{shown}: refuses no options without saying why"
    else:
        assert pickle.loads(pickle.dumps(made)) == made, f"{shown}: does not survive pickling"  # noqa: S301


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
        with _about(sample):
            problem = contract_problem(sample)
            assert problem is None, problem
    # as it comes to another process
    stage = pickle.loads(pickle.dumps(_stage("grader", type(grader).__name__, grader)))  # noqa: S301
    graders = Graders((stage,), {stage.key: ()}, explain=True, strict=True)
    begin_grading()
    judged = [sample for sample in samples if sample.status in grader.graded_statuses]
    told = []
    for sample in judged:
        with _about(sample):
            copied, before = fresh(sample)
            grade = graders.grade([copied]).columns[stage.key][0]
            assert not changed(copied, before), "changes its sample; copy what you change"
            assert repr(grade) == repr(explained_grade(grader, copied)), (
                "gives one sample two grades"
            )
            answered = sample.status is not Status.MISSING
            assert grade.outcome is not Outcome.MISSING or not answered, "it is not missing"
            text = _text(grade)
            assert _text(grade_from_json(json.loads(text))) == text, (
                "the grade does not survive results.jsonl"
            )
            told.append(text)
    _check_unknown_calls(grader, judged)
    _check_needs(grader, judged)
    for sample, text in zip(reversed(judged), reversed(told), strict=True):
        with _about(sample):
            assert _text(explained_grade(grader, fresh(sample)[0])) == text, (
                "gets another grade after other samples; keep nothing between samples"
            )


def _check_unknown_calls(grader: Grader, samples: Iterable[Sample]) -> None:
    """Check that calls that are not known are not taken for no call."""
    for sample in samples:
        if not sample.calls:
            continue
        with _about(sample):
            made = _text(explained_grade(grader, sample))
            none = _text(explained_grade(grader, msgspec.structs.replace(sample, calls=())))
            unknown = explained_grade(grader, msgspec.structs.replace(sample, calls=None))
            is_taken_for_none = made != none and _text(unknown) == none
            assert not (is_taken_for_none and unknown.outcome is Outcome.GRADED), (
                "takes calls that are not known for no call: skip where sample.calls is None"
            )


_NEEDED = ("calls", "recorded", "state", "plan", "usage")
"""Fields that a grader says it needs when it grades nothing without them."""


def _check_needs(grader: Grader, samples: Iterable[Sample]) -> None:
    """Check that a grader which grades nothing without a field says that it needs it."""
    graded = [
        sample for sample in samples if explained_grade(grader, sample).outcome is Outcome.GRADED
    ]
    for name in _NEEDED:
        having = [sample for sample in graded if getattr(sample, name) != getattr(_BARE, name)]
        if name in grader.needs or not having or len(having) < len(graded):
            continue
        without = [
            msgspec.structs.replace(sample, **{name: getattr(_BARE, name)}) for sample in having
        ]
        outcomes = {explained_grade(grader, sample).outcome for sample in without}
        needs = ", ".join(repr(each) for each in sorted({*grader.needs, name}))
        assert Outcome.GRADED in outcomes, (
            f"grades nothing without Sample.{name}; write needs = frozenset({{{needs}}})"
        )


@contextmanager
def _about(sample: Sample) -> Iterator[None]:
    """Name the sample in what is wrong with what was made of it."""
    try:
        yield
    except PluginError:  # names it
        raise
    except Exception as error:
        place = sample.source or repr(sample.id)
        raise AssertionError(f"{place}: {what_is_wrong(error)}") from error


def what_is_wrong(error: BaseException) -> str:
    """Return what an assertion of ours, or an error of ours, says.

    Else what was raised, with its place.
    """
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    ours = frame is not None and frame.tb_frame.f_globals.get("__name__", "").startswith(
        "gradestack."
    )
    if isinstance(error, AssertionError) and ours:
        return str(error)
    return error.line if isinstance(error, GradestackError) else f"raised {error_text(error)}"


def explained_grade(grader: Grader, sample: Sample) -> Grade:
    """Return a grader's grade of a sample with items and reasons, as rows show it."""
    return explained(as_grade(grader.grade(sample)))


def _text(grade: Grade) -> str:
    return dumps(grade_to_json(grade))


def fresh(sample: Sample) -> tuple[Sample, Any]:
    """Return a copy that shares nothing that can be changed, and its form as it is now; None where it has none."""
    with suppress(Exception):  # its native form may be anything
        copied = copy.deepcopy(sample)
        return copied, _form(copied)
    return sample, None


def _form(sample: Sample) -> Any:
    """Return what is another when anything in a sample is changed, be it the type of a number."""
    with suppress(Exception):
        return msgspec.msgpack.encode(sample)
    with suppress(Exception):
        return repr([getattr(sample, name) for name in sample.__struct_fields__])
    return None


def changed(sample: Sample, before: Any) -> bool:
    """Return whether a sample has another form than it had."""
    return before is not None and _form(sample) != before


def check_extractor(extractor: Extractor, samples: Iterable[Sample] = ()) -> None:
    """Check an extractor over ``samples`` and the nasty ones.

    It gives text, the same twice, and changes nothing.
    """
    pickle.dumps(extractor)
    for sample in [*samples, *nasty_samples()]:
        with _about(sample):
            copied, before = fresh(sample)
            first, second = extractor.extract(copied), extractor.extract(copied)
            assert isinstance(first, str), f"gives {type(first).__name__}, not text; empty for none"
            assert first == second, "gives two texts for one sample"
            assert not changed(copied, before), (
                "the extractor changed its sample; copy what you change"
            )


def check_hash_seeds(component: Any, path: Path | None = None, code: Path | None = None) -> None:
    """Check that processes with other hash seeds agree on what a grader, an aggregator, or a reader
    of ``path`` gives.

    ``code`` is the Python file of the component's class, where that is in no module that can be
    imported.
    """
    name, told = type(component).__name__, set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", "from gradestack.testing import tell; tell()"],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            input=pickle.dumps((code, path, pickle.dumps(component))),
            capture_output=True,
            check=False,
        )
        problem = "".join(done.stderr.decode(errors="replace").splitlines()[-1:])
        assert done.returncode == 0, f"{name} cannot be used in another process: {problem}"
        told.add(done.stdout)
    assert len(told) == 1, (
        f"{name}: what it gives depends on PYTHONHASHSEED; sort what comes out of a set"
    )


def tell() -> None:
    """Print what a pickled component makes of what those of its kind are checked with."""
    code, path, pickled = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the check
    if code:
        load_file(code)
    found = pickle.loads(pickled)  # noqa: S301
    try:
        if isinstance(found, Grader):
            gives: object = [
                _text(explained_grade(found, each))
                for each in nasty_samples()
                if each.status in found.graded_statuses
            ]
        else:
            gives = (
                _figures(found, [random_grades()])
                if isinstance(found, Aggregator)
                else _read(found, path)
            )
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the check of its laws names it
        gives = type(error)
    print(gives)  # noqa: T201 - to be compared


def order_flaw(
    aggregator: Aggregator, table: Table, key: str, name: str, rows: Sequence[int] | None = None
) -> str | None:
    """Return which figure is another when tasks come in another order, by more than a sum's order explains."""
    ids, rows = table.keys["id"], range(len(table)) if rows is None else rows
    other = sorted(
        rows, key=lambda row: ids.values[ids.codes[row]], reverse=True
    )  # runs of a task stay in order
    try:
        found, there = (
            dict(numbers_in(figures_of(aggregator, grades_of(aggregator, table, key, name, each))))
            for each in (rows, other)
        )
    except Exception:  # noqa: BLE001 - of so few; of all it has figures
        return None
    for path, value in found.items():
        beside = there.get(path)
        if value != beside and (
            value is None or beside is None or not math.isclose(value, beside, rel_tol=1e-9)
        ):
            return f"{'.'.join(path)} of the first {len(rows)} samples is another when tasks come in another order"
    return None


def check_aggregator(
    aggregator: Aggregator, graded: Graded | None = None, *, seed: int = 0
) -> None:
    """Check that figures are declared, and the same for equal grades and for any order and cut of
    samples.

    ``graded`` are keys and grades typical of it, default ``random_grades(seed)``.
    """
    graded = list(graded) if graded is not None else random_grades(seed)
    problem = misdeclared(aggregator)
    assert problem is None, f"{type(aggregator).__name__} {problem}"
    pickle.dumps(aggregator)
    for _, grade in graded:
        first = aggregator.contribution(grade)
        second = aggregator.contribution(copy.deepcopy(grade))
        assert first == second, (
            f"contribution() gives equal grades other numbers: {first} and {second}"
        )
    expected = _figures(aggregator, [graded])
    assert _figures(aggregator, [graded], WatchedTable) == expected, (
        "gives other figures the second time"
    )
    problem = order_flaw(aggregator, _table(aggregator, [graded]), "grader", "grader/metric")
    assert problem is None, f"the figure {problem}; sort what order decides"
    assert json.loads(_figures(aggregator, [[]])) is not None
    rng = random.Random(seed)  # noqa: S311 - test data
    for _ in range(6):
        cuts = sorted(rng.randrange(len(graded) + 1) for _ in range(rng.randrange(1, 5)))
        pieces = [graded[a:b] for a, b in zip([0, *cuts], [*cuts, len(graded)], strict=True)]
        assert _figures(aggregator, pieces) == expected, f"a cut at {cuts} gives other figures"


def _table(aggregator: Aggregator, pieces: Sequence[Graded], kind: type[Table] = Table) -> Table:
    keys = ["grader", *getattr(aggregator, "raters", ())]
    need = wanted(keys, [Metric(of="grader", stage=_stage("aggregator", "metric", aggregator))])
    table = kind(keys)
    for piece in pieces:
        columns = Columns(need)
        columns.add(
            [key for key, _ in piece],
            {key: [each for _, each in piece] for key in keys},
            [True] * len(piece),
        )
        table.extend(columns.to_bytes())
    return table


def _grades(aggregator: Aggregator, pieces: Sequence[Graded], kind: type[Table] = Table) -> Grades:
    return grades_of(aggregator, _table(aggregator, pieces, kind), "grader", "grader/metric")


def _figures(aggregator: Aggregator, pieces: Sequence[Graded], kind: type[Table] = Table) -> str:
    return dumps(figures_of(aggregator, _grades(aggregator, pieces, kind)))


def _inputs(path: Path) -> Inputs:
    return Inputs(data=(Input(path=path, name=path.stem, shown=path.name),))


def _read(reader: Reader, path: Path) -> list[Sample | BadRecord]:
    shards, index = shards_of(reader, _inputs(path))
    assert [shard.ordinal for shard in shards] == list(range(len(shards))), (
        "shards must be numbered from 0"
    )
    pickle.dumps((reader, index, shards))
    found: list[Sample | BadRecord] = []
    for shard, later in zip(shards, [*shards[1:], None], strict=False):
        part = list(records_of(reader, shard, index))
        apart = later is None or shard.position + len(part) <= later.position
        assert apart, "positions must grow from shard to shard by its records at least"
        found += part
    return found


def wrong_types(record: Sample | BadRecord) -> str | None:
    """Return which field of a record holds what it must not, or None."""
    kind = Sample if isinstance(record, Sample) else BadRecord  # not what a reader makes of it
    known = {name: getattr(record, name) for name in kind.__struct_fields__ if name != "native"}
    try:
        msgspec.convert(msgspec.to_builtins(kind(**known)), kind)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        return f"{kind.__name__}{place.rstrip('`')}: {what[:1].lower()}{what[1:]}"
    except (TypeError, ValueError, RecursionError):  # what is no JSON is told by its row
        return None
    return None


def check_reader(reader: Reader, path: Path, *, scratch: Path) -> None:
    """Check a reader on a sound file of two records or more, or a folder of such.

    Recognised, lazy, the same twice, sound on broken copies.

    These are the file, or those of the folder, cut off or garbled, written into ``scratch``, an
    empty directory.
    """
    if path.is_dir():
        assert reader.takes_directories, "takes no folder (takes_directories); give it a file"
        assert type(reader).sniff(path, b"") > 0, "its own folder is not recognised"
        assert type(reader).sniff(scratch, b"") == 0, "an empty folder is recognised"
    else:
        head = path.read_bytes()[: 64 * 1024]
        assert type(reader).sniff(path, head) > 0, "its own file is not recognised"
        assert type(reader).sniff(path, b"\x00\xff garbage") == 0, "garbage is recognised"
    first, second = _read(reader, path), _read(reader, path)
    assert first, "no sample was read"
    assert first == second, "two readings differ"
    wrong = next(filter(None, map(wrong_types, first)), None)
    assert wrong is None, f"it yields a {wrong}"
    for copy_path in _broken_copies(path, scratch):
        try:
            _read(reader, copy_path)
        except DataError as error:
            assert str(copy_path) in str(error), f"the message does not name the file: {error}"


def _broken_copies(path: Path, scratch: Path) -> Iterator[Path]:
    """Yield copies of a file, or of a folder with its files, cut off or garbled."""
    for number in range(5):
        copied = scratch / f"broken-{number}{path.suffix}"
        (shutil.copytree if path.is_dir() else shutil.copyfile)(path, copied)
        for file in [*copied.rglob("*")] if path.is_dir() else [copied]:
            if file.is_file():
                whole = file.read_bytes()
                broken = (whole[: len(whole) // 2], whole[:-1], b"", b"null", whole + b"\n{]")
                file.write_bytes(broken[number])
        yield copied


class NeedsExample(ConfigError):
    """A component cannot be checked without one made with its required options."""


@attrs.frozen(eq=False)
class Check:
    """One check of one component: called, it raises AssertionError with what is wrong.

    As text it says which it is.
    """

    name: str
    steps: Steps = attrs.field(repr=False)
    known: str | None = None  # why it is known to fail: then it may, and has to
    target: Any = attrs.field(default=None, repr=False)  # class or function of the component

    def __str__(self) -> str:
        return self.name

    def __call__(self) -> None:
        """Check, and raise AssertionError, also where nothing is wrong although that is known."""
        try:
            with tempfile.TemporaryDirectory(prefix="gradestack-check-") as place, _undisturbed():
                self.steps(Path(place))
        except (KeyboardInterrupt, NeedsExample):
            raise
        except BaseException as error:
            if self.known is None:
                of_work = self.name.endswith((": laws", ": hash seeds"))
                said = with_line(what_is_wrong(error), self.target, of_work=of_work)
                raise AssertionError(f"{self.name}: {said}") from error
        else:
            assert self.known is None, (
                f"{self.name}: nothing is wrong any more; take it out of `known` ({self.known})"
            )


def _too_long(*_: object) -> None:
    raise AssertionError(
        f"took longer than {SECONDS:g} s; use less data, or search for what never ends"
    )


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Refuse what a component may not change of the process it runs in."""

    def settings() -> dict[str, Any]:
        context = repr(decimal.getcontext().copy()).partition(", flags=")[0]
        return {
            "working directory": Path.cwd(),
            "environment": dict(os.environ),
            "decimal context": context,
        }

    before, printed, process = settings(), io.StringIO(), os.getpid()
    try:
        with (
            ticking(SECONDS, _too_long),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            yield
    finally:
        if os.getpid() != process:  # it forked
            os._exit(1)
    changed_ = [f"the {what}" for what, each in settings().items() if each != before[what]]
    assert not changed_, (
        f"it changes {' and '.join(changed_)}, which everything else in the process sees"
    )
    text = printed.getvalue()
    assert not text, f"it prints {text[:80]!r}; say it in a reason, a remark or a warning"


def checks(
    package: str | Path,
    *,
    reads: Mapping[str, str | Path] | None = None,
    examples: Mapping[str, Sequence[Any]] | None = None,
    known: Mapping[str, str] | None = None,
) -> list[Check]:
    """Return the checks of everything a distribution or a Python file offers, for one parametrised
    test.

    Args:
        package: Name of an installed distribution, or a Python file.
        reads: Reader name -> a sound file of its format, with two records at least. Graders are
            checked over its samples, too, and the package is run on it, serially and in two
            processes.
        examples: Component name, or kind and name (``grader strict``) -> components made with
            options, in place of the one without; needed where an option is required. Of several
            components of a name each is given those of its kind.
        known: Name of a check -> why it fails: it may, and says when it does not any more.

    Raises:
        ConfigError: There is nothing to check, or a name is unknown; by its check, where a
            component needs an example.
        PluginError: It cannot be loaded.
    """
    file = Path(package).resolve() if str(package).endswith(".py") else None
    registry = with_files(discover(), [str(package)] if file else [], allow_code=True)
    owned = (each for each in registry.plugins if normal(each.distribution) == normal(str(package)))
    plugins = [registry.plugins[-1]] if file else list(owned)
    if broken := [f"plugin {each}: {each.error}" for each in plugins if each.error]:
        raise PluginError("; ".join(broken))
    files = {
        registry.find("reader", name).name: Path(path).resolve()
        for name, path in (reads or {}).items()
    }
    samples = [each for name, path in files.items() for each in _samples(registry, name, path)]
    parts = [
        _part(component, plugin, examples or {})
        for plugin in plugins
        for component in plugin.components
    ]
    graders = [each for part in parts for each in part.made if isinstance(each, Grader)]
    found = dict[str, tuple[Steps, Any]]()
    for part in parts:
        for law, steps in _checks_of(part, registry, samples, files, graders, file):
            found[f"{part.what}{law}"] = steps, part.target
    own: dict[tuple[str, str], Any] = {
        (part.component.kind, part.name): part.made[0]
        for part in parts
        if part.made and not part.shown and not part.lacks
    }
    for name, path in files.items():
        steps = partial(_run, _without_panels(registry, plugins), own, name, path, str(package))
        found[f"run on {path.name}: same bytes on every engine"] = steps, None
    used = {name for part in parts for name in (part.component.name, part.what) if part.shown}
    unknown = [*({*(examples or ())} - used), *({*(known or ())} - found.keys())]
    if wrong := ", ".join(sorted(unknown)):
        raise ConfigError(
            f"{package} offers nothing that is called {wrong}: there is nothing to check"
        )
    if not found:
        what = (
            "it offers nothing"
            if plugins
            else "no plugin is installed from a distribution of this name"
        )
        hint = suggest(str(package), {each.distribution for each in registry.plugins})
        raise ConfigError(
            f"{package}: {what}{hint}; name an installed distribution, or a file: FILE.py"
        )
    return [
        Check(name, steps, (known or {}).get(name), target)
        for name, (steps, target) in found.items()
    ]


@attrs.frozen
class _Part:
    """One component of a package, and what stands for it in its checks."""

    component: Component
    plugin: Plugin
    target: Any
    shown: Sequence[Any]  # the author's examples
    made: Sequence[Any]
    lacks: str = ""  # why it is made with options that are made up

    @property
    def what(self) -> str:
        return f"{self.component.kind} {self.component.name}"

    @property
    def name(self) -> str:
        return qualified(self.component, self.plugin)


def _part(component: Component, plugin: Plugin, examples: Mapping[str, Sequence[Any]]) -> _Part:
    """Return a component with its examples, else as it is without options."""
    module, _, names = component.target.partition(":")
    target = None
    with suppress(Exception, SystemExit):  # said by the check of the component
        target = attrgetter(names)(importlib.import_module(module))
    own = examples.get(f"{component.kind} {component.name}", ())
    alike = (
        each
        for each in examples.get(component.name, ())
        if getattr(each, "contract", None) == component.kind
    )
    if shown := [*own, *alike]:
        return _Part(component, plugin, target, shown, shown)
    if component.kind in FUNCTIONS:
        return _Part(component, plugin, target, (), ())
    try:
        return _Part(
            component, plugin, target, (), [structure({}, Registry.loaded(component, plugin))]
        )
    except Problems as problems:
        told = "; ".join(f"{'.'.join(map(str, place))} {text}" for place, text in problems.found)
        return _Part(component, plugin, target, (), _made_up(target), told)
    except (Exception, SystemExit):  # noqa: BLE001 - said by the check of the component
        return _Part(component, plugin, target, (), ())


_MADE_UP = {"string": "x", "integer": 1, "number": 0.5, "boolean": True, "array": [], "object": {}}


def _made_up(target: Any) -> list[Any]:
    """Return a component whose required options are made up by their types; none where it fails."""
    schema = class_schema(target)
    options = {}
    for name in schema.get("required", ()):
        kind = schema["properties"][name]
        options[name] = (kind.get("enum") or [_MADE_UP.get(kind.get("type", ""))])[0]
    with suppress(Exception):
        return [structure(options, target)]
    return []


def _checks_of(
    part: _Part,
    registry: Registry,
    samples: Sequence[Sample],
    files: Mapping[str, Path],
    graders: Sequence[Grader],
    file: Path | None,
) -> Laws:
    """Yield the checks of one component."""
    kind, name = part.component.kind, part.component.name
    yield ": is what it says", lambda _: check_component(part.component)
    if part.lacks:
        yield ": has an example", partial(_lacks_example, part)
    path = files.get(registry.find("reader", name).name) if kind == "reader" else None
    if kind == "aggregator":
        graders = [each for each in graders if {name, part.name} & {*each.metrics}]
    for number, each in enumerate(part.made):
        for law, steps in _laws(each, registry, samples, path, graders, file):
            said = partial(_with_made_up, steps) if part.lacks else steps
            yield f"{f'[{number}]' if number else ''}: {law}", said
    if kind == "stack":
        read = next(iter(files.items()), None)
        yield ": resolves", partial(_stack, registry, part.name, read)


def _lacks_example(part: _Part, _: Path) -> None:
    raise NeedsExample(f"{part.lacks} (examples={{{part.what!r}: [...]}} of testing.checks)")


def _with_made_up(steps: Steps, scratch: Path) -> None:
    """Check a component whose options are made up: what it raises may be their fault."""
    try:
        steps(scratch)
    except Exception as error:
        if isinstance(error.__cause__ or error, AssertionError):  # the component's own
            raise
        raise NeedsExample(f"{what_is_wrong(error)} (with options made up)") from error


def _without_panels(registry: Registry, plugins: Sequence[Plugin]) -> Registry:
    """Return a registry without the panels of other packages: what these break is not ours."""
    found = []
    for each in registry.plugins:
        kept = tuple(component for component in each.components if component.kind != "panel")
        is_ours = each in plugins or each.distribution == BUILT_IN
        found.append(each if is_ours else each._replace(components=kept))
    return Registry(found, registry.unknown)


def _samples(registry: Registry, name: str, path: Path) -> list[Sample]:
    with (
        contextlib.suppress(Exception),
        ticking(SECONDS, _too_long),
    ):  # said by the check of the reader
        return list(samples_of(registry.load("reader", name)(), _inputs(path), _FIRST))
    return []


def _laws(
    made: Any,
    registry: Registry,
    samples: Sequence[Sample],
    path: Path | None,
    graders: Sequence[Grader],
    file: Path | None,
) -> Laws:
    if isinstance(made, Grader):
        yield "laws", lambda _: check_grader(made, samples)
        yield "aggregators are there", lambda _: _check_named(made, registry)
    elif isinstance(made, Aggregator):
        yield "laws", lambda _: _check_on_graders(made, graders, samples)
    elif isinstance(made, Extractor):
        yield "laws", lambda _: check_extractor(made, samples)
    elif path is not None:
        yield "laws", lambda scratch: check_reader(made, path, scratch=scratch)
    if isinstance(made, Grader | Aggregator) or path is not None:
        yield "hash seeds", lambda _: check_hash_seeds(made, path, file)


def _check_named(grader: Grader, registry: Registry) -> None:
    for name in grader.metrics:
        try:
            registry.find("aggregator", name)
        except GradestackError as error:
            raise AssertionError(f"its `metrics` name one that is not there: {error}") from error


def _check_on_graders(
    aggregator: Aggregator, graders: Iterable[Grader], samples: Sequence[Sample]
) -> None:
    """Check an aggregator over random grades, and over those of the graders that it runs on."""
    check_aggregator(aggregator)
    for grader in graders:
        graded: list[tuple[Key, Grade]] = []
        for ordinal, each in enumerate([*samples, *nasty_samples()]):
            with suppress(Exception):  # said by the check of the grader
                key = Key(id=each.id, model=each.model, ordinal=ordinal, facets=each.facets)
                graded.append((key, explained_grade(grader, each)))
        check_aggregator(aggregator, graded)


def _stack(registry: Registry, name: str, read: tuple[str, Path] | None, scratch: Path) -> None:
    stack_for(registry, name)
    if read is not None:
        target = {"paths": [str(read[1])], "reader": read[0]}
        run(
            {"name": "check", "target": target, "stack": name},
            output=scratch / "out",
            registry=registry,
        )


def _is_made_plainly(registry: Registry, grader: str) -> bool:
    """Return whether a grader can be made without options."""
    with suppress(Problems):
        structure({}, registry.load("grader", grader))
        return True
    return False


def _run(
    registry: Registry,
    own: Mapping[tuple[str, str], Any],
    reader: str,
    path: Path,
    package: str,
    scratch: Path,
) -> None:
    """Run what a package offers on a file, on two engines.

    Nothing of it is broken, and all bytes are the same.
    """
    its, file = registry.load("reader", reader), package if package.endswith(".py") else None
    used = {kind: [name for each, name in own if each == kind] for kind in ("reporter", "engine")}
    graders = [
        name
        for (kind, name), each in own.items()
        if kind == "grader" and each.needs <= its.provides
    ]
    read = reader.rpartition(":")[2]
    exporters = [
        name
        for (kind, name), each in own.items()
        if kind == "exporter"
        and each.reader == read
        and all(_is_made_plainly(registry, grader) for grader in each.graders)
    ]
    wanted = {name for each in exporters for name in own["exporter", each].graders}
    wanted -= {name.rpartition(":")[2] for name in graders}
    suite: dict[str, Any] = {
        "name": "check",
        "target": {"paths": [str(path)], "reader": reader},
        "reports": ["html", "markdown", *used["reporter"]],
        "exporters": exporters,
        "stack": None if graders or wanted else its.stack or "auto",
        "graders": {f"g{number}": name for number, name in enumerate([*graders, *sorted(wanted)])},
        "plugins": [file] if file else [],
    }
    registry = Registry(registry.plugins[:-1]) if file else registry  # the suite names the file
    written = []
    for engine in ("serial", {"kind": "processes", "workers": 2}, *used["engine"]):
        given = {**suite, "engine": engine}
        report = run(given, output=scratch / "out", registry=registry, allow_code=True, strict=True)
        broken = [
            f"{name} is broken: {text}" for name, text in report.summary.get("broken", {}).items()
        ]
        assert not broken, "; ".join(broken)
        pages = (
            each
            for each in (scratch / "out").rglob("*")
            if each.is_file() and each.name != "header.json"
        )
        written.append({each.relative_to(scratch): each.read_bytes() for each in pages})
    differ = {
        str(name)
        for files in written[1:]
        for name in written[0]
        if written[0][name] != files.get(name)
    }
    assert not differ, f"serial and processes write other bytes: {', '.join(sorted(differ))}"


def nasty_samples() -> list[Sample]:
    """Return valid samples with everything that breaks careless graders."""
    text, deep = "<script>\u202e\ud800\x00", json.loads('{"a": [' * 60 + "1" + "]}" * 60)
    odd = {"text": text, "big": 10**40, "nan": float("nan"), "null": None, "deep": deep, "": []}
    call = ToolCall(name="search", arguments={"q": "x", "n": 1})
    tool = ToolSpec(
        name="search", parameters={"type": "object", "properties": {"q": {"type": "string"}}}
    )
    broken_tool = ToolSpec(
        name="search", parameters={"type": 3, "properties": ["q"], "required": "q"}
    )
    wanted = ExpectedCall(name="search", arguments={"q": "x", "n": 1})
    both = Expectation(calls=(wanted,), label="tool_call", text="x")
    ruled = ExpectedCall(
        names=("search", "find"),
        rules={"q": Rule(any_of=("x", odd), compare="regex")},
        optional=True,
    )
    strange = ExpectedCall(name="x", arguments=odd)
    anything = ExpectedCall(name="search", arguments=None, group=1, turn=0)
    bare = Sample(id="bare")
    names = ("book", "cancel", "find_user", "pay", "refund", "transfer")
    several_called = tuple(
        ToolCall(name=f"{name}_all", arguments={name: 1, "x": 2}) for name in names
    )
    several = tuple(ExpectedCall(name=name, arguments={name: 1, "y": 2}) for name in names)
    return [
        bare,
        Sample(id="", expected=Expectation(calls=()), calls=()),
        Sample(id="none-called", expected=both, calls=(), tools=(), label="direct"),
        Sample(
            id="right", expected=both, calls=(call,), tools=(tool,), label="tool_call", text="x"
        ),
        Sample(
            id="twice",
            expected=Expectation(calls=(wanted, wanted)),
            calls=(call, call),
            tools=(tool, tool),
        ),
        Sample(id="several", expected=Expectation(calls=several), calls=several_called),
        Sample(
            id="unparsable",
            expected=both,
            calls=(ToolCall(name="", arguments=None, raw_arguments="{"),),
        ),
        Sample(id="odd", expected=Expectation(calls=(strange,)), calls=(call,), recorded=odd),
        Sample(
            id="odd calls",
            expected=both,
            calls=(ToolCall(name="search", arguments=odd),),
            tools=(broken_tool,),
        ),
        Sample(
            id="open",
            expected=Expectation(calls=(ruled, anything), alternatives=((wanted,), ())),
            calls=(call,),
        ),
        Sample(
            id="labels",
            expected=Expectation(label="no such label"),
            label="\ud800",
            text="\x00" * 10,
        ),
        Sample(
            id="recorded",
            recorded={"reward": "1", "score": [], "reward_info": None},
            run="a",
            model="",
        ),
        Sample(
            id="talk",
            run=10**20,
            input=("one", ""),
            turns=(
                (),
                (Message(role="", content=[{"type": "image"}, None, "t"], tool_calls=(call,)),),
            ),
            facets={"x": None},
            usage=Usage(input_tokens=0),
            agent_usage="?",
            state=odd,
            trace={"trace_id": "\ud800"},
            ended="limit:turns",
            source=Source(file="f", ordinal=3, line=4),
            expected=Expectation(text=("a",), plan={"workflow_1": None}),
            plan=["?"],
        ),
        Sample(
            id="failed",
            status=Status.FAILED,
            error=Fault(category="target", code="x"),
            expected=both,
        ),
        Sample(id="missing", status=Status.MISSING, expected=both),
        replace(bare, id="stranger", native=object()),
    ]


def random_grades(seed: int = 0, count: int = 60) -> list[tuple[Key, Grade]]:
    """Return seeded keys and grades of every outcome, with what families put into them."""
    rng = random.Random(seed)  # noqa: S311 - test data
    labels = ["direct", "tool_call", "request_for_info", "cannot_answer", "invalid"]
    found = []
    for ordinal in range(count):
        outcome = rng.choice(
            [Outcome.GRADED] * 5 + [Outcome.SKIPPED, Outcome.FAILED, Outcome.MISSING]
        )
        score = (
            rng.choice([0.0, 1.0, rng.random(), 1e-17, 0.1]) if outcome is Outcome.GRADED else None
        )
        key = Key(
            id=f"t{rng.randrange(8)}",
            model=rng.choice([None, "m1", "m2"]),
            run=rng.choice([None, 0, 1, 2]),
            ordinal=ordinal,
            facets={"domain": rng.choice("ab")},
        )
        item = Item(
            id="0",
            score=score or 0.0,
            parts={"argument_similarity": rng.random()},
            counts={"tp": 1},
        )
        expected_calls = rng.randrange(3)
        grade = Grade(
            outcome=outcome,
            score=score,
            passed=rng.choice([None, score == 1.0]) if score is not None else None,
            counts={
                "expected_calls": expected_calls,
                "called": min(expected_calls, rng.randrange(3)),
            },
            parts={"reward": rng.choice([0.0, 1.0]), "tool_selection": rng.random()}
            if score is not None
            else {},
            label=rng.choice(labels),
            gold=rng.choice(labels[:4]),
            items=(item,) if score is not None else (),
            fault=Fault(category="data", code="x") if outcome is Outcome.FAILED else None,
            reasons=(Reason(code="missing_call", subject="f"),) if score == 0.0 else (),
        )
        found.append((key, grade))
    return found
