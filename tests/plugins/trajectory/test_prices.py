"""What a run cost, by a price file the user names."""

import pickle
from fractions import Fraction

import pytest

import gradestack
from gradestack import Expectation, ExpectedCall, Message, Sample, ToolCall, Usage
from gradestack.suites.strict import Problems, structure
from gradestack_plugins.trajectory.usage import RunUsage
from tests.core.outcomes import data

DATA = data(__file__, "prices.yaml")

PRICES = "models:\n  m: {input: 2.5, output: 10, cached_input: 1.25, cache_write: 3}\n  plain: {input: 1, output: 2}\n"
TALK = ((Message(role="user"), Message(role="assistant")), (Message(role="user"), Message(role="assistant")))


@pytest.fixture
def priced(tmp_path):
    (tmp_path / "prices.yaml").write_text(PRICES)
    return structure({"prices": "prices.yaml", "score": "cost_usd"}, RunUsage, tmp_path)


def sample(model="m", **usage):
    return Sample(id="a", model=model, turns=TALK, calls=(), usage=Usage(**usage))


def test_the_cost_is_worked_out_from_recorded_tokens(priced):
    """Cached and written tokens are part of the input, each at its own price; a recorded cost does not count."""
    tokens = {"input_tokens": 1000, "cached_input_tokens": 300, "cache_write_tokens": 200, "output_tokens": 50}
    grade = priced.grade(sample(**tokens, cost_usd=9.0))
    assert grade.score == float((500 * Fraction(5, 2) + 300 * Fraction(5, 4) + 200 * 3 + 50 * 10) / 1_000_000)
    assert priced.grade(sample("plain", **tokens)).score == 0.0011
    assert priced.grade(sample(input_tokens=0, output_tokens=0)).score == 0.0
    copied = pickle.loads(pickle.dumps(priced))  # noqa: S301 - what a worker process gets
    assert copied.grade(sample(**tokens)).score == grade.score


@pytest.mark.parametrize("usage", DATA["what_is_not_known_has_no_cost"])
def test_what_is_not_known_has_no_cost(priced, usage):
    """Tokens that are not recorded, or cannot be."""
    grade = priced.grade(sample(**usage))
    assert (grade.score, grade.reasons[0].code) == (None, "usage_not_recorded")


def test_a_model_without_a_price_has_no_cost(priced, tmp_path):
    """That is said, and the other figures stay."""
    grade = priced.grade(sample("other", input_tokens=1, output_tokens=1))
    assert [each.code for each in grade.reasons] == ["usage_not_recorded", "no_price"]
    grade = RunUsage(prices=tmp_path / "prices.yaml").grade(
        sample("other", input_tokens=1, output_tokens=1, cost_usd=1)
    )
    assert (grade.score, grade.parts["cost_usd"], grade.reasons[0].subject) == (2.0, None, "other")


def test_without_a_price_file_the_recorded_cost_stands():
    assert RunUsage(score="cost_usd").grade(sample(cost_usd=0.5)).score == 0.5
    assert RunUsage(score="cost_usd").grade(sample(input_tokens=1, output_tokens=1)).score is None


@pytest.mark.parametrize(("text", "said"), DATA["a_bad_price_file_is_one_clear_error"])
def test_a_bad_price_file_is_one_clear_error(tmp_path, text, said):
    """It names the file and the place, before any data is read."""
    if text is not None:
        (tmp_path / "prices.yaml").write_text(text)
    with pytest.raises(Problems, match=said) as caught:
        structure({"prices": "prices.yaml"}, RunUsage, tmp_path)
    assert len(caught.value.found) == 1
    assert "prices.yaml" in str(caught.value)


def test_a_suite_names_its_price_file(tmp_path):
    """Relative to the suite; a bad one is refused there."""
    (tmp_path / "prices.json").write_text('{"models": {"m": {"input": 1, "output": 1}}}')
    line = '{"id": "a", "model": "m", "predicted": [], "usage": {"input_tokens": 1000000, "output_tokens": 1000000}}'
    (tmp_path / "runs.jsonl").write_text(line + "\n")
    suite = (
        "name: s\ntarget: {paths: [runs.jsonl]}\ngraders: {u: {kind: usage, score: cost_usd, prices: prices.json}}\n"
    )
    (tmp_path / "suite.yaml").write_text(suite)
    report = gradestack.run(tmp_path / "suite.yaml", output=tmp_path / "out")
    assert report.metrics["avg_score_attempted"] == 2.0
    (tmp_path / "prices.json").write_text("[]")
    with pytest.raises(gradestack.ConfigError, match="problem in the configuration") as caught:
        gradestack.run(tmp_path / "suite.yaml", output=tmp_path / "again")
    assert "graders.u" in str(caught.value)


def test_means_by_turn_and_the_ratio_to_what_is_expected():
    made = (ToolCall(name="a"),) * 3
    wanted = (ExpectedCall(name="a"), ExpectedCall(name="b"), ExpectedCall(name="c", optional=True))
    usage = Usage(input_tokens=10, seconds=3.0)
    found = RunUsage().grade(Sample(id="a", turns=TALK, calls=made, usage=usage, expected=Expectation(calls=wanted)))
    named = {
        name: found.parts[f"{name}_per_turn"] for name in ("steps", "calls", "input_tokens", "output_tokens", "seconds")
    }
    assert named == {"steps": 1.0, "calls": 1.5, "input_tokens": 5.0, "output_tokens": None, "seconds": 1.5}
    assert found.parts["step_ratio"] == 1.5
    for expected in (Expectation(), Expectation(calls=()), Expectation(calls=wanted[2:])):
        grade = RunUsage().grade(Sample(id="a", turns=TALK, calls=made, expected=expected))
        assert grade.parts["step_ratio"] is None
