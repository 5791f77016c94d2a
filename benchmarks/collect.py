"""Run all benchmarks and write benchmarks/RESULTS.md.

    python benchmarks/collect.py [--only NAME ...] [--output FILE] [--cache DIRECTORY]

Every script runs in a process of its own; one that fails has its reason in the results and costs no
other its figures. No figure is typed by hand: what is to be reached comes from the scripts' tables,
remarks from benchmarks/notes.md. The exit code is 1 when a script failed; a figure that misses its
bound does not count as that.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from frame import HERE, Reach, Table, cell, cores, table_of, without_places

SCRIPTS = (
    "startup",
    "dispatch",
    "authors",
    "matcher",
    "throughput",
    "readers",
    "reports",
    "pages",
    "engines",
    "memory",
    "sessions",
    "peers",
    "million",
    "profile_run",
)
"""Scripts that make a table, in the order they run."""
PRINTING = {
    "deepfabric_baseline": "DeepFabric against its way of working",
    "orchestration": "Graph edit distance",
}
"""Scripts that print what they found, with the heading it gets."""
PACKAGES = (
    "gradestack",
    "attrs",
    "click",
    "distributed",
    "msgspec",
    "networkx",
    "orjson",
    "pluggy",
    "rich",
)
LIMIT = 1_500
"""Seconds one script may take."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Section:
    """What came of one script."""

    name: str
    title: str
    seconds: float
    table: Table | None = None
    text: str = ""
    failed: str = ""

    def markdown(self) -> str:
        """Return it with a heading."""
        if self.failed:
            body = f"Failed: {self.failed}"
        else:
            body = self.table.markdown() if self.table is not None else f"```text\n{self.text}\n```"
        return (
            f"### {self.title}\n\n`benchmarks/{self.name}.py`, {self.seconds:.0f} s in "
            f"all.\n\n{body}\n"
        )


# --------------------------------------------------------------------------------------------------


def run(name: str, work: Path, cache: Path, extra: Sequence[str]) -> Section:
    """Run one script."""
    title, output = PRINTING.get(name, name), work / f"{name}.json"
    command = [sys.executable, str(HERE / f"{name}.py")]
    if name not in PRINTING:
        command += ["--json", str(output), "--place", str(work), "--cache", str(cache), *extra]
    started = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)  # noqa: S603 - our own
    except subprocess.TimeoutExpired:
        return Section(
            name=name, title=title, seconds=LIMIT, failed=f"not finished after {LIMIT} s"
        )
    seconds = time.perf_counter() - started
    if (
        name in PRINTING and done.returncode in {0, 1} and done.stdout.strip()
    ):  # 1: a bound of its own is missed
        return Section(name=name, title=title, seconds=seconds, text=done.stdout.rstrip())
    if done.returncode != 0 or not output.exists():
        said = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        reason = f"exit code {done.returncode}: {without_places(said)[:300]}"
        return Section(name=name, title=title, seconds=seconds, failed=reason)
    table = table_of(json.loads(output.read_text(encoding="utf-8")))
    return Section(name=name, title=table.title, seconds=seconds, table=table)


# --------------------------------------------------------------------------------------------------


def processor() -> str:
    """Return the name of the processor."""
    listing = Path("/proc/cpuinfo")
    lines = (
        listing.read_text(encoding="utf-8", errors="replace").splitlines()
        if listing.exists()
        else []
    )
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def memory() -> str:
    """Return the size of the memory."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return "unknown"
    return f"{size / 2**30:.0f} GiB"


def version(package: str) -> str:
    """Return the installed version of a package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def machine(load: str) -> list[str]:
    """Return what the figures were measured on."""
    return [
        f"- date: {dt.datetime.now(dt.UTC):%Y-%m-%d}",
        f"- processor: {processor()}, {len(cores())} cores; memory: {memory()}",
        f"- system: {platform.system()} {platform.release()}; load before the start: {load}",
        f"- Python: {platform.python_implementation()} {platform.python_version()}",
        f"- packages: {', '.join(f'{each} {version(each)}' for each in PACKAGES)}",
    ]


def bound(each: Reach, value: float) -> str:
    """Return a bound as text."""
    return f"{'≤' if each.lower else '≥'} {value:g}"


def reach(sections: Sequence[Section]) -> tuple[list[str], list[Reach]]:
    """Return the table of what is to be reached, and what misses its bound."""
    lines = ["| what | must | aim | measured | met |", "| --- | --- | --- | --- | --- |"]
    all_of_them = [
        each for section in sections if section.table is not None for each in section.table.reach
    ]
    for each in all_of_them:
        figures = f"{bound(each, each.must)} | {bound(each, each.aim)} | {cell(each.measured)}"
        lines.append(f"| {each.what} | {figures} | {each.verdict} |")
    return lines, [each for each in all_of_them if not each.met(each.aim)]


def results(sections: Sequence[Section], load: str, notes: str) -> str:
    """Return the text of RESULTS.md."""
    lines, missed = reach(sections)
    short = [
        f"- {each.what}: {cell(each.measured)}, aim {bound(each, each.aim)}" for each in missed
    ]
    failed = [
        f"- `{section.name}` failed: {section.failed}" for section in sections if section.failed
    ]
    where = "[docs/benchmarks.md](../docs/benchmarks.md)"
    parts = [
        "# Benchmark results",
        (
            f"Written by `make bench`; {where} says what each table means. Compare figures within one "
            "table only."
        ),
        "\n".join(machine(load)),
        "## Reach",
        "\n".join(lines),
        "## What misses its aim",
        "\n".join([*short, *failed]) or "Nothing.",
        notes.strip(),
        "## Tables",
        "\n".join(section.markdown() for section in sections),
    ]
    return "\n\n".join(part for part in parts if part).rstrip() + "\n"


def main() -> int:
    names = [*SCRIPTS, *PRINTING]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names)
    )
    parser.add_argument("--output", type=Path, default=HERE / "RESULTS.md")
    parser.add_argument(
        "--cache", type=Path, help="directory that keeps the virtual environments of peers"
    )
    parser.add_argument("--records", type=int, help="records of every script, for a quick try")
    parser.add_argument("--rounds", type=int, help="rounds of every script, for a quick try")
    given = parser.parse_args()
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    extra = [
        f"--{name}={value}"
        for name in ("records", "rounds")
        if (value := getattr(given, name)) is not None
    ]
    notes = HERE / "notes.md"
    if given.cache is not None:
        given.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="work-", dir=given.cache) as temporary:
        work = Path(temporary).resolve()
        cache = given.cache.resolve() if given.cache is not None else work / "environments"
        sections = []
        for name in given.only:
            print(f"{name} ...", end=" ", flush=True)
            section = run(name, work, cache, extra)
            print(
                f"{section.seconds:.0f} s"
                + (f", failed: {section.failed}" if section.failed else ""),
                flush=True,
            )
            sections.append(section)
    said = notes.read_text(encoding="utf-8") if notes.exists() else ""
    given.output.write_text(results(sections, load, said), encoding="utf-8")
    print(given.output)
    return int(any(section.failed for section in sections))


if __name__ == "__main__":
    sys.exit(main())
