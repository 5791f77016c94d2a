"""Files of recorded results: where they lie, and what their names say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from gradestack import ABSENT, DataError, compile_later, is_run
from gradestack.jsonio import loads, read_regular
from gradestack_plugins.letta.records import Task
from gradestack_plugins.readers.declared import convert_record

RESULTS, SUITE = "results.jsonl", "suite.json"
_RUN = compile_later(r"run_(\d{1,18})(?:\.jsonl|/.*)?$")


class ResultFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of result lines."""

    path: Path
    relative: str = ""
    """Path below the directory given; "" when the file itself was given."""
    folder: str = ""
    """Name of the file or folder that is named by a model, where the layout has such; else ""."""

    @property
    def model(self) -> str | None:
        """The model that the layout names; None without one."""
        return None if self.folder in ("", "default") else self.folder

    @property
    def run(self) -> int | None:
        """N of a file ``run_N.jsonl`` or of one in a folder ``run_N``, else None."""
        for name in (self.path.stem, self.path.absolute().parent.name):
            numbered = _RUN.fullmatch(name)
            if numbered is not None:
                return int(numbered[1])
        return None


def result_files(path: Path) -> list[ResultFile]:
    """Return the files of result lines of an output directory, runs by number, or the file itself.

    gradestack's own ``results.jsonl`` holds all runs, whatever stands beside it.
    """
    if not path.is_dir():
        model_of_file = _model_of_file(path.absolute())
        return [ResultFile(path=path, folder=model_of_file)]
    if (path / SUITE).is_file():
        return list(_files_by_model(path))
    single = path / RESULTS
    paths = path.glob(f"run_*/{RESULTS}")
    runs = _runs(path, paths)
    if single.is_file() and (not runs or is_run(path)):
        return [ResultFile(path=single, relative=RESULTS)]
    return runs


def _model_of_file(path: Path) -> str:
    folder = path.parent
    match = _RUN.fullmatch(path.stem)
    if match and (folder.parent / SUITE).is_file():
        return folder.name
    if path.name != RESULTS and (folder / SUITE).is_file():
        return path.stem
    return ""


def _files_by_model(path: Path) -> Iterator[ResultFile]:
    for file in sorted(path.glob("*.jsonl")):
        yield ResultFile(path=file, relative=file.name, folder=file.stem)
    for folder in sorted(path.glob("*/")):
        paths = folder.glob("run_*.jsonl")
        yield from _runs(path, paths, folder.name)


def _runs(path: Path, files: Iterable[Path], folder: str = "") -> list[ResultFile]:
    """Return those of the files below a directory that are of a run, by its number."""
    names = {file: file.relative_to(path).as_posix() for file in files}
    results = [ResultFile(path=file, relative=names[file], folder=folder) for file in names]
    runs = [file for file in results if file.run is not None]
    return sorted(runs, key=lambda file: (file.run or 0, file.relative))


class _Suite(msgspec.Struct):
    samples: list[Task] | dict[str, Task] | None = None


def suite_tasks(path: Path) -> dict[str, Task]:
    """Return the tasks of a ``suite.json`` by id, for results that only name theirs.

    {} where there is none.

    Raises:
        DataError: It cannot be read.
    """
    if path.is_dir():
        folders = [path]
    else:
        parents = list(path.absolute().parents)
        folders = parents[:2]
    file = next((folder / SUITE for folder in folders if (folder / SUITE).is_file()), None)
    if file is None:
        return {}
    try:
        document = loads(read_regular(file))
        suite, _ = convert_record(document, _Suite)
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: cannot be read: {error}") from error
    if isinstance(suite.samples, dict):
        return suite.samples
    tasks = suite.samples or []
    return {str(task.sample_id if task.id is None else task.id): task for task in tasks}


def unwrapped(record: Any) -> Any:
    """Return the result of a line: ``result`` where its ``type`` is so, else the line itself.

    ABSENT of a line of another type.
    """
    if not isinstance(record, dict) or not isinstance(record.get("type"), str):
        return record
    if record["type"] == "result":
        return record.get("result")
    return ABSENT
