"""The reader of BFCL files.

Results joined with what stands beside them, and what is odd in a file.
"""

import os
from pathlib import Path

import pytest

from gradestack import DataError, Input, Inputs, testing
from gradestack_plugins.bfcl.reader import Bfcl
from tests.core.outcomes import data
from tests.plugins.described_samples import read

DATA = data(__file__, "reader.yaml")


def one(bfcl, reply, **more):
    question = bfcl.question()
    bfcl.questions(question)
    (sample,) = read(Bfcl(), bfcl.results(bfcl.result(reply, **more)))
    return sample


def remarks(*paths):
    return list(
        Bfcl().remarks(Inputs(data=tuple(Input(path=p, name=p.name, shown=p.name) for p in paths)))
    )


def test_types_are_put_into_json_schema(bfcl):
    """BFCL's words are mapped at every depth; what is no type of JSON Schema says nothing."""
    first_tool = one(bfcl, "Hello.").tools[0]
    assert first_tool.parameters == DATA["types_are_put_into_json_schema"]


def test_scores_of_other_entries_pass_nobody(bfcl):
    """A score file of another number of entries still says who failed, and the
    difference is said.
    """
    header = bfcl.header(8, 9)
    bfcl.scores(header, {"id": "parallel_9", "model_name": "m", "valid": False})
    result = bfcl.result("x")
    path = bfcl.results(result)
    (sample,) = read(Bfcl(), path)
    assert sample.recorded == {}
    messages = remarks(path)
    assert [message.partition(": ")[2] for message in messages] == [
        "1 failure(s) of its score file are of no result: parallel_9",
        "1 result(s), but its score file is of 9; only failures are taken from it",
    ]


def test_texts_of_calls_are_parsed_as_literals_only(bfcl, tmp_path):
    """Nothing is evaluated.

    What is no literal leaves the call its text, and what is no call is an answer.
    """
    mark = tmp_path / "opened"
    reply = (
        f"[find.trains(to='X', price=-1.5, stops=('a', None)), find.trains(to=open({str(mark)!r}, "
        "'w'))]"
    )
    sample = one(
        bfcl,
        reply,
    )
    expected = {"to": "X", "price": -1.5, "stops": ["a", None]}
    first_call = sample.calls[0]
    assert first_call.arguments == expected
    assert sample.calls[1].arguments is None
    expected_text = f"find.trains(to=open({str(mark)!r}, 'w'))"
    assert sample.calls[1].raw_arguments == expected_text
    assert sample.remarks == {"arguments_not_literal": 1}
    assert not mark.exists()
    assert sample.text is None


@pytest.mark.parametrize(
    ("line", "expected_remark"),
    [*DATA["broken_lines"], ("[" * 5000 + "]" * 5000, "line 2: nested too deeply")],
)
def test_broken_lines_of_possible_answers_are_said(bfcl, line, expected_remark):
    """Counted, the first with its line; what stands around them is joined."""
    question = bfcl.question()
    bfcl.questions(question)
    path = bfcl.answers(bfcl.answer([{"find.trains": {"to": ["G"]}}]))
    path.write_text(f"{path.read_text(encoding='utf-8')}{line}\n{line}\n", encoding="utf-8")
    result = bfcl.result("x")
    results = bfcl.results(result)
    (sample,) = read(Bfcl(), results)
    call_count = len(sample.expected.calls)
    assert call_count == 1
    (remark,) = remarks(results)
    head = (
        "possible_answer/BFCL_v4_parallel.json: 2 record(s) are neither question nor possible "
        "answer, the first on "
    )
    assert remark.startswith(head + expected_remark)
    assert len(remark) < 200


