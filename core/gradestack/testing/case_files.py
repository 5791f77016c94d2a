"""Tables of inputs, and what is expected of them, in YAML files."""

from __future__ import annotations

import copy
import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import yaml

from gradestack.copies.files import Folder
from gradestack.errors import ConfigError, GradestackError
from gradestack.registry import Registry, discover
from gradestack.runner import grade_suite
from gradestack.suites.document import Document, yaml_data
from gradestack.suites.resolve import resolve
from gradestack.suites.spec import RunOptions

TOLERANCE = 1e-12
_EXPECTED = frozenset({"grades", "samples", "figures", "refused"})


@attrs.frozen(kw_only=True)
class Case:
    """One case of a file; as text its file and name."""

    file: str
    name: str
    data: Mapping[str, Any] = attrs.field(repr=False, eq=False)

    def __str__(self) -> str:
        return f"{self.file}: {self.name}"


def cases(folder: str | Path) -> list[Case]:
    """Return the cases of all ``.yaml`` files of a folder and those below, for parametrised tests.

    A file holds a list of cases. A case is a suite that has its records in it:

    - ``name``: the rule it stands for, once in a file;
    - ``records``: JSON Lines, mappings or text; or ``files``: name -> text, list of lines
      (``.jsonl``), or any JSON;
    - ``grader``: name, or ``kind`` and options; ``reader`` (``jsonl`` where there are ``records``),
      ``dataset`` (a list is written as records are), and any other key of a suite;
    - ``grades``: what every grade is, or a list with an entry for each: values by place in a grade
      of results.jsonl, such as ``counts`` (all of them), ``counts.called``, ``reasons.*.code``.
      What is not there is null or empty, and null is the score of what was not graded;
    - ``samples``: the same, by place in the row, such as ``predicted.calls.*.name``;
    - ``figures``: values by place, such as ``mean.mean``;
    - ``refused``: part of the message with which the suite or its data is refused, in place of the
      three;
    - ``bad_records``: how many records no sample could be made of, or a list: their ``reason``,
      ``line``, ``file``.

    With ``graders`` or a stack in the place of ``grader``, ``grades`` and ``figures`` are below the
    graders' keys.

    Raises:
        ConfigError: A file holds something else, or a case that expects nothing.
    """
    folder = Path(folder)
    files = sorted(folder.rglob("*.yaml"))
    all_cases = [case for path in files for case in _cases(path, folder)]
    if not all_cases:
        raise ConfigError(f"{folder}: holds no case")
    return all_cases


def _cases(path: Path, folder: Path) -> Iterator[Case]:
    """Yield the cases of a file, each checked to expect something."""
    file = path.relative_to(folder).as_posix()
    try:
        content = _read_yaml(path.read_text(encoding="utf-8"))
    except Exception as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from error
    names = set[str]()
    for number, data in enumerate(content if isinstance(content, list) else [content], 1):
        name = None
        if isinstance(data, Mapping):
            name = data.get("name")
        if not isinstance(name, str) or name in names:
            raise ConfigError(f"{file}: case {number} needs a name of its own")
        names.add(name)
        own_data = {key: data[key] for key in data if key != "name"}
        case = Case(file=file, name=name, data=own_data)
        problem = _flaw_of(data)
        if problem:
            raise ConfigError(f"{case}: {problem}")
        yield case


def _read_yaml(text: str) -> Any:
    """Return the value of a YAML text, by the fast loader where it reads all of it."""
    loader = getattr(yaml, "CSafeLoader", None)
    if loader is None or "\\ud" in text.lower():  # it refuses lone surrogates
        return yaml_data(text)
    return yaml.load(text, loader)  # noqa: S506


def _flaw_of(data: Mapping[str, Any]) -> str:
    """Return the problem of a case that expects nothing or has no input; "" of a good one."""
    expected = {key for key in (*_EXPECTED, "bad_records") if data.get(key)}
    if not expected or expected > {"refused"}:
        return "must expect something: grades, samples, figures, bad records, a refusal"
    if ("records" in data) == ("files" in data):
        return "needs either records or files"
    has_lists = isinstance(data.get("grades"), list)
    figures = data.get("figures")
    has_lists |= isinstance(figures, list)
    if "grader" not in data and has_lists:
        return "without grader, what is expected belongs below the graders' keys"
    return ""


