"""The reader of BFCL files.

Results joined with what stands beside them, and what is odd in a file.
"""

import os
from pathlib import Path

import pytest

import gradestack
from gradestack import BadRecord, DataError, Input, Inputs, Rule, Status, testing
from gradestack_plugins.bfcl.reader import Bfcl
from tests.core.outcomes import data
from tests.plugins.described_samples import read

DATA = data(__file__, "reader.yaml")


def one(bfcl, answer, **more):
    bfcl.questions(bfcl.question())
    (sample,) = read(Bfcl(), bfcl.results(bfcl.result(answer, **more)))
    return sample


def remarks(*paths):
    return list(
        Bfcl().remarks(Inputs(data=tuple(Input(path=p, name=p.name, shown=p.name) for p in paths)))
    )


def test_a_result_is_joined_with_everything_beside_it(bfcl):
    bfcl.questions(bfcl.question())
    bfcl.answers(bfcl.answer([{"find.trains": {"to": ["X"], "price": [1.5, ""]}}]))
    result = bfcl.results(bfcl.result([{"find.trains": '{"to": "X"}'}]))
    score = bfcl.scores(bfcl.header(1, 1))
    (sample,) = read(Bfcl(), result)
    assert (sample.id, sample.run, sample.model, sample.recorded) == (
        "parallel_0",
        None,
        "rail-1-FC",
        {"valid": True},
    )
    assert (sample.input, sample.text, sample.facets) == ("Trains?", None, {"category": "parallel"})
    assert [(call.name, call.arguments, call.step) for call in sample.calls] == [
        ("find.trains", {"to": "X"}, 0)
    ]
    assert sample.usage == gradestack.Usage(input_tokens=7, output_tokens=3, seconds=0.5)
    (wanted,) = sample.expected.calls
    assert wanted.arguments == {"to": "X", "price": 1.5}
    assert wanted.rules == {"price": Rule(any_of=(1.5,), optional=True)}
    assert sample.source.line == 1
    for path in (bfcl.root, score):
        (same,) = read(Bfcl(), path)
        assert gradestack.replace(same, source=None) == gradestack.replace(sample, source=None)


def test_types_are_put_into_json_schema(bfcl):
    """BFCL's words are mapped at every depth; what is no type of JSON Schema says nothing."""
    assert one(bfcl, "Hello.").tools[0].parameters == DATA["types_are_put_into_json_schema"]


def test_arguments_of_java_are_texts(bfcl):
    """Java and JavaScript values are handed over as source, whatever their type."""
    bfcl.questions(bfcl.question("simple_java_0"), category="simple_java")
    (sample,) = read(
        Bfcl(), bfcl.results(bfcl.result("x", "simple_java_0"), category="simple_java")
    )
    assert {each["type"] for each in sample.tools[0].parameters["properties"].values()} == {
        "string"
    }


def test_a_failure_is_not_valid(bfcl):
    """Score files list failures only; the others passed."""
    found = [bfcl.result("x", f"parallel_{n}") for n in range(2)]
    bfcl.scores(
        bfcl.header(1, 2),
        {
            "id": "parallel_1",
            "model_name": "m",
            "valid": False,
            "error": ["no"],
            "error_type": "a:b",
        },
    )
    first, second = read(Bfcl(), bfcl.results(*found))
    assert (first.recorded, second.recorded) == ({"valid": True}, {"valid": False})
    assert second.native.failure == {"error": ["no"], "error_type": "a:b"}


def test_scores_of_other_entries_pass_nobody(bfcl):
    """A score file of another number of entries still says who failed, and the
    difference is said.
    """
    bfcl.scores(bfcl.header(8, 9), {"id": "parallel_9", "model_name": "m", "valid": False})
    path = bfcl.results(bfcl.result("x"))
    (sample,) = read(Bfcl(), path)
    assert sample.recorded == {}
    assert [each.partition(": ")[2] for each in remarks(path)] == [
        "1 failure(s) of its score file are of no result: parallel_9",
        "1 result(s), but its score file is of 9; only failures are taken from it",
    ]


