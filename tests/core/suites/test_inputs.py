"""From paths to named inputs, and from a file's head to its reader."""

import os
import socket

import pytest
import yaml

import gradestack
from gradestack import ConfigError, DataError
from gradestack.copies.files import Folder
from gradestack.suites.recognition import expand, name_inputs, recognise
from tests.core.outcomes import data

DATA = data(__file__, "inputs.yaml")

LINE = '{"id": "a", "expected": "x"}\n'


@pytest.fixture
def inputs_folder(tmp_path):
    """A directory with files of two formats and one of none."""
    for name in ("runs/b.jsonl", "runs/a.jsonl", "runs/deep/c.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(LINE)
    (tmp_path / "runs/.hidden.jsonl").write_text(LINE)
    notes_path = tmp_path / "runs/notes.txt"
    notes_path.write_text("just notes")
    x_path = tmp_path / "x.numbers"
    x_path.write_text("numbers\n1\n")
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "nothing").mkdir()
    loop_folder = tmp_path / "runs/loop"
    loop_folder.symlink_to("loop")
    return tmp_path


def names(paths, base):
    return [path.relative_to(base).as_posix() for path in paths]


def test_patterns_are_expanded_in_sorted_order(inputs_folder):
    folder = Folder(inputs_folder)
    expanded = expand(["runs/*.jsonl", "x.numbers", "runs/a.jsonl"], folder)
    assert names(expanded, inputs_folder) == [
        "runs/a.jsonl",
        "runs/b.jsonl",
        "x.numbers",
        "runs/a.jsonl",
    ]
    texts = [f"{inputs_folder}/runs/**/*.jsonl"]
    paths = expand(texts)
    assert names(paths, inputs_folder) == [
        "runs/a.jsonl",
        "runs/b.jsonl",
        "runs/deep/c.jsonl",
    ]


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(inputs_folder):
    odd_1_path = inputs_folder / "odd[1].jsonl"
    odd_1_path.write_text(LINE)
    folder = Folder(inputs_folder)
    paths = expand(["odd[1].jsonl"], folder)
    assert names(paths, inputs_folder) == ["odd[1].jsonl"]


@pytest.mark.parametrize(
    ("given_paths", "message"),
    [*DATA["paths_that_lead_nowhere"], ("x" * 300, "File name too long")],
)
def test_paths_that_lead_nowhere(inputs_folder, given_paths, message):
    with pytest.raises(DataError) as caught:
        expand([given_paths], Folder(inputs_folder))
    assert message in str(caught.value)


def test_a_path_that_leads_nowhere_names_the_file_it_may_have_meant(tmp_path):
    openai_path = tmp_path / "openai.jsonl"
    openai_path.write_text("{}")
    for path_name, hint in [("openai.json", " (did you mean 'openai.jsonl'?)"), ("nai.jsonl", "")]:
        with pytest.raises(DataError) as caught:
            expand([path_name], Folder(tmp_path))
        expected_text = f"{tmp_path / path_name}: no such file or directory{hint}"
        assert str(caught.value) == expected_text


def test_pipes_and_sockets_are_refused(inputs_folder):
    """They cannot be read twice; a reader would wait for ever."""
    pipe_folder = inputs_folder / "pipe"
    os.mkfifo(pipe_folder)
    with socket.socket(socket.AF_UNIX) as made:
        sock_folder = inputs_folder / "sock"
        made.bind(os.path.relpath(sock_folder))
        for name in ("pipe", "sock"):
            match = f"{name}: neither a file nor a directory"
            with pytest.raises(DataError, match=match):
                expand([name], Folder(inputs_folder))


@pytest.mark.parametrize(("paths", "expected", "shown"), DATA["names_are_short_and_unique"])
def test_names_are_short_and_unique(tmp_path, monkeypatch, paths, expected, shown):
    """Stems, numbered where they repeat.

    Shown with as few folders as tell them apart, never from the root.
    """
    monkeypatch.chdir(tmp_path)
    made = []
    for text in paths:
        if text.startswith("/"):
            path = tmp_path / text.lstrip("/")
        else:
            path = tmp_path / text
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        made.append(path)
    named_inputs = name_inputs(made)
    assert [named_input.name for named_input in named_inputs] == expected
    assert [named_input.shown for named_input in named_inputs] == shown
    name_count = len({named_input.name for named_input in named_inputs})
    assert name_count == len(named_inputs)


def test_a_directory_is_named_whole(tmp_path, monkeypatch):
    """A dot in it is no suffix; the working directory has its own name."""
    (tmp_path / "runs.v1").mkdir()
    runs_path = tmp_path / "runs.v1"
    first_name_input = name_inputs([runs_path])[0]
    assert first_name_input.name == "runs.v1"
    monkeypatch.chdir(tmp_path / "runs.v1")
    paths = expand(["."])
    (here,) = name_inputs(paths)
    assert here.name == "runs.v1"
    assert here.shown == "runs.v1"


def test_the_format_is_recognised(inputs_folder, registry):
    folder = Folder(inputs_folder)
    paths = expand(["x.numbers"], folder)
    assert recognise(paths, registry, None).reader == "numbers"