def test_a_broken_line_of_scores_passes_nobody(bfcl):
    question = bfcl.question()
    bfcl.questions(question)
    path = bfcl.scores({"accuracy": 0.0, "correct_count": 0, "total_count": 1})
    text = path.read_text(encoding="utf-8")
    path.write_text(text + '{"id": "parallel_0", "valid": fal\n', encoding="utf-8")
    result = bfcl.result("x")
    results = bfcl.results(result)
    (sample,) = read(Bfcl(), results)
    assert "valid" not in (sample.recorded or {})
    messages = remarks(results)
    assert any("an unknown number; only failures are taken" in message for message in messages)
    assert any(
        "non_live/BFCL_v4_parallel_score.json: 1 record(s) are no scores" in message
        for message in messages
    )


def test_what_has_no_counterpart_is_said(bfcl):
    """Results without a question, questions without a result, odd ground truth.

    Counted, the first three named.
    """
    bfcl.questions(*(bfcl.question(f"parallel_{n}") for n in range(5)))
    bfcl.answers(bfcl.answer([7]))
    result = bfcl.result("x")
    path = bfcl.results(result, bfcl.result("x", "parallel_77"))
    first, second = read(Bfcl(), path)
    assert first.remarks == {"ground_truth_unusable": 1}
    assert first.expected.calls is None
    assert second.remarks == {"question_missing": 1}
    messages = remarks(path)
    assert messages[0].endswith("1 result(s) without a question: parallel_77")
    assert messages[1] == "4 question(s) without a result: parallel_1, parallel_2, parallel_3, …"


def test_questions_alone_are_references_and_no_run(bfcl):
    """They can be read, and a run says in one sentence what is missing."""
    question = bfcl.question()
    path = bfcl.questions(question)
    bfcl.answers(bfcl.answer([{"find.trains": {"to": ["X"]}}]))
    (sample,) = read(Bfcl(), path, bfcl.root / "possible_answer" / path.name)
    assert sample.calls is None
    call_count = len(sample.expected.calls)
    assert call_count == 1
    tool_count = len(sample.tools)
    assert tool_count == 1
    with pytest.raises(DataError, match="questions without results"):
        remarks(path)
    with pytest.raises(DataError, match="a score file lists failures only"):
        read(Bfcl(), bfcl.scores(bfcl.header(1, 1), category="other"))


def test_files_given_together_are_joined_wherever_they_stand(bfcl, tmp_path):
    """Question, answer, score and result in one folder, all named."""
    question = bfcl.question()
    bfcl.questions(question)
    bfcl.answers(bfcl.answer([{"find.trains": {"to": ["X"]}}]))
    result = bfcl.result("x")
    bfcl.results(result)
    header = bfcl.header(1, 1)
    bfcl.scores(header)
    moved = []
    paths = sorted(bfcl.root.rglob("*.json"))
    for number, path in enumerate(paths):
        moved.append(tmp_path / f"{number}" / path.name)
        moved[-1].parent.mkdir()
        path.rename(moved[-1])
    (sample,) = read(Bfcl(), *moved)
    assert sample.input == "Trains?"
    assert sample.recorded == {"valid": True}
    assert sample.model is None
    call_count = len(sample.expected.calls)
    assert call_count == 1


def test_the_reader_keeps_the_contract(bfcl, tmp_path):
    path = bfcl.results(*(bfcl.result("x", f"parallel_{n}") for n in range(3)))
    testing.check_reader(Bfcl(), path, scratch=tmp_path)


PUBLISHED = os.environ.get("GRADESTACK_REFERENCE_DATA")
published = pytest.mark.skipif(not PUBLISHED, reason="GRADESTACK_REFERENCE_DATA is not set")


@published
def test_the_published_answers_are_understood():
    """Every possible answer of three categories is a list of calls with names and arguments."""
    published_path = Path(PUBLISHED)
    folder = published_path / "bfcl"
    for name, number in (("simple_python", 400), ("multiple", 200), ("parallel", 200)):
        file = f"BFCL_v4_{name}.json"
        samples = read(Bfcl(), folder / file, folder / "possible_answer" / file)
        assert len(samples) == number
        assert all(
            sample.expected.calls and sample.tools and not sample.remarks for sample in samples
        )