def test_values_are_rules_where_there_are_several(bfcl):
    """Equal values are one; objects keep lists of values, too.

    Where there is a choice, a schema describes them.
    """
    many = {f"k{n}": [1, 2] for n in range(7)}
    truth = {
        "f": {
            "same": ["a", "a"],
            "two": ["a", "b"],
            "none": [""],
            "flag": [True, 1],
            "o": [{"k": [1], "m": [2, ""]}],
        }
    }
    truth["f"] |= {"l": [[{"k": [1]}]], "many": [many]}
    bfcl.questions(bfcl.question())
    bfcl.answers(bfcl.answer([truth]))
    (sample,) = read(Bfcl(), bfcl.results(bfcl.result("x")))
    (wanted,) = sample.expected.calls
    assert {wanted.rules.pop(name).compare for name in ("many", "o")} == {"schema"}
    assert wanted.rules == {
        "two": Rule(any_of=("a", "b")),
        "none": Rule(any_of=("",), optional=True),
        "flag": Rule(any_of=(True, 1)),
    }
    assert wanted.arguments["same"] == "a"
    assert wanted.arguments["l"] == [{"k": 1}]
    assert "none" not in wanted.arguments


def test_texts_of_calls_are_parsed_as_literals_only(bfcl, tmp_path):
    """Nothing is evaluated.

    What is no literal leaves the call its text, and what is no call is an answer.
    """
    mark = tmp_path / "opened"
    sample = one(
        bfcl,
        f"[find.trains(to='X', price=-1.5, stops=('a', None)), find.trains(to=open({str(mark)!r}, "
        "'w'))]",
    )
    assert sample.calls[0].arguments == {"to": "X", "price": -1.5, "stops": ["a", None]}
    assert sample.calls[1].arguments is None
    assert sample.calls[1].raw_arguments == f"find.trains(to=open({str(mark)!r}, 'w'))"
    assert sample.remarks == {"arguments_not_literal": 1}
    assert not mark.exists()
    assert sample.text is None


@pytest.mark.parametrize(("answer", "names"), DATA["forms_of_answers"])
def test_forms_of_answers(bfcl, answer, names):
    """Fences, underscores for dots, positions for names, and texts that are no calls."""
    if isinstance(answer, str):
        answer = answer.replace("find_trains('X')", "find.trains('X')")
    assert [[call.name, call.arguments] for call in one(bfcl, answer).calls] == names


def test_turns_keep_calls_results_and_ground_truth_apart(bfcl):
    identifier = "multi_turn_base_0"
    log = DATA["log_of_turns_keep_calls_results_and_ground_truth_apart"]
    answer = [[[{"a": "{}"}, {"b": "{}"}], "Done."], ["Nothing to do."]]
    counts = {
        "input_token_count": [[1, 2], [3]],
        "output_token_count": [[1, 1], [1]],
        "latency": [[1.0, 1.0], [0.5]],
    }
    bfcl.questions(bfcl.question(identifier, "First.", "Second."), category="multi_turn_base")
    bfcl.answers(bfcl.answer([["a(x='1')", "b()"], []], identifier), category="multi_turn_base")
    path = bfcl.results(
        bfcl.result(answer, identifier, inference_log=log, **counts), category="multi_turn_base"
    )
    (sample,) = read(Bfcl(), path)
    assert sample.input == ("First.", "Second.")
    assert [
        (call.name, call.turn, call.step, call.result, call.status) for call in sample.calls
    ] == [
        ("a", 0, 0, "ok", "ok"),
        ("b", 0, 0, '{"error": "no"}', "error"),
    ]
    assert [[message.role for message in turn] for turn in sample.turns] == [
        ["user", "assistant", "tool", "tool", "assistant"],
        ["user", "assistant"],
    ]
    assert sample.text == "Nothing to do."
    assert [(call.name, call.arguments, call.turn) for call in sample.expected.calls] == [
        ("a", {"x": "1"}, 0),
        ("b", {}, 0),
    ]
    assert sample.usage == gradestack.Usage(input_tokens=6, output_tokens=3, seconds=2.5)


