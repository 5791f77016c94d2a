"""Tables of inputs, and what is expected of them, in YAML files."""

from __future__ import annotations

import copy
import json
import math
import tempfile
from collections.abc import Iterator, Mapping
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

    With ``graders`` or a stack in the place of ``grader``, ``grades`` and ``figures`` stand below
    the graders' keys.

    Raises:
        ConfigError: A file holds something else, or a case that expects nothing.
    """
    folder = Path(folder)
    found = [case for path in sorted(folder.rglob("*.yaml")) for case in _cases(path, folder)]
    if not found:
        raise ConfigError(f"{folder}: holds no case")
    return found


def _cases(path: Path, folder: Path) -> Iterator[Case]:
    file, names = path.relative_to(folder).as_posix(), set[str]()
    try:
        text = path.read_text(encoding="utf-8")
        quick = (
            None if "\\ud" in text.lower() else getattr(yaml, "CSafeLoader", None)
        )  # refuses lone surrogates
        content = yaml.load(text, quick) if quick else yaml_data(text)  # noqa: S506
    except Exception as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from error
    for number, data in enumerate(content if isinstance(content, list) else [content], 1):
        name = data.get("name") if isinstance(data, Mapping) else None
        if not isinstance(name, str) or name in names:
            raise ConfigError(f"{file}: case {number} needs a name of its own")
        names.add(name)
        case = Case(
            file=file, name=name, data={key: each for key, each in data.items() if key != "name"}
        )
        expected = {key for key in (*_EXPECTED, "bad_records") if data.get(key)}
        if not expected or expected > {"refused"}:
            raise ConfigError(
                f"{case}: must expect something: grades, samples, figures, bad records, a refusal"
            )
        if len(data.keys() & {"records", "files"}) != 1:
            raise ConfigError(f"{case}: needs either records or files")
        if "grader" not in data and any(
            isinstance(data.get(key), list) for key in ("grades", "figures")
        ):
            raise ConfigError(
                f"{case}: without grader, what is expected stands below the graders' keys"
            )
        yield case


def check_case(case: Case, *, registry: Registry | None = None) -> None:
    """Check one of the ``cases`` of a folder.

    Raises:
        AssertionError: A line for each difference: file, case, place, what was expected and what it
            is.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="gradestack-case-") as place:
            differences = list(_differences(case, Path(place), registry or discover()))
    except GradestackError as error:
        refused = case.data.get("refused")
        wanted = "" if refused is None else f"expected {refused!r}, got "
        is_meant = bool(wanted) and str(refused) in str(error)
        differences = [] if is_meant else [f"refused: {wanted}{error}"]
    assert not differences, "\n".join(f"{case}: {each}" for each in differences)


def _differences(case: Case, place: Path, registry: Registry) -> Iterator[str]:  # noqa: C901
    """Run a case in an empty folder and yield what is not as expected."""
    data = copy.deepcopy(dict(case.data))
    expected = {key: data.pop(key, None) for key in sorted(_EXPECTED)}
    bad, files = data.pop("bad_records", 0), data.pop("files", {})
    if "records" in data:
        files["records.jsonl"] = data.pop("records")
        data.setdefault("reader", "jsonl")
    data.setdefault("target", {"paths": list(files)})
    if isinstance(data.get("dataset"), list):
        files["dataset.jsonl"], data["dataset"] = data["dataset"], "dataset.jsonl"
    if "grader" in data:
        data["graders"] = {"grader": data.pop("grader")}
        expected |= {what: {"grader": expected[what]} for what in ("grades", "figures")}
    data |= {"name": "case", "reports": []}
    for name, content in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(_file_text(name, content), encoding="utf-8")
    options = RunOptions(registry=registry)
    with grade_suite(
        resolve(Document(data=data, origin="case"), options, Folder(place, is_open=True)), options
    ) as report:
        found, rows = report.summary["bad_records"], list(report.rows())
        if expected["refused"] is not None:
            yield f"refused: expected {expected['refused']!r}, got {len(rows)} rows"
        if found["count"] != (len(bad) if isinstance(bad, list) else bad):
            yield f"bad_records: expected {bad}, got {found['count']}: {found['listed'][:1]}"
        for number, places in enumerate(bad[: found["count"]] if isinstance(bad, list) else ()):
            yield from _compared(f"bad_records[{number}]", places, found["listed"][number])
        columns: dict[str, tuple[Any, list[Any]]] = {"sample": (expected["samples"], rows)}
        for key in report.states:
            held = [row["grades"][key] for row in rows]
            grades: list[Any] = [
                each if each["state"] == "graded" else {**each, "score": None} for each in held
            ]
            wanted, figures = (
                (expected[what] or {}).pop(key, None) for what in ("grades", "figures")
            )
            columns[f"grade of {key}"] = (wanted, grades)
            yield from _compared(f"figures of {key}", figures or {}, report.aggregates.get(key))
        unknown = [key for what in ("grades", "figures") for key in expected[what] or {}]
        yield from (f"no grader has the key {key!r}" for key in unknown)
        for what, (wanted, actual) in columns.items():
            several = wanted if isinstance(wanted, list) else [wanted or {}] * len(rows)
            if len(several) != len(rows) or (wanted and not rows):
                yield f"{what}: expected {len(several)}, got {len(rows)}"
            for row, places, each in zip(rows, several, actual, strict=False):
                yield from _compared(f"{what} {row['sample']['id']!r}", places, each)


def _file_text(name: str, content: Any) -> str:
    if name.endswith(".jsonl") and isinstance(content, list):
        return "".join(f"{_file_text('', each)}\n" for each in content)
    return content if isinstance(content, str) else json.dumps(content)


def _compared(where: str, expected: Any, data: Any) -> Iterator[str]:
    if not isinstance(expected, Mapping):
        yield f"{where}: what is expected must be a mapping, got {expected!r}"
        return
    for place, value in expected.items():
        actual = _at(data, str(place))
        if not _same(value, actual):
            yield f"{where}: {place}: expected {value!r}, got {actual!r}"


def _at(data: Any, place: str) -> Any:
    if not place:
        return data
    step, _, rest = place.partition(".")
    if isinstance(data, list):
        if step == "*":
            return [_at(each, rest) for each in data]
        return _at(data[int(step)], rest) if step.isdecimal() and int(step) < len(data) else None
    if not isinstance(data, dict):
        return None
    return data[place] if place in data else _at(data.get(step), rest)


def _same(expected: Any, actual: Any) -> bool:
    """Return whether two values are equal, floats nearly; what is empty may be absent."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(
            _same(each, actual[key]) for key, each in expected.items()
        )
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(_same, expected, actual))
    if {type(expected), type(actual)} in ({float}, {float, int}):
        both_nan = math.isnan(expected) and math.isnan(actual)
        return both_nan or math.isclose(expected, actual, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    if actual is None:
        return expected in (None, "", [], {})
    return type(expected) is type(actual) and bool(expected == actual)
