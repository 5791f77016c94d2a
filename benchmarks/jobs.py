"""The work that is measured, done in a fresh process.

``python benchmarks/jobs.py '{"job": "orjson", "path": ...}'``.

The last line printed is a JSON object: ``n`` (records), ``wall`` and ``cpu`` (seconds of the work,
without the start of the interpreter and without imports), ``peak`` and ``children`` (peak resident
memory in MB of this process and of the largest of its children).

Before the work is timed, the same work is done on a small recording of another seed, so that
everything is imported.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import by_hand
import workload

from gradestack_plugins.pages.index import index_of

WARM_UP = 40
GRADERS = {"partial": {"kind": "tau_partial"}, "deepfabric": {"kind": "deepfabric"}}
RELIABLE = {"pass_hat_k": {"of": "partial"}}
"""What is computed beside the graders' own figures where the script by hand has it too."""
Job = Mapping[str, Any]


def pin(cores: list[int] | None) -> None:
    """Let this process use these cores only, where the system can do that."""
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


def peak() -> float:
    """Return this process's peak resident memory in MB.

    On Linux that of the program itself; what ``getrusage`` tells would include its parent's before
    the start.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _spent() -> float:
    """Return the CPU seconds of this process and its finished children."""
    both = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


def timed(work: Callable[[], int]) -> dict[str, Any]:
    """Return what the work took."""
    before, started = _spent(), time.perf_counter()
    number = work()
    wall, cpu = time.perf_counter() - started, _spent() - before
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"n": number, "wall": wall, "cpu": cpu, "peak": peak(), "children": children}


def parse(job: Job) -> dict[str, Any]:
    """Decode every line and drop it: the floor no reader of one core gets under."""
    name = job["job"]
    module = importlib.import_module(name)
    loads = module.json.decode if name == "msgspec" else module.loads

    def work() -> int:
        number = 0
        with Path(job["path"]).open("rb") as file:
            for line in file:
                loads(line)
                number += 1
        return number

    return timed(work)


def suite(path: str | Path, job: Job) -> dict[str, Any]:
    """Return the suite that is measured: two graders with their own aggregators, no pages."""
    reports = job.get("reports", [])
    pages = {} if reports is None else {"reports": reports}
    metrics = {"metrics": job["metrics"]} if job.get("metrics") else {}
    if "stack" in job:
        target = {"paths": [str(path)]}
        return {
            "name": "benchmark",
            "target": target,
            "stack": job["stack"],
            "engine": job["engine"],
            "reports": [],
        }
    return {
        "name": "benchmark",
        "target": {"paths": [str(path)], "reader": "jsonl"},
        "graders": job.get("graders", GRADERS),
        "engine": job.get("engine", "serial"),
        **metrics,
        **pages,
    }


def digest(run: Path) -> str:
    """Return a digest of the results of a run, all but the header."""
    found = hashlib.blake2b(digest_size=16)
    for name in ("results.jsonl", "summary.json"):
        if (run / name).exists():
            with (run / name).open("rb") as file:
                found.update(hashlib.file_digest(file, "blake2b").digest())
    return found.hexdigest()


def without_metrics() -> None:
    """Have runs make no figures but those every run has."""
    api: Any = importlib.import_module("gradestack.python_api")
    run, replace = api.run_suite, importlib.import_module("msgspec.structs").replace

    def run_suite(suite: Any, options: Any) -> Any:
        return run(
            replace(suite, metrics=(), headline=replace(suite.headline, figures=())), options
        )

    api.run_suite = run_suite


def gradestack(job: Job) -> dict[str, Any]:
    """Run a suite through the Python API: read, grade, aggregate, write.

    Options: ``engine``, ``rows``, ``graders``, ``metrics``, ``reports`` (null: the default pages),
    ``allow_code``, or a ``stack`` by its name; ``aggregate`` false: without metrics. With
    ``digest`` and ``figures`` it also returns a digest of the results, and the figures the script
    by hand has.
    """
    api = importlib.import_module("gradestack")
    if not job.get("aggregate", True):
        without_metrics()
    output = Path(job["output"])
    options = {"rows": job.get("rows", True), "allow_code": job.get("allow_code", False)}
    with tempfile.TemporaryDirectory() as temporary:
        small = Path(temporary) / "small.jsonl"
        if "stack" in job:
            workload.write_trials(small, WARM_UP)
        else:
            workload.write(small, WARM_UP, seed=-1)
        api.run(suite(small, job), output=Path(temporary) / "run", **options)
    reports = []

    def work() -> int:
        reports.append(api.run(suite(job["path"], job), output=output, **options))
        return int(reports[0].metrics["total"])

    found = timed(work)
    metrics = reports[0].metrics
    found |= {"score": metrics["avg_score_attempted"], "passed": metrics["passed_attempts"]}
    found |= {"written": size_of(output)}
    if job.get("figures"):
        found["figures"] = by_hand.figures_of(reports[0])
    return {**found, "digest": digest(output)} if job.get("digest") else found


def size_of(run: Path) -> float:
    """Return the size of all files of a run, in MB."""
    return sum(path.stat().st_size for path in run.rglob("*") if path.is_file()) / 1e6


def report(job: Job) -> dict[str, Any]:
    """Write the pages of a run that was made without any.

    The command line, from its start to its end.
    """
    output = Path(job["output"])
    importlib.import_module("gradestack").run(suite(job["path"], job), output=output)
    before = size_of(output)
    command = [str(Path(sys.executable).parent / "gradestack"), "report", str(output)]

    def work() -> int:
        subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - our own
        return 0

    return {**timed(work), "written": size_of(output) - before}


def page(job: Job) -> dict[str, Any]:
    """Write ``report.html`` of a finished run, from its rows.

    All that a reporter which does nothing would not do.
    """
    api = importlib.import_module("gradestack")
    html = importlib.import_module("gradestack_plugins.pages.html").HtmlReporter()
    with tempfile.TemporaryDirectory() as temporary:
        small = Path(temporary) / "small.jsonl"
        workload.write(small, WARM_UP, seed=-1)
        run = api.run(suite(small, job), output=Path(temporary) / "run")
        html.write(run, run.path)
    path = Path(job["run"])
    found = api.load_report(path)

    def work() -> int:
        html.write(found, path)
        return len(index_of(found).entries)

    return timed(work)


def comparison(job: Job) -> dict[str, Any]:
    """Compare two finished runs, and write the comparison with its pages."""
    api = importlib.import_module("gradestack")
    with tempfile.TemporaryDirectory() as temporary:
        small, runs = Path(temporary) / "small.jsonl", []
        for seed in (-1, -2):
            workload.write(small, WARM_UP, seed=seed)
            output = Path(temporary) / f"run{seed}"
            runs.append(api.run(suite(small, job), output=output).path)
        api.compare(*runs, output=Path(temporary) / "compared", force=True)

    def work() -> int:
        compared = api.compare(*job["runs"], output=job["output"])
        return sum(len(side.samples.facts) for side in compared.sides)

    return timed(work)


def script(job: Job) -> dict[str, Any]:
    """Grade by hand (``by_hand.py``), with rows where a place for them is given."""
    rows = Path(job["rows"]) if job.get("rows") else None
    with tempfile.TemporaryDirectory() as temporary:
        small = Path(temporary) / "small.jsonl"
        workload.write(small, WARM_UP, seed=-1)
        by_hand.grade(small, rows and Path(temporary) / "rows.jsonl")
    figures: list[dict[str, Any]] = []

    def work() -> int:
        figures.append(by_hand.grade(Path(job["path"]), rows))
        return int(figures[0]["partial"]["n"])

    return {**timed(work), "figures": figures[0]}


JOBS: dict[str, Callable[[Job], dict[str, Any]]] = {
    "orjson": parse,
    "json": parse,
    "msgspec": parse,
    "gradestack": gradestack,
    "report": report,
    "page": page,
    "compare": comparison,
    "script": script,
}


def main() -> int:
    job = json.loads(sys.argv[1])
    pin(job.get("cores"))
    print(json.dumps(JOBS[job["job"]](job)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
