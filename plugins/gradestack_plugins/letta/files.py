"""Files of recorded results: where they lie, and what their names say."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from gradestack import ABSENT, DataError, is_run, load_report
from gradestack.jsonio import JsonProblem, as_list, as_map, loads, read_regular

RESULTS, SUITE = "results.jsonl", "suite.json"
_RUN = re.compile(r"run_(\d{1,18})(?:\.jsonl|/.*)?$")


class ResultFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of result lines."""

    path: Path
    relative: str = ""
    """Path below the directory given; "" when the file itself was given."""
    model: str | None = None
    """From the file's or folder's name, where the layout names files by model."""

    @property
    def run(self) -> int | None:
        """N of a file ``run_N.jsonl`` or of one in a folder ``run_N``, else None."""
        for name in (self.path.stem, self.path.absolute().parent.name):
            if found := _RUN.fullmatch(name):
                return int(found[1])
        return None


def result_files(path: Path) -> list[ResultFile]:
    """Return the files of result lines of an output directory (or the file itself), runs in numeric
    order.
    """
    if not path.is_dir():
        parent = path.absolute().parent
        by_model = _RUN.fullmatch(path.stem) is not None and (parent.parent / SUITE).is_file()
        beside = path.name != RESULTS and (parent / SUITE).is_file()
        model = parent.name if by_model else path.stem if beside else None
        return [ResultFile(path=path, model=_named(model))]
    if (path / SUITE).is_file():
        return list(_by_model(path))
    single = path / RESULTS
    if single.is_file() and is_run(path):
        return [ResultFile(path=single, relative=RESULTS)]
    runs = _runs(path, f"run_*/{RESULTS}", None)
    return runs or ([ResultFile(path=single, relative=RESULTS)] if single.is_file() else [])


def _named(model: str | None) -> str | None:
    return None if model == "default" else model


def _by_model(path: Path) -> Iterator[ResultFile]:
    for file in sorted(path.glob("*.jsonl")):
        yield ResultFile(path=file, relative=file.name, model=_named(file.stem))
    for folder in sorted(path.glob("*/")):
        for run in _runs(folder, "run_*.jsonl", folder.name):
            yield msgspec.structs.replace(run, relative=f"{folder.name}/{run.relative}")


def _runs(folder: Path, pattern: str, model: str | None) -> list[ResultFile]:
    """Return the files of runs in a folder, by number."""
    named = ((path.relative_to(folder).as_posix(), path) for path in folder.glob(pattern))
    files = [
        ResultFile(path=path, relative=name, model=_named(model))
        for name, path in named
        if _RUN.match(name)
    ]
    return sorted(files, key=lambda file: (file.run or 0, file.relative))


def check_rows(path: Path) -> None:
    """Refuse a run of ours that lost rows, or got some, or whose rows hold no conversation."""
    run = path if path.is_dir() else path.parent
    try:
        report = load_report(run) if is_run(run) else None
    except DataError:  # whatever is missing or damaged beside the rows is not needed
        return
    if report is None or not report.has_rows:
        return
    if report.header.get("rows") == "slim":
        raise DataError(
            f"{path}: its rows hold no conversation (rows: slim, of an earlier gradestack)",
            "grade the input of that run instead",
        )
    if path.is_dir():
        deque(report.lines(), maxlen=0)  # which counts them


def suite_samples(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return the samples of a ``suite.json`` by id, for results that only name theirs.

    {} where there is none.
    """
    folder = path if path.is_dir() else path.absolute().parent
    places = [folder] if path.is_dir() else [folder, folder.parent]
    file = next((place / SUITE for place in places if (place / SUITE).is_file()), None)
    if file is None:
        return {}
    try:
        samples = as_map(loads(read_regular(file))).get("samples")
    except (OSError, JsonProblem) as error:
        if not path.is_dir():  # it need not belong to the file at all
            return {}
        raise DataError(f"{file}: cannot be read: {error}") from error
    if not isinstance(samples, Mapping):
        listed = [sample for sample in as_list(samples) if isinstance(sample, Mapping)]
        samples = {sample.get("id", sample.get("sample_id")): sample for sample in listed}
    return {str(key): sample for key, sample in samples.items() if isinstance(sample, Mapping)}


def unwrapped(record: Any) -> Any:
    """Return the result of a line.

    ``result`` of ``{"type": "result", "result": ...}``, else the line itself.
    """
    if isinstance(record, Mapping) and isinstance(record.get("type"), str):
        return record.get("result") if record["type"] == "result" else ABSENT
    return record
