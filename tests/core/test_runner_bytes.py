"""The same bytes and figures whatever the split, and native files."""

import json
import random
from datetime import datetime

import pytest

import gradestack
from tests.core.outcomes import data, read, some_of
from tests.core.toy_components import DO_SKIP

DATA = data(__file__, "runner_bytes.yaml")


@pytest.fixture
def noon(monkeypatch):
    """Stop the clock: pages show the moment of the run, which is in header.json."""

    class Clock:
        @staticmethod
        def now(zone):
            return datetime(2031, 2, 3, 12, 0, 5, tzinfo=zone)

    monkeypatch.setattr("gradestack.runner.datetime", Clock)


RANDOM = random.Random(5)  # noqa: S311 - test data
MIXED = [
    {
        "id": f"t{number % 40}",
        "run": number // 40,
        "model": "ab"[number % 2],
        "predicted": "é",
        "recorded": {"score": score},
    }
    for number, score in enumerate(RANDOM.choices([0.0, 1.0, 0.1, 1 / 3, 1e-17, 0.7], k=120))
]
for _position in (3, 50, 119):
    MIXED[_position]["recorded"] = {"do": "raise"}
for _position in (7, 60):
    MIXED[_position]["recorded"] = {"do": "skip"}
LINES = [
    *map(json.dumps, MIXED[:30]),
    "not json",
    "",
    '{"id": 5.5}',
    *map(json.dumps, MIXED[30:]),
    json.dumps(MIXED[0]),
]
RICH = DATA["rich"]


def test_where_the_input_lies_does_not_show(
    tmp_path, write_lines, toys, with_echo, monkeypatch, noon
):
    collected = []
    for folder_name, relative in (("one", False), ("some/where/else", True)):
        path = write_lines(LINES, f"{folder_name}/runs.jsonl")
        monkeypatch.chdir(path.parent)
        path_given = path.name if relative else str(path)
        suite = {"name": "x", "target": {"paths": [path_given]}, **RICH, "engine": "serial"}
        output = tmp_path / f"{folder_name}-out"
        report = gradestack.run(suite, output=output, registry=with_echo)
        files = toys.files_of(report.path, "header.json")
        collected.append(files)
    assert collected[0] == collected[1]
    assert not any(str(tmp_path).encode() in data for data in collected[0].values())


@pytest.mark.parametrize("size", some_of([333, 1, 100, 1000, 5000], 5))
def test_any_split_into_shards_gives_the_same_bytes(
    run_lines, small_shards, toys, with_echo, size, noon
):
    lines = run_lines(LINES, using=with_echo, **RICH)
    uncut = toys.files_of(lines.path, "header.json")
    small_shards(size)
    path = run_lines(LINES, output="split", using=with_echo, **RICH).path
    split = toys.files_of(path, "header.json")
    assert split == uncut


def test_any_split_into_files_gives_the_same_figures(run_lines, write_lines, with_echo):
    uncut = run_lines(MIXED, using=with_echo, **RICH)
    paths = []
    for start in (0, 40, 80):
        mixed = MIXED[start : start + 40]
        lines = str(write_lines(mixed, f"part{start}.jsonl"))
        paths.append(lines)
    parts = run_lines([], output="parts", using=with_echo, target={"paths": paths}, **RICH)
    assert parts.metrics == uncut.metrics
    strip = lambda row: {key: value for key, value in row.items() if key != "source"}  # noqa: E731
    rows = parts.rows()
    strips = [strip(row) for row in rows]
    expected = [strip(row) for row in uncut.rows()]
    assert strips == expected


def test_native_files_of_one_input(run_lines, record, with_echo):
    report = run_lines([record("a", 1.0), "broken", record("b", **DO_SKIP)], using=with_echo)
    echo_path = report.path / "native/echo.json"
    text = echo_path.read_text()
    assert text == '[\n"a=1.0",\n"bad",\n"b=None"\n]\n'
    figures = read(report, "native/figures.json")
    assert figures["key"] == "quality"
    assert figures["ids"] == ["a", "b"]
    skipped = figures["states"]["skipped"]
    assert skipped == 1


def test_native_files_of_several_inputs(run_lines, write_lines, record, with_echo, small_shards):
    small_shards(1)
    one = write_lines([record("a", 1.0), record("b", 0.5)], "one.jsonl")
    two = write_lines([record("c", 0.25), record("d", 0.125)], "two.jsonl")
    paths = [str(one), str(two)]
    report = run_lines([], using=with_echo, target={"paths": paths})
    figures = {}
    for name in ("one", "two"):
        figures[name] = read(report, f"native/{name}/figures.json")
    assert {
        name: (figures_of_input["ids"], figures_of_input["sum"])
        for name, figures_of_input in figures.items()
    } == {
        "one": (["a", "b"], 1.5),
        "two": (["c", "d"], 0.375),
    }
    quality = report.aggregates["quality"]
    assert quality["toy_count"]["sum"] == 1.875
    toy_count = report.aggregates["quality"]["toy_count"]
    ids = toy_count["ids"]
    assert ids == ["a", "b", "c", "d"]


def test_an_exporter_needs_its_reader_and_its_graders(run_lines, record, with_echo):
    report = run_lines([record("a", 1.0)], using=with_echo, graders={"q": "tau_partial"})
    native_folder = report.path / "native"
    assert not native_folder.exists()
