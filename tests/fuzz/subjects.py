"""The files that are mutated: examples of every format, with the number of records in each."""

import json
import os
import re
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
DATA = os.environ.get("GRADESTACK_REFERENCE_DATA")
LARGEST = 40_000
"""Bytes of a published file that is mutated: a larger one takes too long each time."""


class Subject(NamedTuple):
    """A file of a format, and how it is graded."""

    reader: str
    name: str
    records: Any
    layout: str
    options: tuple[str, ...] = ()
    count: Callable[[bytes], tuple[int, int] | None] = lambda _: None
    """Least and most number of samples and bad records together; None where that is not known."""
    beside: Path | None = None
    """What is graded, when the file is something else."""
    given: str = ""
    """What is graded of the files written, when it is not the one that is changed."""
    around: Mapping[str, Any] = {}
    """Records of the files it stands among, by name."""


JOINED = [
    ("letta", "letta/recorded", "letta/dataset.jsonl"),
    ("when2call", "when2call/judge_decisions.jsonl", "when2call/dataset.jsonl"),
    ("stability", "stability/runs.jsonl", "stability/dataset.jsonl"),
    ("deepfabric", "deepfabric/replies.jsonl", "deepfabric/dataset.jsonl"),
]
"""Formats with a dataset: answers and dataset."""


_BORDER = re.compile(rb"\}\s*\{")
"""Between two objects of one line, which counts as both where it cannot be read."""


def _lines(name: str) -> list[Any]:
    documents = []
    text = (EXAMPLES / name).read_text()
    lines = text.splitlines()
    for line in lines[:9]:
        document = json.loads(line)
        documents.append(document)
    return documents


def _with(dataset: str) -> tuple[str, str]:
    return "--dataset", str(EXAMPLES / dataset)


def _text_lines(content: bytes) -> list[bytes]:
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return [line for line in lines if line and not line.isspace()]


def _value(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def every_line(content: bytes) -> tuple[int, int]:
    """Each line that is not blank."""
    lines = _text_lines(content)
    total = sum(len(_BORDER.findall(line)) for line in lines)
    return len(lines), len(lines) + total


def every_line_or_element(content: bytes) -> tuple[int, int] | None:
    """Each line that is not blank, or each element of a list."""
    is_list = content.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    return every_element(content) if is_list else every_line(content)


def every_result(content: bytes) -> tuple[int, int]:
    least, most = every_line(content)
    others = 0
    for line in _text_lines(content):
        value = _value(line)
        others += isinstance(value, dict) and value.get("type") not in (None, "result")
    return max(0, least - others), most


def every_record(content: bytes) -> tuple[int, int] | None:
    """Each line or element; of records with one identifier the last counts."""
    text = content.removeprefix(b"\xef\xbb\xbf").strip()
    if not text.startswith(b"["):
        least, most = every_line(content)
        return min(least, 1), most
    return None


def every_run(content: bytes) -> tuple[int, int] | None:
    text = content.removeprefix(b"\xef\xbb\xbf").strip()
    if text.startswith(b"["):
        return None
    return (0, len(content))


def every_element(content: bytes) -> tuple[int, int] | None:
    """Each element of a list that is JSON; at least one record of one that is not."""
    try:
        text = content.decode("utf-8-sig")
        document = json.loads(text)
    except (ValueError, RecursionError):
        return 1, len(content)
    if isinstance(document, list):
        return (len(document), len(document))
    return None


def every_trial(content: bytes) -> tuple[int, int]:
    """Each run under ``history``, or the file itself."""
    document = _value(content)
    history = None
    if isinstance(document, dict):
        history = document.get("history")
    size = 0
    if isinstance(history, dict):
        size = len(history)
    return max(1, size), max(1, size)


def _joined() -> list[Any]:
    records = _lines("deepfabric/dataset.jsonl")
    replies = _lines("deepfabric/replies.jsonl")
    pairs = zip(records, replies, strict=True)
    return [{"sample": record, "recorded": reply} for record, reply in pairs]


def _orchestration() -> Any:
    kiln_out_path = EXAMPLES / "orchestration/results/kiln_out.json"
    text = kiln_out_path.read_text()
    return json.loads(text)


def _seeds() -> list[Subject]:
    """Return the small files of formats without an example."""
    file_path = Path(__file__)
    path = file_path.with_name("seeds.yaml")
    text = path.read_text(encoding="utf-8")
    seeds = yaml.safe_load(text)
    return [
        Subject(**{**seed, "options": tuple(chain.from_iterable(seed.get("options", [])))})
        for seed in seeds
    ]


def _published() -> list[Subject]:
    """Return small published files of formats, where they are at hand."""
    collected = []
    for path in sorted(Path(DATA).rglob("*.json*")) if DATA else ():
        text = path.read_bytes()
        if (
            path.name == "expected.json"
            or path.suffix == ".gz"
            or len(text) > LARGEST
            or path.parts[-3] == "bfcl"
        ):
            continue
        lines = []
        for line in text.splitlines()[:9]:
            lines.append(_value(line))
        is_whole = len(lines) < 2 or None in lines
        if is_whole and _value(text) is None:
            continue
        subject = Subject(
            "",
            path.name,
            json.loads(text) if is_whole else lines,
            "indented" if is_whole else "lines",
        )
        collected.append(subject)
    return collected


def subjects() -> list[Subject]:
    """Return the files of all formats, cut to a few records."""
    results_path = EXAMPLES / "airline/results.json"
    text = results_path.read_text()
    document = json.loads(text)
    tau = document[:3]
    lines = _lines("quickstart/runs.jsonl")
    subject = Subject(
        "jsonl",
        "runs.jsonl",
        lines,
        "lines",
        count=every_line_or_element,
    )
    return [
        subject,
        Subject("tau_bench", "results.json", tau, "list", count=every_element),
        Subject(
            "letta",
            "results.jsonl",
            _lines("letta/recorded/results.jsonl"),
            "lines",
            count=every_result,
        ),
        Subject(
            "when2call",
            "decisions.jsonl",
            _lines("when2call/judge_decisions.jsonl"),
            "lines",
            count=every_record,
        ),
        Subject(
            "stability", "sweeps.jsonl", _lines("stability/runs.jsonl"), "lines", count=every_run
        ),
        Subject("deepfabric", "joined.jsonl", _joined(), "lines", count=every_line),
        Subject(
            "orchestrationbench", "kiln_out.json", _orchestration(), "indented", count=every_trial
        ),
        *(
            Subject(reader, "answers.jsonl", _lines(answers), "lines", _with(data))
            for reader, answers, data in JOINED[1:]
        ),
        *(
            Subject(
                f"{reader} dataset",
                "dataset.jsonl",
                _lines(data),
                "lines",
                beside=EXAMPLES / answers,
            )
            for reader, answers, data in JOINED
        ),
        *_seeds(),
        *_published(),
    ]


def suites() -> list[Path]:
    paths = EXAMPLES.glob("*/suite.yaml")
    live_path = EXAMPLES / "letta/live.yaml"
    return sorted([*paths, live_path])
