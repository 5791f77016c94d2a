"""Mutated files of every format and mutated suites.

No traceback, no exit code of its own, no hang, no record lost.
"""

import json
import shutil

import pytest
import yaml
from hypothesis import strategies as st

from gradestack.cli import commands
from tests.core.outcomes import data, some_of
from tests.fuzz import mutation, subjects

DATA = data(__file__, "fuzz.yaml")

EXAMPLES = subjects.EXAMPLES
SUBJECTS = subjects.subjects()
RUNS = {
    "airline": ["grade", EXAMPLES / "airline/results.json", "--set", "max_samples=8"],
    "quickstart": ["run", EXAMPLES / "quickstart/suite.yaml"],
    "letta": ["grade", EXAMPLES / "letta/recorded", "--dataset", EXAMPLES / "letta/dataset.jsonl"],
    "when2call": ["run", EXAMPLES / "when2call/suite.yaml"],
    "deepfabric": ["run", EXAMPLES / "deepfabric/suite.yaml"],
    "orchestration": ["grade", EXAMPLES / "orchestration/results", "--set", "max_samples=4"],
    "stability": [
        "grade",
        EXAMPLES / "stability/runs.jsonl",
        "--dataset",
        EXAMPLES / "stability/dataset.jsonl",
    ],
    "several": [
        "grade",
        EXAMPLES / "airline/results.json",
        "--set",
        "max_samples=3",
        "--num-runs",
        "4",
    ],
}
"""Runs whose directories are mutated, by the command that makes them."""
FILES = [
    "header.json",
    "summary.json",
    "results.jsonl",
    "aggregate_stats.json",
    "run_1/summary.json",
]
_WAYS = 12
"""How many ways a run is used."""
FORMATS = ["html", "markdown", "junit", "github"]
OTHER = b'{"id": "a", "expected": "x", "predicted": "x"}\n[\n {"task_id": 1}\n]'


@st.composite
def contents(draw, subject):
    """Draw a file of a format: changed as JSON, then as bytes, then as a whole."""
    form = draw(mutation.forms)
    table = subject.layout in ("csv", "parquet")
    if form in ("list", "lines", "indented") and not table:
        layout = form
    else:
        layout = subject.layout
    records = mutation.changed(subject.records, draw(mutation.tree_edits | mutation.one_value))
    content = mutation.edited(
        mutation.written(records, layout), draw(st.just([]) | mutation.byte_edits)
    )
    formed = mutation.formed(content, form, OTHER)
    return formed, draw(st.integers(0, 63))


