"""Rows of traces make the same runs with ids as texts or as numbers: a law over every case."""

import json
from pathlib import Path

import attrs
import pytest

from gradestack import GradestackError, Sample, testing
from gradestack.copies.files import Folder
from gradestack.suites.options import structure
from gradestack.testing.case_files import _file_text
from tests.plugins.test_published_forms import REGISTRY
from tests.plugins.test_splits import reader_of, write_files

ROW_IDS = {
    *("id", "trace_id", "traceId", "span_id", "root_span_id", "session_id"),
    *("parent_id", "parent_run_id", "parent_span_id", "parentObservationId"),
}
READERS = {"agents_traces", "braintrust", "langsmith", "litellm", "opik", "weave", "records"}
CASES = [
    case
    for case in testing.cases(Path(__file__).parents[1] / "cases")
    if reader_of(case)[0] in READERS and "trace" in str(case.data.get("files"))
]


def with_numbers(value, numbers):
    """Return rows with a number in place of each of their ids."""
    if isinstance(value, list):
        return [with_numbers(row, numbers) for row in value]
    if not isinstance(value, dict):
        return value
    row = dict(value)
    keys = row.keys()
    for key in ROW_IDS & keys:
        if isinstance(row[key], str) and row[key]:
            row[key] = numbers.setdefault(row[key], len(numbers) + 1)
    for key in ("trace", "spans", "data", "observations"):
        if key in row:
            row[key] = with_numbers(row[key], numbers)
    return row


def decoded_file(text):
    """Decode a file of JSON or of JSON Lines; a line that is no JSON stays text."""
    try:
        return json.loads(text)
    except ValueError:
        lines = text.splitlines()
        return [decoded_line(line) for line in lines]


def decoded_line(line):
    try:
        return json.loads(line)
    except ValueError:
        return line


def written(value):
    if isinstance(value, list):
        return "".join(
            row + "\n" if isinstance(row, str) else json.dumps(row) + "\n" for row in value
        )
    return json.dumps(value)


def runs_of(case, folder):
    """Return the calls and the text of each run that a case's files hold."""
    kind, options = reader_of(case)
    registry = REGISTRY.load("reader", kind)
    reader = structure(options, registry, Folder(folder))
    inputs = write_files(case, folder)
    index = reader.index(inputs)
    shards = reader.plan(inputs, index)
    samples = [record for shard in shards for record in reader.read(shard, index)]
    runs = [sample for sample in samples if isinstance(sample, Sample)]
    return [([call.name for call in run.calls or ()], run.text, run.usage) for run in runs]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_ids_may_be_numbers(case, tmp_path):
    files = dict(case.data["files"])
    try:
        texts_folder = tmp_path / "texts"
        expected = runs_of(case, texts_folder)
    except GradestackError:  # a case of a refusal
        return
    numbers = {}
    for name, content in files.items():
        file_text = _file_text(name, content)
        files[name] = written(with_numbers(decoded_file(file_text), numbers))
    numbered = attrs.evolve(case, data={**case.data, "files": files})
    folder = tmp_path / "numbers"
    runs = runs_of(numbered, folder)
    assert runs == expected
