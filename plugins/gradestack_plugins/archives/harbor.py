"""Reader ``harbor``: jobs of Harbor, a folder with a folder for each trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Final

from typing_extensions import override

from gradestack import BadRecord, DataError, Input, Inputs, RecordFile, Sample, Shard, replace
from gradestack.jsonio import as_map, loads, read_regular
from gradestack_plugins.archives.atif import Atif, is_trial

_SURE: Final = 0.96
_RESULT: Final = "result.json"
_TRAJECTORY: Final = Path("agent", "trajectory.json")
_PLACES: Final = (_RESULT, f"*/{_RESULT}", f"*/*/{_RESULT}")
"""Patterns of results in a trial, in a job, and in a folder of jobs."""
_LOOKED_AT: Final = 20


class Harbor(Atif):
    """Reads a job of Harbor, or a folder of jobs: every trial is a run.

    The trajectory of the agent is read where it is in ATIF, as by ``atif``. Other files in the
    folder of a trial are not read. A job that counts more trials than there are is named.
    """

    version = "1"
    takes_directories: ClassVar[bool] = True

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        if path.is_dir() and next(_results_below(path, _LOOKED_AT), None):
            return _SURE
        return 0.0

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        for folder in inputs.data:
            if not folder.path.is_dir():
                yield from super().files(replace(inputs, data=(folder,)), index)
                continue
            results = _results(folder)
            places = [_place_of(result).relative_to(folder.path) for result in results]
            trials = tuple(folder.below(file_path.as_posix()) for file_path in places)
            planned = super().files(replace(inputs, data=trials), index)
            for file_path, file in zip(places, planned, strict=True):
                extra = [*file.extra, file_path.as_posix()]
                yield RecordFile(input=folder, file=file.input, ranges=file.ranges, extra=extra)

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        stem, is_whole, *places = shard.extra
        if places:
            first_place = places[0]
            shard = replace(shard, input=shard.input.below(first_place), extra=[stem, is_whole])
        yield from super().read(shard, index)

    def remarks(self, inputs: Inputs) -> Iterator[str]:
        """Yield the jobs that count more trials than there are."""
        for folder in inputs.data:
            results = _results(folder) if folder.path.is_dir() else []
            trials = Counter(result.parent.parent for result in results)
            for job, count in trials.items():
                path = job / _RESULT
                document = as_map(_document(path))
                counted = document.get("n_total_trials")
                if isinstance(counted, int) and counted > count:
                    what = f"the job {job.name} counts {counted} trials, {count} are there"
                    yield f"{folder.shown}: {what}"


def _results(folder: Input) -> list[Path]:
    """Return the results of all trials below a folder, in order.

    Raises:
        DataError: The folder holds no trial.
    """
    results = sorted(_results_below(folder.path))
    if not results:
        raise DataError(f"{folder.shown}: no trial of Harbor: TRIAL/{_RESULT} is expected")
    return results


def _results_below(path: Path, most: int | None = None) -> Iterator[Path]:
    for pattern in _PLACES:
        for result in islice(path.glob(pattern), most):
            if is_trial(as_map(_document(result))):
                yield result


def _place_of(result: Path) -> Path:
    """Return the file a trial is read from: its trajectory, or its result where there is none."""
    trajectory = result.parent / _TRAJECTORY
    document = as_map(_document(trajectory))
    is_read = Atif.is_record(document)
    return trajectory if is_read else result


def _document(path: Path) -> Any:
    with suppress(OSError, ValueError):
        return loads(read_regular(path))
    return None