def test_directories_are_searched(inputs_folder, registry):
    """All files below, sorted, hidden ones aside.

    What is not recognised is told by its path below the directory.
    """
    folder = Folder(inputs_folder)
    paths = expand(["runs"], folder)
    recognised = recognise(paths, registry, None)
    assert recognised.reader == "jsonl"
    assert names(recognised.paths, inputs_folder) == [
        "runs/a.jsonl",
        "runs/b.jsonl",
        "runs/deep/c.jsonl",
    ]
    assert recognised.ignored == ["runs/notes.txt"]


def test_a_named_reader_is_believed(inputs_folder, registry):
    """Nothing is guessed for files; a directory is searched for files it knows."""
    notes_path = inputs_folder / "runs/notes.txt"
    paths = recognise([notes_path], registry, "jsonl").paths
    assert paths == [inputs_folder / "runs/notes.txt"]
    runs_folder = inputs_folder / "runs"
    path_count = len(recognise([runs_folder], registry, "jsonl").paths)
    assert path_count == 3


@pytest.mark.parametrize(("given_paths", "message"), DATA["what_is_not_recognised"])
def test_what_is_not_recognised(inputs_folder, registry, given_paths, message):
    with pytest.raises(DataError) as caught:
        recognise(expand(given_paths, Folder(inputs_folder)), registry, None)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "reader"), [("run", None), ("run", "letta"), ("runs/deep", "numbers")]
)
def test_directories_nobody_can_read(inputs_folder, registry, run_lines, name, reader):
    a_path = inputs_folder / "runs/a.jsonl"
    run_lines(a_path, output="run")
    (inputs_folder / "run/results.jsonl").unlink()
    message = {
        "run": "a run without rows (results.jsonl is gone): there is nothing in it to grade again",
        "runs/deep": "numbers recognises nothing in this directory; name the files it shall read",
    }
    with pytest.raises(DataError) as caught:
        recognise([inputs_folder / name], registry, reader)
    expected_text = f"{inputs_folder / name}: {message[name]}"
    assert str(caught.value) == expected_text


def test_a_run_that_kept_no_rows_is_not_read_again(inputs_folder, registry, run_lines):
    a_path = inputs_folder / "runs/a.jsonl"
    run_lines(a_path, output="run", rows="none")
    with pytest.raises(
        DataError, match=r"run: a run without rows \(rows: none\): there is nothing in it"
    ):
        recognise([inputs_folder / "run"], registry, None)


def test_several_formats_at_once_are_refused(inputs_folder, registry):
    """The lines that the error suggests can be pasted into a suite."""
    formats = (
        r"jsonl \(3 of them, such as .*a\.jsonl\), numbers \(1 of them, such as .*x\.numbers\)"
    )
    match = f"the inputs are of several formats: {formats}\n  - "
    with pytest.raises(ConfigError, match=match) as caught:
        recognise(expand(["runs", "x.numbers"], Folder(inputs_folder)), registry, None)
    target = yaml.safe_load(str(caught.value).partition(" in a suite: ")[2])
    suite = gradestack.load_suite({**target, "graders": {"x": "toy"}}, registry=registry)
    assert suite.reader.name == "jsonl + numbers"


def test_two_readers_that_claim_one_file_are_named(inputs_folder, make_registry_, toys):
    component = toys.component("reader", "numbers2", "Numbers")
    using = make_registry_(component)
    with pytest.raises(
        ConfigError, match="could be numbers or numbers2; name the format with --reader"
    ):
        recognise([inputs_folder / "x.numbers"], using, None)


def test_a_reader_that_stumbles_does_not_know_the_file(
    inputs_folder, make_registry_, toys, monkeypatch
):
    """A broken sniff, or a reader that cannot be loaded, does not keep the others from working."""

    def stumble(cls, path, head):
        raise LookupError

    monkeypatch.setattr(toys.Numbers, "sniff", classmethod(stumble))
    component = toys.component("reader", "sick", "Missing")
    using = make_registry_(component)
    a_path = inputs_folder / "runs/a.jsonl"
    assert recognise([a_path], using, None).reader == "jsonl"
    with pytest.raises(DataError, match="not recognised"):
        recognise([inputs_folder / "x.numbers"], using, None)


def test_one_file_is_read_once_whatever_its_spelling(inputs_folder, registry, monkeypatch):
    monkeypatch.chdir(inputs_folder)
    link_path = inputs_folder / "link.jsonl"
    link_path.symlink_to("runs/a.jsonl")
    a_path = inputs_folder / "runs/a.jsonl"
    given_paths = [
        "runs/a.jsonl",
        "./runs/a.jsonl",
        "runs/../runs/a.jsonl",
        str(a_path),
        "link.jsonl",
    ]
    texts = [*given_paths, "runs/*.jsonl"]
    recognised = recognise(expand(texts), registry, None)
    paths = [str(path) for path in recognised.paths]
    assert paths == ["runs/a.jsonl", "runs/b.jsonl"]
    assert [(str(path), message) for path, message in recognised.remarks] == [
        ("runs/a.jsonl", ": given 6 times; it is read once")
    ]
    recognised = recognise(expand(["runs", "runs/a.jsonl"]), registry, "jsonl")
    count = sum(path.name == "a.jsonl" for path in recognised.paths)
    assert count == 1
    messages = [message for _, message in recognised.remarks]
    assert messages == [": given 2 times; it is read once"]
