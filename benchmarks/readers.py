"""What does reading other formats take, against merely parsing the same files?

    python benchmarks/readers.py [--records N] [--rounds N]

Reading only: the reader plans its files, every shard is read, and samples are dropped. The
reference is the standard library's ``json.loads``, of every line of a JSON Lines file, else of the
whole file. Both collect garbage as seldom as a run does. In turns, each in a fresh process pinned
to one core, on the files of ``formats.py``, and on those of ``case_files.py`` for sessions, traces
and histories.
``jsonl``, gradestack's own form, is there to be compared with.
"""

from __future__ import annotations

import json
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import case_files
import jobs
import workload
from formats import FORMATS, Files
from frame import Options, Table, cell, child, failures, main, one_core, ratio, reached, take_turns

from gradestack import BadRecord, Input, Inputs, discover
from gradestack.interpreter import collected_seldom

OWN = "jsonl"
RECORDS = 10_000


def own(folder: Path, number: int, seed: int) -> Files:
    """Write the usual recording."""
    path = folder / "recording.jsonl"
    workload.write(path, number, seed)
    return Files(path)


WRITERS = {**FORMATS, **case_files.WRITERS, OWN: own}
BOUNDS = dict.fromkeys(case_files.WRITERS, (0.12, 0.2))
"""What is to be reached, and the aim, where they are not those of most formats."""


def parsed(files: Files) -> int:
    """Decode all files with the standard library, and return how many values that were."""
    number = 0
    for path in files.all():
        if path.suffix == ".jsonl" or path.name.startswith("BFCL_"):
            with path.open("rb") as file:
                for line in file:
                    json.loads(line)
                    number += 1
        else:
            json.loads(path.read_bytes())
            number += 1
    return number


def read(reader: Any, files: Files) -> int:
    """Read all samples, and return how many they were.

    Raises:
        ValueError: A record is bad: the files are not of the format.
    """
    dataset = files.dataset
    inputs = Inputs(
        data=(Input(path=files.data, name=files.data.stem, shown=files.data.name),),
        dataset=None
        if dataset is None
        else Input(path=dataset, name=dataset.stem, shown=dataset.name),
    )
    number, index = 0, reader.index(inputs)
    for shard in reader.plan(inputs, index):
        for sample in reader.read(shard, index):
            if isinstance(sample, BadRecord):
                raise ValueError(f"{type(reader).__name__}: {sample.reason}")
            number += 1
    return number


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Return what parsing or reading a format's files takes."""
    jobs.pin(job["cores"])
    name = job["format"]
    reader = discover().load("reader", name)()

    def once(files: Files) -> int:
        with collected_seldom():
            return read(reader, files) if job["read"] else parsed(files)

    with tempfile.TemporaryDirectory() as temporary:
        once(WRITERS[name](Path(temporary), jobs.WARM_UP, -1))
    data, dataset = job["files"]
    return jobs.timed(partial(once, Files(Path(data), dataset and Path(dataset))))


def measure(options: Options) -> Table:
    """Return the table."""
    written, items = {}, {}
    for name, write in WRITERS.items():
        folder = options.place / f"{name}-{options.records}-{options.seed}"
        folder.mkdir()
        written[name] = write(folder, options.records, options.seed)
        for reading in (False, True):
            job = {"format": name, "files": written[name], "read": reading, "cores": one_core()}
            items[f"{name}, {'read' if reading else 'parsed'}"] = partial(
                child, job, script="readers.py"
            )
    found = take_turns(items, options.rounds)
    head = ["reader", "bytes a record", "json.loads, s", "reader, s", "us a record", "MB/s"]
    rows, reach = [], []
    for name, files in written.items():
        floor, runs = found[f"{name}, parsed"], found[f"{name}, read"]
        wall, against = runs.median("wall"), ratio(floor, runs, "cpu")
        size = sum(path.stat().st_size for path in files.all())
        rows.append(
            [
                name,
                cell(size / options.records, ".0f"),
                cell(floor.median("wall"), ".3f"),
                cell(wall, ".3f"),
                cell(wall and wall / options.records * 1e6, ".1f"),
                cell(wall and size / wall / 1e6, ".0f"),
                cell(ratio(floor, runs)),
                cell(against),
                cell(runs.median("peak"), ".0f"),
            ]
        )
        if name != OWN:
            what = f"reader {name} against json.loads of its own file"
            reach.append(reached(what, *BOUNDS.get(name, (0.15, 0.3)), against, floor, runs))
    return Table(
        title="Reading other formats",
        columns=[*head, "ratio", "in CPU time", "peak MB"],
        rows=rows,
        notes=[
            (
                f"{options.records} records each, {options.rounds} rounds in turns, one core; samples "
                "are dropped."
            ),
            (
                "Ratio: seconds of json.loads over those of the reader, in a round; the median. To "
                "reach: in CPU time."
            ),
            *failures(found),
        ],
        reach=reach,
    )


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        print(json.dumps(work(json.loads(sys.argv[1]))))
        sys.exit(0)
    sys.exit(main(measure, __doc__, records=RECORDS, rounds=5))