def test_tools_of_classes_stand_beside_the_questions(bfcl):
    """Their parameters give positions their names; excluded functions are left out."""
    bfcl.write(
        "multi_turn_func_doc/math_api.json",
        {**FIND_LIKE, "name": "add"},
        {**FIND_LIKE, "name": "gone"},
    )
    asked = bfcl.question(
        "multi_turn_base_0", involved_classes=["MathAPI"], excluded_function=["gone"]
    )
    del asked["function"]
    bfcl.questions(asked, category="multi_turn_base")
    bfcl.answers(bfcl.answer([["add(1, b=2)"]], "multi_turn_base_0"), category="multi_turn_base")
    (sample,) = read(
        Bfcl(),
        bfcl.results(bfcl.result([[["no"]]], "multi_turn_base_0"), category="multi_turn_base"),
    )
    assert [tool.name for tool in sample.tools] == ["add"]
    assert [call.arguments for call in sample.expected.calls] == [{"a": 1, "b": 2}]


FIND_LIKE = DATA["find_like"]


def test_accepted_texts_and_nothing_to_call_are_references(bfcl):
    """Agentic answers are texts, of any backend's run; irrelevant questions expect no call."""
    bfcl.questions(bfcl.question("memory_0-customer-0"), category="memory")
    bfcl.answers(bfcl.answer(["35", "thirty five"], "memory_0-customer-0"), category="memory")
    memory = bfcl.results(
        bfcl.result([[["It is 35."]]], "memory_kv_0-customer-0"), category="memory_kv"
    )
    nothing = bfcl.results(bfcl.result("No.", "irrelevance_0"), category="irrelevance")
    (sample,) = read(Bfcl(), memory)
    assert sample.expected.text == ("35", "thirty five")
    assert (sample.input, sample.text) == ("Trains?", "It is 35.")
    (sample,) = read(Bfcl(), nothing)
    assert sample.expected.calls == ()
    assert sample.calls == ()


def test_an_inference_error_is_a_failed_run(bfcl):
    """The model was not asked: nothing is known of its calls."""
    sample = one(bfcl, "Error during inference: timed out", traceback="…")
    assert (sample.status, sample.calls) == (Status.FAILED, None)
    assert "timed out" in sample.error.message


@pytest.mark.parametrize(
    ("line", "told"),
    [*DATA["broken_lines"], ("[" * 5000 + "]" * 5000, "line 2: nested too deeply")],
)
def test_broken_lines_of_possible_answers_are_said(bfcl, line, told):
    """Counted, the first with its line; what stands around them is joined."""
    bfcl.questions(bfcl.question())
    path = bfcl.answers(bfcl.answer([{"find.trains": {"to": ["G"]}}]))
    path.write_text(f"{path.read_text(encoding='utf-8')}{line}\n{line}\n", encoding="utf-8")
    results = bfcl.results(bfcl.result("x"))
    (sample,) = read(Bfcl(), results)
    assert len(sample.expected.calls) == 1
    (said,) = remarks(results)
    head = (
        "possible_answer/BFCL_v4_parallel.json: 2 record(s) are neither question nor possible "
        "answer, the first on "
    )
    assert said.startswith(head + told)
    assert len(said) < 200


def test_a_broken_line_of_scores_passes_nobody(bfcl):
    bfcl.questions(bfcl.question())
    path = bfcl.scores({"accuracy": 0.0, "correct_count": 0, "total_count": 1})
    path.write_text(
        path.read_text(encoding="utf-8") + '{"id": "parallel_0", "valid": fal\n', encoding="utf-8"
    )
    results = bfcl.results(bfcl.result("x"))
    (sample,) = read(Bfcl(), results)
    assert "valid" not in (sample.recorded or {})
    said = remarks(results)
    assert any("an unknown number; only failures are taken" in each for each in said)
    assert any(
        "non_live/BFCL_v4_parallel_score.json: 1 record(s) are no scores" in each for each in said
    )