def options_of(choices):
    """Return the options a number stands for.

    Mostly none, sometimes each of those that change the way.
    """
    options = ["--quiet", "--engine", "serial"]
    if choices % 8:
        options += ["--set", "reports=[]"]
    return options + DATA["options_of"].get(choices // 8, [])


@pytest.mark.parametrize(
    "subject", some_of(SUBJECTS, 5), ids=lambda subject: f"{subject.reader} {subject.name}".strip()
)
def test_a_mutated_file_ends_in_figures_or_in_an_error(tmp_path, ended, fuzz, subject):
    """Whoever reads it.

    An exit code of the table, no traceback, in time, and every record a sample or a bad one.
    """

    def look(choices):
        content, choice = choices
        path = tmp_path / subject.name
        for name, records in subject.around.items():
            mutation.write(
                tmp_path / name,
                mutation.written(records, "lines" if isinstance(records, list) else ""),
            )
        mutation.write(path, content)
        if subject.beside is None:
            inputs = [tmp_path / (subject.given or path)]
        else:
            inputs = [subject.beside, "--dataset", path]
        known = subject.reader and subject.beside is None and choice % 4 != 1
        reader = ["--reader", subject.reader] if known else []
        options = options_of(choice)
        ended_command = ended("grade", *inputs, *reader, *subject.options, *options, "-o", "out")
        expected = None
        if reader:
            unpacked = mutation.unpacked(content)
            expected = subject.count(unpacked)
        if ended_command.records is not None and expected is not None:
            least, most = expected
            assert least <= ended_command.records <= most

    request = contents(subject)
    fuzz(request, look)


@pytest.mark.parametrize(
    "path", subjects.suites(), ids=lambda path: f"{path.parent.name} {path.stem}"
)
def test_a_mutated_suite_ends_in_figures_or_in_an_error(tmp_path, ended, fuzz, path):
    """Whatever its bytes are, checked only and run."""
    folder = tmp_path / "suite"
    shutil.copytree(path.parent, folder)
    text = path.read_bytes()

    def look(choices):
        edits, choice = choices
        (folder / path.name).write_bytes(mutation.edited(text, edits, mutation.YAML_TOKENS))
        if choice % 3:
            ended("validate", folder / path.name)
        else:
            ended(
                "run",
                folder / path.name,
                "--quiet",
                "--engine",
                "serial",
                "--set",
                "reports=[]",
                "-o",
                "out",
            )

    request = st.tuples(mutation.byte_edits, st.integers(0, 5))
    fuzz(request, look)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Directories of finished runs, by name."""
    folder = tmp_path_factory.mktemp("runs")
    for name, (command, *arguments) in RUNS.items():
        command_line = [
            command,
            *map(str, arguments),
            "-q",
            "--engine",
            "serial",
            "--set",
            "reports=[]",
        ]
        with pytest.raises(SystemExit):
            commands.main([*command_line, "-o", str(folder / name)])
        assert (folder / name / "summary.json").is_file()
    return folder


def _used(folder, name, how, task):
    """Return a command line that reads a mutated run, and maybe the same run as it was."""
    mutated_folder = folder / "mutated"
    mutated = mutated_folder / name
    good = folder / name
    if how < len(FORMATS):
        return ["report", mutated, "--format", FORMATS[how], "-o", "pages"]
    paths = [str(good)]
    suite = {
        "name": name,
        "target": {"paths": paths},
        "reader": "letta",
        "reports": [],
        "engine": "serial",
    }
    gate = {"kind": "baseline", "metric_key": task, "baseline": str(mutated), "not_worse_than": 0.1}
    suite_path = folder / "mutated/suite.yaml"
    suite_path.write_text(yaml.safe_dump({**suite, "gates": [gate]}))
    return [
        ["compare", good, mutated, "-o", "out"],
        ["compare", mutated, good],
        ["compare", mutated],
        ["compare", good, mutated, "--by", "domain", "--match", "input", "--force"],
        ["show", mutated, task],
        ["grade", mutated, "-o", "out", "-q", "--engine", "serial", "--set", "reports=[]"],
        ["index", folder / "mutated"],
        ["run", folder / "mutated/suite.yaml", "-q", "-o", "out"],
    ][how - len(FORMATS)]


@pytest.mark.parametrize("name", RUNS)
def test_a_mutated_run_is_read_or_refused(ended, fuzz, runs, name):
    """Compared, shown, reported, listed, graded again, or what a gate compares with."""
    mutated_folder = runs / "mutated"
    mutated = mutated_folder / name
    present_files = [file_name for file_name in FILES if (runs / name / file_name).is_file()]
    contents = {file_name: (runs / name / file_name).read_bytes() for file_name in present_files}
    values = {
        file_name: [json.loads(line) for line in text.splitlines()]
        if file_name.endswith("l")
        else json.loads(text)
        for file_name, text in contents.items()
    }
    metrics = values["summary.json"]["metrics"]
    shards = metrics["states"]
    keys = [*map(str, shards)]
    tasks = []
    for row in values["results.jsonl"][:3]:
        tasks.append(str(row["sample"]["id"]))

    def look(choices):
        file, tree, raw, how, choice = choices
        shutil.rmtree(mutated, ignore_errors=True)
        shutil.copytree(runs / name, mutated)
        file_name = present_files[file % len(present_files)]
        layout = "lines" if file_name.endswith("l") else "indented"
        if tree:
            changed = mutation.written(mutation.changed(values[file_name], tree), layout)
        else:
            changed = contents[file_name]
        (mutated / file_name).write_bytes(mutation.edited(changed, raw))
        if how == _WAYS - 1:
            task = keys[choice % len(keys)]
        else:
            task = tasks[choice % len(tasks)]
        used = _used(runs, name, how, task)
        ended(*used)

    trees = mutation.tree_edits | mutation.one_value
    edits = st.just([]) | mutation.byte_edits
    request = st.tuples(
        st.integers(0, 4), trees, edits, st.integers(0, _WAYS - 1), st.integers(0, 9)
    )
    fuzz(
        request,
        look,
    )


def test_a_mutated_journal_of_a_judge_is_read_or_refused(tmp_path, ended, fuzz):
    """Replies that are changed, lost or repeated."""
    judged = DATA["judged"]
    log_path = tmp_path / "log.jsonl"
    log_path.write_bytes(mutation.written(judged["log"], "lines"))
    rubric_path = tmp_path / "rubric.yaml"
    rubric_path.write_text(yaml.safe_dump(judged["rubric"]))

    def look(choices):
        trees, edits = choices
        records = mutation.changed(judged["journal"], trees)
        content = mutation.edited(mutation.written(records, "lines"), edits)
        journal_path = tmp_path / "journal.jsonl"
        journal_path.write_bytes(content)
        judge = ["--rubric", "rubric.yaml", "--judgements", "journal.jsonl"]
        ended("grade", "log.jsonl", *judge, "-q", "--engine", "serial", "-o", "out")

    trees = mutation.tree_edits | mutation.one_value
    request = st.tuples(trees, st.just([]) | mutation.byte_edits)
    fuzz(request, look)


FILTER_TOKENS = [
    *(
        b"facet.",
        b"tag.",
        b"calls.",
        b"usage.",
        b"id",
        b"==",
        b"!=",
        b">=",
        b"in ",
        b"not ",
        b"and ",
    ),
    *(
        b"(",
        b")",
        b"[",
        b"]",
        b'"',
        b"'",
        b"1e999",
        b"-1",
        b"None",
        b"true",
        b".",
        b",",
        b" ",
        b"__class__",
    ),
]


def test_a_mutated_filter_takes_samples_or_is_refused(ended, fuzz):
    """Whatever its text is."""

    def look(choices):
        number, edits = choices
        filter_count = len(DATA["filters"])
        text = DATA["filters"][number % filter_count].encode()
        filtered = mutation.edited(text, edits, FILTER_TOKENS).decode(errors="replace")
        options = ["--filter", filtered.replace("\0", ""), "-q", "--engine", "serial"]
        runs_path = EXAMPLES / "quickstart/runs.jsonl"
        ended("grade", runs_path, *options, "-o", "out")

    request = st.tuples(st.integers(0, 9), mutation.byte_edits)
    fuzz(request, look)
