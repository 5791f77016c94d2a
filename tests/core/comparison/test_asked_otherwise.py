"""Tasks of one id that were asked something else, and graders that are not the same although they
are called so.
"""

from pathlib import Path

import pytest

from gradestack import DataError, compare
from tests.core.outcomes import read_json, write_records

pytestmark = pytest.mark.slow


def lines(inputs, expected="x", runs=1):
    """Return records of tasks by id, of which every other passes."""
    for task, question in enumerate(inputs):
        for run in range(runs):
            if callable(question):
                text = question(run)
            else:
                text = question
            gold = expected[task % len(expected)]
            prediction = gold if task % 2 else "no"
            yield {
                "id": str(task),
                "run": run,
                "input": text,
                "expected": gold,
                "predicted": prediction,
            }


@pytest.fixture
def graded(tmp_path, command, monkeypatch):
    """Return a function that writes records, grades them and returns the folder of the run."""
    monkeypatch.chdir(tmp_path)

    def grade(name, records, *options):
        path = tmp_path / f"{name}.jsonl"
        write_records(path, records)
        grader_options = options or ("--grader", "exact_match")
        done = command(
            "grade", f"{name}.jsonl", "-o", name, "--engine", "serial", "--quiet", *grader_options
        )
        assert done.code == 0, done
        return tmp_path / name

    return grade


QUESTIONS = [f"What is {n} + {n}?" for n in range(20)]
OTHERS = [f"Who was king in {n}?" for n in range(20)]


@pytest.mark.parametrize("rows", ["full", "compressed"])
def test_shifted_ids_are_refused(graded, command, rows):
    graded("a", lines(QUESTIONS), "--grader", "exact_match", "--rows", rows)
    questions = QUESTIONS[:-1]
    inputs = ["What is 99 + 99?", *questions]
    graded("b", lines(inputs), "--grader", "exact_match", "--rows", rows)
    done = command("compare", "a", "b")
    assert done.code == 3
    assert "cannot be compared" in done.err
    warning = (
        "20 of 20 tasks were asked something else in a than in b, the first: 1; 19 of them "
        "what a has under another id"
    )
    assert f"{warning}: ids may have shifted; try --match input" in done.err
    assert command("compare", "a", "b", "--match", "input").code == 0
    forced = command("compare", "a", "b", "--force")
    assert forced.code == 0
    assert "ids may have shifted" in forced.out


def test_shifted_places_are_refused_too(graded):
    command = lines(QUESTIONS)
    a = graded("a", command)
    inputs = QUESTIONS[1:]
    b = graded("b", lines(inputs))
    with pytest.raises(DataError) as caught:
        compare(a, b, match="ordinal")
    first_problem = caught.value.problems[0]
    assert "ordinals may have shifted" in first_problem


def test_other_questions_of_the_same_ids_are_refused(graded, command):
    """Where nothing else says that the tasks are the same.

    What is expected is the same for all of them.
    """
    graded("a", lines(QUESTIONS))
    others = OTHERS[:11]
    questions = QUESTIONS[11:]
    inputs = [*others, *questions]
    graded("b", lines(inputs))
    done = command("compare", "a", "b")
    assert done.code == 3
    assert "11 of 20 tasks were asked something else in a than in b, the first: 0" in done.err
    assert "shifted" not in done.err


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ([*OTHERS[:10], *QUESTIONS[10:]], "x"),
        ([f"Please: {question}" for question in QUESTIONS], "xyz"),
    ],
)
def test_other_wording_is_a_warning(graded, command, inputs, expected):
    """Half of the tasks differ at most, or the expected answers tell the tasks apart."""
    graded("a", lines(QUESTIONS, expected))
    graded("b", lines(inputs, expected))
    done = command("compare", "a", "b", "-o", "compared")
    assert done.code == 0
    path = Path("compared/comparison.json")
    data = read_json(path)
    (warning,) = data["warnings"]
    assert warning.endswith("tasks were asked something else in a than in b, the first: 0")
    assert f"warning: {warning}" in done.out
    for page in ("comparison.md", "comparison.html"):
        text = (Path("compared") / page).read_text()
        assert warning in text


def test_spaces_and_missing_inputs_are_no_difference(graded):
    """Nor is a list of turns with the same words; what one side does not record is not compared."""
    a = graded("a", lines(QUESTIONS))
    questions = QUESTIONS[1:]
    inputs = [None, *([f" {question}\n".replace(" is", "\tis")] for question in questions)]
    command = lines(inputs)
    b = graded(
        "b",
        command,
    )
    data = compare(a, b).data
    assert data["incomparable"] == []
    assert "warnings" not in data


def test_inputs_that_differ_between_trials_say_nothing(graded):
    """As those of simulated users do."""
    for name, word in (("a", "please"), ("b", "kindly")):
        inputs = [lambda run, n=n, word=word: f"{word} {run} {n}" for n in range(20)]
        command = lines(inputs, runs=2)
        graded(
            name,
            command,
        )
    comparison = compare("a", "b")
    assert "warnings" not in comparison.data


def test_a_gate_refuses_a_baseline_of_shifted_ids(graded, command):
    graded("before", lines(QUESTIONS))
    questions = QUESTIONS[:-1]
    inputs = ["What is new?", *questions]
    graded("now", lines(inputs))
    gate = "gate={kind: baseline, metric_key: exact_match, baseline: before, not_worse_than: 0.5}"
    done = command("grade", "now.jsonl", "--grader", "exact_match", "-o", "gated", "--set", gate)
    assert done.code == 3
    assert "ids may have shifted" in done.err
    assert not Path("gated").exists()