def test_what_has_no_counterpart_is_said(bfcl):
    """Results without a question, questions without a result, odd ground truth.

    Counted, the first three named.
    """
    bfcl.questions(*(bfcl.question(f"parallel_{n}") for n in range(5)))
    bfcl.answers(bfcl.answer([7]))
    path = bfcl.results(bfcl.result("x"), bfcl.result("x", "parallel_77"))
    first, second = read(Bfcl(), path)
    assert first.remarks == {"ground_truth_unusable": 1}
    assert first.expected.calls is None
    assert second.remarks == {"question_missing": 1}
    said = remarks(path)
    assert said[0].endswith("1 result(s) without a question: parallel_77")
    assert said[1] == "4 question(s) without a result: parallel_1, parallel_2, parallel_3, …"


def test_bad_records_are_placed(bfcl):
    """What is no object, has no id or no result is reported with its line, and reading goes on."""
    path = bfcl.results(bfcl.result("x"), [1], {"result": "x"}, {"id": "parallel_3"})
    path.write_text(path.read_text() + "{\n")
    good, *bad = read(Bfcl(), path)
    assert good.id == "parallel_0"
    assert [each.source.line for each in bad] == [2, 3, 4, 5]
    assert all(isinstance(each, BadRecord) for each in bad)


def test_questions_alone_are_references_and_no_run(bfcl):
    """They can be read, and a run says in one sentence what is missing."""
    path = bfcl.questions(bfcl.question())
    bfcl.answers(bfcl.answer([{"find.trains": {"to": ["X"]}}]))
    (sample,) = read(Bfcl(), path, bfcl.root / "possible_answer" / path.name)
    assert (sample.calls, len(sample.expected.calls), len(sample.tools)) == (None, 1, 1)
    with pytest.raises(DataError, match="questions without results"):
        remarks(path)
    with pytest.raises(DataError, match="a score file lists failures only"):
        read(Bfcl(), bfcl.scores(bfcl.header(1, 1), category="other"))


def test_files_given_together_are_joined_wherever_they_stand(bfcl, tmp_path):
    """Question, answer, score and result in one folder, all named."""
    bfcl.questions(bfcl.question())
    bfcl.answers(bfcl.answer([{"find.trains": {"to": ["X"]}}]))
    bfcl.results(bfcl.result("x"))
    bfcl.scores(bfcl.header(1, 1))
    moved = []
    for place, path in enumerate(sorted(bfcl.root.rglob("*.json"))):
        moved.append(tmp_path / f"{place}" / path.name)
        moved[-1].parent.mkdir()
        path.rename(moved[-1])
    (sample,) = read(Bfcl(), *moved)
    assert (sample.input, sample.recorded, sample.model) == ("Trains?", {"valid": True}, None)
    assert len(sample.expected.calls) == 1


def test_the_reader_keeps_the_contract(bfcl, tmp_path):
    path = bfcl.results(*(bfcl.result("x", f"parallel_{n}") for n in range(3)))
    testing.check_reader(Bfcl(), path, scratch=tmp_path)


PUBLISHED = os.environ.get("GRADESTACK_REFERENCE_DATA")
published = pytest.mark.skipif(not PUBLISHED, reason="GRADESTACK_REFERENCE_DATA is not set")


@published
def test_the_published_answers_are_understood():
    """Every possible answer of three categories is a list of calls with names and arguments."""
    folder = Path(PUBLISHED) / "bfcl"
    for name, number in (("simple_python", 400), ("multiple", 200), ("parallel", 200)):
        file = f"BFCL_v4_{name}.json"
        found = read(Bfcl(), folder / file, folder / "possible_answer" / file)
        assert len(found) == number
        assert all(
            sample.expected.calls and sample.tools and not sample.remarks for sample in found
        )
