"""Where result lines lie in an output directory, and how they are wrapped."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from gradestack import ABSENT, DataError, Input, is_run, load_report
from gradestack.jsonio import JsonProblem, loads, read_regular

RESULTS, SUITE = "results.jsonl", "suite.json"
_RUN = re.compile(r"run_(\d{1,18})")


@attrs.frozen(kw_only=True)
class ResultFile:
    """One file of result lines."""

    path: Path
    relative: str = ""
    """Path below the directory given; "" when the file itself was given."""
    run: int | None = None
    """From ``run_N`` in the folder's or file's name."""
    model: str | None = None
    """From the file's or folder's name, where the layout names files by model."""


def run_number(path: Path) -> int | None:
    """Return N of a file ``run_N.jsonl`` or of one in a folder ``run_N``, else None."""
    for name in (path.stem, path.absolute().parent.name):
        if found := _RUN.fullmatch(name):
            return int(found[1])
    return None


def result_files(path: Path) -> list[ResultFile]:
    """Return the files of result lines of an output directory (or the file itself), runs in numeric order.

    A directory with ``suite.json`` has ``MODEL.jsonl`` and ``MODEL/run_N.jsonl``. One of gradestack's own has all runs
    in ``results.jsonl``; any other has ``run_N/results.jsonl`` or ``results.jsonl``.
    """
    if not path.is_dir():
        parent = path.absolute().parent
        by_model = _RUN.fullmatch(path.stem) is not None and (parent.parent / SUITE).is_file()
        beside = path.name != RESULTS and (parent / SUITE).is_file()
        model = parent.name if by_model else path.stem if beside else None
        return [ResultFile(path=path, run=run_number(path), model=_model(model))]
    if (path / SUITE).is_file():
        return _by_model(path)
    single = [ResultFile(path=path / RESULTS, relative=RESULTS, run=run_number(path / RESULTS))]
    if (path / RESULTS).is_file() and is_run(path):
        return single
    several = [each for each in path.glob(f"run_*/{RESULTS}") if _RUN.fullmatch(each.parent.name)]
    if several:
        found = [
            ResultFile(path=each, relative=f"{each.parent.name}/{RESULTS}", run=run_number(each)) for each in several
        ]
        return sorted(found, key=_order)
    return single if (path / RESULTS).is_file() else []


def check_rows(path: Path) -> None:
    """Refuse a run directory of gradestack's own that has lost rows since, or got some.

    Without its summary, and as a file alone, results are taken as they are.

    Raises:
        DataError: Its rows are not the samples its summary is of.
    """
    if not (path.is_dir() and is_run(path)):
        return
    try:
        report = load_report(path)
    except DataError:  # whatever is missing or damaged beside the rows is not needed
        return
    if report.has_rows:
        report.places()


def place_of(given: Input, relative: str) -> Input:
    """Return a file of an input, by its path below the directory given."""
    if not relative:
        return given
    return Input(path=given.path / relative, name=given.name, shown=f"{given.shown}/{relative}")


def _order(file: ResultFile) -> tuple[int, str]:
    return (file.run or 0, file.relative)


def _model(name: str | None) -> str | None:
    return None if name == "default" else name


def _by_model(path: Path) -> list[ResultFile]:
    found = [
        ResultFile(path=each, relative=each.name, model=_model(each.stem)) for each in sorted(path.glob("*.jsonl"))
    ]
    for folder in sorted(each for each in path.iterdir() if each.is_dir()):
        runs = [
            ResultFile(
                path=each,
                relative=f"{folder.name}/{each.name}",
                run=run_number(each),
                model=_model(folder.name),
            )
            for each in folder.glob("run_*.jsonl")
            if _RUN.fullmatch(each.stem)
        ]
        found += sorted(runs, key=_order)
    return found


def suite_samples(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return the samples of a ``suite.json`` by id, for results that only name theirs; {} where there is none.

    Raises:
        DataError: The file cannot be read or is not JSON.
    """
    folder = path if path.is_dir() else path.absolute().parent
    places = [folder] if path.is_dir() else [folder, folder.parent]
    file = next((place / SUITE for place in places if (place / SUITE).is_file()), None)
    if file is None:
        return {}
    try:
        content = loads(read_regular(file))
    except (OSError, JsonProblem) as error:
        if not path.is_dir():  # it need not belong to the file at all
            return {}
        msg = f"{file}: cannot be read: {error}"
        raise DataError(msg) from error
    samples = content.get("samples") if isinstance(content, Mapping) else None
    if isinstance(samples, Mapping):
        return {str(key): each for key, each in samples.items() if isinstance(each, Mapping)}
    entries = samples if isinstance(samples, list) else []
    return {str(each.get("id", each.get("sample_id"))): each for each in entries if isinstance(each, Mapping)}


def unwrapped(record: Any) -> Any:
    """Return the result of a line: ``result`` of ``{"type": "result", "result": ...}``, else the line itself.

    ABSENT for a line of another type, such as a header or a summary.
    """
    if isinstance(record, Mapping) and isinstance(record.get("type"), str):
        return record.get("result") if record["type"] == "result" else ABSENT
    return record
