"""What does the page of a large run cost, to make and to open?

    python benchmarks/pages.py [--records N] [--rounds N]

Two recordings: trials of 2,000 tasks, and every record a task of its own. Making: CPU time of
``report.html`` from the rows of a finished run, above a reporter that does nothing, in a fresh
process on one core. Comparing: CPU time of the comparison of two evaluations of the first kind,
with its pages. Opening: a headless Chromium reads the page from ``file://``; where there is
none, there are no figures of that.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import workload
from chromium import Tab, browser, chromium
from frame import ChildFailed, Options, Reach, Table, cell, child, main, one_core, scratch

RECORDS = 100_000
BEYOND = 0.9
"""The sample that is opened is the first success behind this share of the rows."""
LINE = 34
"""Height of a line of the list."""
FIGURES = {
    "build": "CPU us a sample",
    "size": "page MB",
    "beside": "beside it MB",
    "elements": "DOM elements",
    "loaded": "DCL ms",
    "ready": "list ready ms",
    "filter": "filter ms",
    "sort": "sort ms",
    "heap": "heap MB",
    "open": "open ms",
}
BOUNDS = {
    "build": (30, 20),
    "elements": (5_000, 4_000),
    "loaded": (1_000, 500),
    "ready": (1_000, 500),
    "filter": (200, 100),
    "sort": (300, 200),
    "heap": (150, 100),
    "open": (500, 250),
}
"""Figure -> must and aim; small is good."""
COMPARED = (5, 3)
"""CPU seconds of a comparison of two evaluations of 100,000 runs each: must and aim."""
_WATCH = """addEventListener('DOMContentLoaded', () => {
  const root = document.documentElement;
  const look = () => { if (root.classList.contains('ready')) { globalThis.readyAt ??= performance.now(); } };
  new MutationObserver(look).observe(root, {attributes: true});
  look();
});"""
_SEARCH = """new Promise(done => {
  const find = document.getElementById('find'), begun = performance.now();
  new MutationObserver((_, watch) => {
    watch.disconnect();
    document.body.offsetHeight;
    done(performance.now() - begun);
  }).observe(document.getElementById('shown-count'), {childList: true, characterData: true, subtree: true});
  find.value = TEXT;
  find.dispatchEvent(new Event('input', {bubbles: true}));
})"""
_CHANGE = """(() => {
  const one = ELEMENT, begun = performance.now();
  ACT;
  one.dispatchEvent(new Event('change', {bubbles: true}));
  document.body.offsetHeight;
  return performance.now() - begun;
})()"""
_SCROLL = """new Promise(done => {
  document.getElementById('list').scrollTop = TOP;
  requestAnimationFrame(() => requestAnimationFrame(done));
})"""
_CLICK = """new Promise((done, failed) => {
  const begun = performance.now();
  document.querySelector('.line[data-row="ROW"]').click();
  (function look() {
    if (document.querySelector('#one .inside')) { document.body.offsetHeight; done(performance.now() - begun); }
    else if (performance.now() - begun > 5000) { done(null); }
    else { setTimeout(look, 1); }
  })();
})"""

Found = dict[str, float | None]


# --------------------------------------------------------------------------------------------------


def _change(tab: Tab, element: str, act: str) -> float:
    return float(tab.run(_CHANGE.replace("ELEMENT", element).replace("ACT", act)))


def _search(tab: Tab, text: str) -> float:
    return float(tab.run(_SEARCH.replace("TEXT", json.dumps(text))))


def _heap(tab: Tab) -> float:
    metrics = {
        each["name"]: each["value"] for each in tab.send("Performance.getMetrics")["metrics"]
    }
    return float(metrics["JSHeapUsedSize"]) / 1e6


def _success(run: Path) -> tuple[int, str, int]:
    """Return position, id and number among the rows of that id of the first success far down."""
    with (run / "results.jsonl").open("rb") as file:
        rows = [(str(row["sample"]["id"]), row["passed"]) for row in map(json.loads, file)]
    for position in range(int(BEYOND * len(rows)), len(rows)):
        name, passed = rows[position]
        if passed:
            return (
                position,
                name,
                sum(other == name for other, _ in itertools.islice(rows, position)),
            )
    raise ChildFailed("no success there")


def opened(tab: Tab, run: Path) -> Found:
    """Return what a browser needs for a page, and for what a reader does in it."""
    position, name, before = _success(run)
    tab.emulate(width=1440, height=900)
    tab.send("Performance.enable")
    watch = tab.send("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)
    tab.open("about:blank")
    tab.open((run.absolute() / "report.html").as_uri())
    tab.wait("globalThis.readyAt !== undefined")
    tab.send("Page.removeScriptToEvaluateOnNewDocument", identifier=watch["identifier"])
    elements = tab.run("document.querySelectorAll('*').length")
    loaded = tab.run("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    ready, heaps = tab.run("readyAt"), [_heap(tab)]
    tab.run("location.hash = '#samples'")
    tab.wait("document.querySelector('.line') !== null")
    chip = "[...document.querySelectorAll('input[name=verdict]')].at(-1)"
    filters = [_change(tab, chip, "one.checked = !one.checked") for _ in range(2)]
    filters += [_search(tab, text) for text in ("argument", "task-0", name)]
    order = "document.getElementById('sort')"
    heaps.append(_heap(tab))
    _change(tab, order, "one.value = 'order'")
    tab.run(_SCROLL.replace("TOP", str(before * LINE)))
    found = tab.run(_CLICK.replace("ROW", str(position)))
    heaps.append(_heap(tab))
    filters.append(_search(tab, ""))
    sorts = [_change(tab, order, f"one.value = '{each}'") for each in ("low", "high", "worst")]
    return {
        "elements": elements,
        "loaded": loaded,
        "ready": ready,
        "filter": max(filters),
        "sort": max(sorts),
        "heap": max(heaps),
        "open": found,
    }


# --------------------------------------------------------------------------------------------------


def made(path: Path, run: Path, rounds: int, records: int) -> Found:
    """Grade a recording, write its page as often as asked for, and return what it costs and how
    large it is.
    """
    child({"job": "gradestack", "path": path, "output": run})
    job = {"job": "page", "run": run, "cores": one_core()}
    cpu = statistics.median(child(job)["cpu"] for _ in range(rounds))
    beside = sum(each.stat().st_size for each in run.glob("report_data/*")) / 1e6
    return {
        "build": cpu / records * 1e6,
        "size": (run / "report.html").stat().st_size / 1e6,
        "beside": beside,
    }


def compared(options: Options) -> float:
    """Return the CPU seconds of a comparison of two evaluations, with its pages."""
    recordings = [options.recording(), options.recording(wrong=workload.USUALLY_WRONG + 10)]
    with scratch(options.place) as out:
        runs = []
        for number, path in enumerate(recordings):
            runs.append(str(out / f"run-{number}"))
            child({"job": "gradestack", "path": path, "output": runs[-1]})
        job = {"job": "compare", "runs": runs, "output": out / "compared", "cores": one_core()}
        return float(statistics.median(child(job)["cpu"] for _ in range(options.rounds)))


def _reach(what: str, found: Mapping[str, Found], why: str) -> list[Reach]:
    kinds = []
    for key, (must, aim) in BOUNDS.items():
        values = [figures[key] for figures in found.values() if figures.get(key) is not None]
        worst = max((each for each in values if each is not None), default=None)
        name = f"page of {what}: {FIGURES[key]}"
        kinds.append(Reach(what=name, must=must, aim=aim, measured=worst, lower=True, why=why))
    return kinds


def measure(options: Options) -> Table:
    """Return the table."""
    program, found = browser(), dict[str, Found]()
    recordings = {
        "trials of 2,000 tasks": options.recording(),
        "distinct ids": options.recording(tasks=0),
    }
    for name, path in recordings.items():
        with scratch(options.place) as out:
            run = out / "run"
            found[name] = made(path, run, options.rounds, options.records)
            if program is not None:
                with chromium(program) as tab:
                    opened(tab, run)
                    rounds: list[Found] = [opened(tab, run) for _ in range(options.rounds)]
                found[name] |= {key: _median([each[key] for each in rounds]) for key in rounds[0]}
    why = "no Chromium here" if program is None else "no such row could be opened"
    seconds = compared(options)
    what = f"comparison of two evaluations of {options.records:,} runs: CPU s"
    must, aim = COMPARED
    return Table(
        title="Pages of large runs",
        columns=["samples", *FIGURES.values()],
        rows=[
            [name, *(_shown(key, figures.get(key)) for key in FIGURES)]
            for name, figures in found.items()
        ],
        notes=[
            (
                f"{options.records} records, medians of {options.rounds} rounds; filter and sort: the "
                "slowest of several."
            ),
            "The browser is at work already: a first visit is not counted.",
            "Text search waits for the next letter first, which is part of its time.",
            f"The comparison of two evaluations, with its pages: {seconds:.1f} s of CPU.",
        ],
        reach=[
            *_reach(f"{options.records:,} samples", found, why),
            Reach(what=what, must=must, aim=aim, measured=seconds, lower=True),
        ],
    )


def _median(values: list[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return statistics.median(known) if len(known) == len(values) else None


def _shown(key: str, value: Any) -> str:
    return cell(value, ".2f" if key in {"size", "beside"} else ".1f" if key == "build" else ",.0f")


if __name__ == "__main__":
    sys.exit(main(measure, __doc__, records=RECORDS))
