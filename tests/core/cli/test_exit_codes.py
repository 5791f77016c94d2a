"""Exit codes and messages, and never a traceback without --debug."""

import re

import pytest

import gradestack
from gradestack import Registry
from gradestack.registry import Plugin
from tests.core.outcomes import clean


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ["gone.jsonl: no such file or directory"]),
        (b"", ["data.jsonl: the file is empty"]),
        (b"just text\n", ["data.jsonl: the format is not recognised: it is no JSON", "; name it with --reader"]),
        (b'{"version": 9, "id": "a", "predicted": "x"}\n', ["data.jsonl:1: version 9 of the sample form", "upgrade"]),
    ],
)
def test_unusable_input_is_exit_3(command, here, content, words):
    name = "gone.jsonl"
    if content is not None:
        name = "data.jsonl"
        (here / name).write_bytes(content)
    clean(command("grade", name, "-o", "out"), 3, *words)
    assert not (here / "out").exists()


def test_a_suite_with_mistakes_is_exit_2(command, here):
    (here / "bad.yaml").write_text("nmae: x\ntarget: {paths: [runs.jsonl]}\ngraders: {q: toi}\n")
    for verb in ("run", "validate"):
        said = command(verb, "bad.yaml", *(["-o", "out"] if verb == "run" else []))
        problems = ["bad.yaml:1: nmae: unknown key", "bad.yaml:3: graders.q: unknown grader 'toi'"]
        clean(said, 2, "bad.yaml: 2 problems in the configuration", *problems)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--reader", "jsnl"], "unknown reader 'jsnl' (did you mean 'jsonl'?)"),
        (["--stack", "jsnl"], "unknown stack 'jsnl' (did you mean 'jsonl'?)"),
        (["--set", "graders.partial.kind=tau_partail"], "--set graders.partial.kind: unknown grader 'tau_partail'"),
        (["--set", "a=[1"], "--set a=[1: the value is not valid YAML"),
    ],
)
def test_mistaken_options_are_exit_2(command, here, options, words):
    clean(command("grade", "runs.jsonl", "-o", "out", *options), 2, words)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("runs.jsonl", "runs.jsonl: exists and is not a directory; name another place with -o"),
        ("runs.jsonl/below", "runs.jsonl is not a directory that can be written to"),
        ("runs.jsonl/below/deep", "runs.jsonl is not a directory that can be written to"),
        ("theirs", "theirs: the directory is not empty and not a gradestack run; name another with -o"),
        ("dangling", "dangling: exists and is not a directory"),
        (".", "holds the working directory"),
        ("..", "holds the working directory"),
        ("x" * 300, "File name too long"),
    ],
)
def test_places_that_cannot_be_used_are_exit_2(command, here, output, words):
    """Said before any work is done: the suite is not even read."""
    (here / "theirs").mkdir()
    (here / "theirs/data").touch()
    (here / "dangling").symlink_to("nowhere")
    before = sorted(here.iterdir())
    clean(command("run", "no-such-suite.yaml", "-o", output), 2, words)
    with pytest.raises(gradestack.ConfigError, match=rf"{re.escape(words)}|which this run reads"):
        gradestack.run("suite.yaml", output=output)
    assert sorted(here.iterdir()) == before


def test_a_place_the_system_refuses_is_exit_2(command, here):
    clean(
        command("run", "suite.yaml", "-o", "/proc/nowhere/out"), 2, "/proc/nowhere/out: cannot be written: No such file"
    )


def test_a_missing_suite_is_exit_2(command, here):
    clean(command("run", "suit.yaml", "-o", "out"), 2, "suit.yaml: no such file")
    clean(command("run", ".", "-o", "out"), 2, "Is a directory")


def test_a_broken_plugin_in_use_is_exit_4(command, here, toys):
    using = toys.make_registry(toys.component("grader", "sick", "Missing"))
    sick = Plugin(name="gone", distribution="gone-dist", version="9", error="ImportError: no libgone")
    command.use(Registry([*using.plugins, sick]))
    clean(
        command("run", "suite.yaml", "-o", "out", "--set", "graders.quality=sick"),
        4,
        "grader 'sick' of plugin toys",
        "AttributeError",
    )
    clean(
        command("run", "suite.yaml", "-o", "out", "--set", "graders.quality=whatever"),
        4,
        "gone (gone-dist 9): ImportError: no libgone",
    )
    assert command("run", "suite.yaml", "-o", "out", "-q").code == 0


def test_a_reporter_that_breaks_on_the_way_is_exit_4(command, here):
    options, said = ["--set", "reports=[{kind: dump, breaks: true}]"], "reporter dump is broken"
    loud = command("run", "suite.yaml", "-o", "out", *options)
    assert loud.code == 4
    assert re.search(rf"Warning: {said.removesuffix(' is broken')}.* is broken", loud.out)
    assert gradestack.load_report(here / "out").metrics["total"] == 2
    quiet = command("run", "suite.yaml", "-o", "out", "-q", *options)
    assert (quiet.code, quiet.out) == (4, "✓ PASSED\n")
    assert quiet.err.startswith(f"error: {said}")


def test_a_broken_reader_is_exit_4(command, here):
    """A surprise in a plugin is never a gate that failed."""
    clean(
        command("grade", "x.numbers", "-o", "out", "--set", "reader.where=read"),
        4,
        "reader Numbers (version 1) raised LookupError",
    )


def test_an_interruption_is_exit_130(command, here, write_lines, record):
    write_lines([record("a", 1.0), record("b", recorded={"do": "interrupt"}), record("c", 1.0)])
    said = command("run", "suite.yaml", "-o", "out")
    assert said.code == 130
    assert said.err == "interrupted: partial results were kept\n"
    assert "Incomplete: interrupted" in said.out
    assert "✗ FAILED" in said.out
    assert [row["sample"]["id"] for row in gradestack.load_report(here / "out").rows()] == ["a"]


def test_an_interruption_before_the_first_sample_is_exit_130(command, here, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("gradestack.grading.loop.shards_of", stop)
    said = command("run", "suite.yaml", "-o", "out")
    assert (said.code, said.err.strip()) == (130, "interrupted")
    assert not (here / "out").exists()
    assert not [path for path in here.iterdir() if path.name.startswith(".")]


def test_surprises_are_told_without_a_traceback(command, here, monkeypatch):
    def fail(error):
        def failing(*_, **__):
            raise error

        monkeypatch.setattr("gradestack.runner.run_suite", failing)

    fail(RuntimeError("strange\x1b"))
    clean(
        command("run", "suite.yaml", "-o", "out"), 4, "unexpected RuntimeError: strange\\x1b", "run again with --debug"
    )
    fail(OSError(28, "No space left on device", "/dev/full"))
    clean(command("run", "suite.yaml", "-o", "out"), 3, "/dev/full: No space left on device")


def test_debug_shows_the_traceback_and_keeps_the_exit_code(command, here):
    for arguments in (["--debug", "run", "gone.yaml"], ["run", "gone.yaml", "--debug"]):
        said = command(*arguments)
        assert said.code == 2
        assert "Traceback (most recent call last)" in said.err
        assert "error: gone.yaml: no such file" in said.err