def check_case(case: Case, *, registry: Registry | None = None) -> None:
    """Check one of the ``cases`` of a folder.

    Raises:
        AssertionError: A line for each difference: file, case, place, what was expected and what it
            is.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="gradestack-case-") as folder:
            registry = registry or discover()
            differences = list(_differences(case, Path(folder), registry))
    except GradestackError as error:
        refused = case.data.get("refused")
        if refused is None:
            differences = [f"refused: {error}"]
        elif str(refused) in str(error):
            differences = []
        else:
            differences = [f"refused: expected {refused!r}, got {error}"]
    assert not differences, "\n".join(f"{case}: {difference}" for difference in differences)


def _differences(case: Case, folder: Path, registry: Registry) -> Iterator[str]:
    """Run a case in an empty folder and yield what is not as expected."""
    data = copy.deepcopy(dict(case.data))
    expected = {key: data.pop(key, None) for key in sorted(_EXPECTED)}
    bad_records = data.pop("bad_records", 0)
    if "grader" in data:
        grader = data.pop("grader")
        data["graders"] = {"grader": grader}
        for kind in ("grades", "figures"):
            expected[kind] = {"grader": expected[kind]}
    _write_files(data, folder)
    data |= {"name": "case", "reports": []}
    options = RunOptions(registry=registry)
    document = Document(data=data, origin="case")
    base = Folder(folder, is_open=True)
    suite = resolve(document, options, base)
    with grade_suite(suite, options) as report:
        rows = [*report.rows()]
        if expected["refused"] is not None:
            yield f"refused: expected {expected['refused']!r}, got {len(rows)} rows"
        yield from _compare_bad_records(bad_records, report.summary["bad_records"])
        yield from _compare_rows("sample", expected["samples"], rows, rows)
        grades = expected["grades"] or {}
        figures = expected["figures"] or {}
        for key in report.states:
            aggregates = report.aggregates.get(key)
            yield from _compare(f"figures of {key}", figures.pop(key, None) or {}, aggregates)
            actual = [_ungraded_without_score(row["grades"][key]) for row in rows]
            yield from _compare_rows(f"grade of {key}", grades.pop(key, None), rows, actual)
        for key in (*grades, *figures):
            yield f"no grader has the key {key!r}"


def _write_files(data: dict[str, Any], folder: Path) -> None:
    """Write the files of a case, and name them in its suite."""
    files = data.pop("files", {})
    if "records" in data:
        files["records.jsonl"] = data.pop("records")
        data.setdefault("reader", "jsonl")
    data.setdefault("target", {"paths": list(files)})
    if isinstance(data.get("dataset"), list):
        files["dataset.jsonl"] = data["dataset"]
        data["dataset"] = "dataset.jsonl"
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        file_text = _file_text(name, content)
        path.write_text(file_text, encoding="utf-8")


def _file_text(name: str, content: Any) -> str:
    if name.endswith(".jsonl") and isinstance(content, list):
        lines = [_file_text("", line) for line in content]
        return "".join(f"{line}\n" for line in lines)
    if isinstance(content, str):
        return content
    return json.dumps(content)


def _ungraded_without_score(grade: Mapping[str, Any]) -> Mapping[str, Any]:
    if grade["state"] == "graded":
        return grade
    return {**grade, "score": None}


def _compare_bad_records(expected: Any, actual: Mapping[str, Any]) -> Iterator[str]:
    """Yield differences of bad records: of their number, or of each in a list."""
    number = len(expected) if isinstance(expected, list) else expected
    listed = actual["listed"]
    if actual["count"] != number:
        yield f"bad_records: expected {expected}, got {actual['count']}: {listed[:1]}"
    entries = expected if isinstance(expected, list) else []
    for position, (places, entry) in enumerate(zip(entries, listed, strict=False)):
        yield from _compare(f"bad_records[{position}]", places, entry)


def _compare_rows(
    what: str, expected: Any, rows: Sequence[Any], actual: Sequence[Any]
) -> Iterator[str]:
    """Yield differences of samples or grades from a list of expected ones, or from one for all."""
    number = len(rows)
    entries = [expected or {}] * number
    if isinstance(expected, list):
        entries = expected
    if len(entries) != number or (expected and not rows):
        yield f"{what}: expected {len(entries)}, got {number}"
    for row, places, data in zip(rows, entries, actual, strict=False):
        sample = row["sample"]["id"]
        yield from _compare(f"{what} {sample!r}", places, data)


def _compare(where: str, expected: Any, data: Any) -> Iterator[str]:
    """Yield a text for each path at which data differs from the expected value."""
    if not isinstance(expected, Mapping):
        yield f"{where}: what is expected must be a mapping, got {expected!r}"
        return
    for path, value in expected.items():
        actual = _value_at(data, str(path))
        if not _is_same(value, actual):
            yield f"{where}: {path}: expected {value!r}, got {actual!r}"


def _value_at(data: Any, path: str) -> Any:
    """Return the value at a dotted path; ``*`` stands for every entry of a list."""
    if not path:
        return data
    step, _, rest = path.partition(".")
    if isinstance(data, list):
        if step == "*":
            return [_value_at(entry, rest) for entry in data]
        data = {str(position): entry for position, entry in enumerate(data)}
    if not isinstance(data, dict):
        return None
    if path in data:
        return data[path]
    return _value_at(data.get(step), rest)


def _is_same(expected: Any, actual: Any) -> bool:
    """Return whether two values are equal, floats nearly; what is empty may be absent."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        is_same_shape = expected.keys() == actual.keys()
        return is_same_shape and all(_is_same(expected[key], actual[key]) for key in expected)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(_is_same, expected, actual))
    kinds = {type(expected), type(actual)}
    if kinds in ({float}, {float, int}):
        are_nan = math.isnan(expected) and math.isnan(actual)
        is_close = math.isclose(expected, actual, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        return are_nan or is_close
    if actual is None:
        return expected in (None, "", [], {})
    return len(kinds) == 1 and bool(expected == actual)