SHOUT = """from gradestack import Grade, Grader


class Shout(Grader):
    def grade(self, sample):
        return Grade(score={factor})
"""
FUNCTION = "from factor import FACTOR\n\n\ndef grade(sample):\n    return FACTOR\n"


@pytest.mark.parametrize(
    "options",
    [
        ("--grader", "./shout.py:Shout"),
        ("--set", "plugins=[./shout.py]", "--set", "graders={shout: shout}"),
    ],
)
def test_a_grader_of_other_code_is_another(graded, command, options):
    for name, factor in (("a", 1), ("b", 0.5), ("c", 1)):
        Path("shout.py").write_text(SHOUT.format(factor=factor))
        graded(name, lines(QUESTIONS), *options, "--allow-code")
    done = command("compare", "a", "b")
    assert done.code == 3
    assert "grader shout: code differs between a and b" in done.err
    assert command("compare", "a", "c").code == 0
    gate = "{kind: baseline, metric_key: shout, baseline: b, not_worse_than: 0.5}"
    done = command("grade", "a.jsonl", *options, "--allow-code", "-o", "d", "--set", f"gate={gate}")
    assert done.code == 3
    assert "grader shout: code differs between b and this run" in done.err


def test_code_that_a_grader_imports_is_part_of_it(graded, command):
    """From its own folder; a file beside it that it does not import is not."""
    for name, factor in (("a", 1), ("b", 0.5), ("c", 0.5)):
        Path("shout.py").write_text(FUNCTION)
        Path("factor.py").write_text(f"FACTOR = {factor}\n")
        Path("other.py").write_text(f"NAME = {name!r}\n")
        graded(name, lines(QUESTIONS), "--grader", "./shout.py:grade", "--allow-code")
    components = header("a")["components"]
    (entry,) = (component for component in components if component["kind"] == "grader")
    code = sorted(entry["code"])
    assert code == ["factor.py", "shout.py"]
    expected = command("compare", "a", "b").err
    assert "grader grade: code differs" in expected
    assert command("compare", "b", "c").code == 0


def header(name):
    return read_json(Path(name) / "header.json")


def sessions(folder, questions):
    """Write a file for each session, as coding agents do."""
    folder.mkdir()
    for number, question in enumerate(questions):
        line = {"id": f"{folder.name}-{number}", "input": question, "expected": "x"}
        path = folder / f"{number}.jsonl"
        write_records(path, [{**line, "predicted": "x"}])


WAYS = ("id", "input", "ordinal")


@pytest.mark.parametrize("match", WAYS)
def test_sessions_of_other_tasks_are_refused_with_advice_that_was_not_followed_yet(
    tmp_path, command, monkeypatch, match
):
    """Each session is the first record of its file, which does not make them trials of one task."""
    monkeypatch.chdir(tmp_path)
    others = OTHERS[:5]
    for name, questions in (("a", QUESTIONS[:5]), ("b", others)):
        folder = tmp_path / name
        sessions(folder, questions)
        graded = command("grade", name, "-o", f"{name}-out", "--grader", "exact_match", "--quiet")
        assert graded.code == 0, graded
    refused = command("compare", "a-out", "b-out", "--match", match)
    assert refused.code == 3
    advice = refused.err.partition("try --match ")[2].partition("\n")[0]
    assert match not in advice
    assert advice or "the files hold other tasks" in refused.err


def test_sessions_in_files_of_their_own_are_matched_by_what_was_asked(
    tmp_path, command, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        folder = tmp_path / name
        questions = QUESTIONS[:5]
        sessions(folder, questions)
        command("grade", name, "-o", f"{name}-out", "--grader", "exact_match", "--quiet")
    refused = command("compare", "a-out", "b-out", "--match", "ordinal")
    assert "were asked different things: they are no trials of one task" in refused.err
    assert command("compare", "a-out", "b-out", "--match", "input").code == 0


@pytest.mark.parametrize("match", ["input", "ordinal"])
def test_advice_on_a_missing_field_names_the_other_ways(graded, command, match):
    records = [{"id": "1", "expected": "x", "predicted": "x"}]
    graded("a", records)
    if match == "input":
        refused = command("compare", "a", "a", "--match", match)
        assert "use --match id or ordinal" in refused.err
    else:
        assert command("compare", "a", "a", "--match", match).code == 0


def test_worse_tasks_come_with_a_cause_that_failed_trials_of_the_baseline_do_not_have(graded):
    """The unchanged are counted by how often they pass."""
    call = {"name": "pay", "arguments": {}}
    other = {"name": "refund", "arguments": {}}

    def record(task, run, made):
        return {"id": task, "run": run, "expected": [call], "predicted": made}

    def write(name, made_by_task):
        records = []
        for task, trials in made_by_task.items():
            for run, made in enumerate(trials):
                records.append(record(task, run, made))
        return graded(name, records, "--grader", "tool_calls")

    right, missing, extra = [call], [], [call, other]
    before = {"1": [right, extra], "2": [right, right], "3": [missing, right], "4": [right, extra]}
    after = {"1": [missing, extra], "2": [right, right], "3": [right, right], "4": [extra, right]}
    a = write("a", before | {"5": [missing] * 2})
    b = write("b", after | {"5": [missing] * 2})
    comparison = compare(a, b).data["flips"]
    assert comparison["worse"] == {
        "count": 1,
        "tasks": [{"task": "1", "a": "1/2", "b": "0/2", "cause": "missing_call: pay"}],
    }
    assert comparison["better"] == {"count": 1, "tasks": [{"task": "3", "a": "1/2", "b": "2/2"}]}
    assert comparison["unchanged"] == {"never": 1, "sometimes": 1, "always": 1}
