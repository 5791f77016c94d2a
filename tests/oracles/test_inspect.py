"""Reader ``inspect`` against inspect_ai itself, which writes the logs and reads them back."""

import shutil

import pytest

import gradestack
from tests.plugins.chat_files import read

pytestmark = [pytest.mark.oracles, pytest.mark.filterwarnings("default")]
VALUES = {"C": 1.0, "I": 0.0, "P": 0.5}


@pytest.fixture(scope="module")
def inspect():
    return pytest.importorskip("inspect_ai", reason="no inspect_ai here; `make oracles` has it")


@pytest.fixture(scope="module")
def logs(inspect, tmp_path_factory):  # noqa: C901
    """Logs of one task in all forms: archives, JSON, samples in pieces."""
    from inspect_ai.dataset import Sample
    from inspect_ai.log._recorders.chunked import convert_eval_logs_to_chunked
    from inspect_ai.model import ChatMessageUser, ContentText, ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import Score, accuracy, mean, scorer
    from inspect_ai.solver import generate, solver, use_tools
    from inspect_ai.tool import ToolError, tool

    @tool
    def add():
        async def execute(a: int, b: int):
            """Add.

            Args:
                a: First.
                b: Second.
            """
            if a == 13:
                raise ToolError("unlucky")
            return str(a + b)

        return execute

    @scorer(metrics=[accuracy()])
    def letter():
        async def score(state, target):
            return Score(value="P" if "partial" in state.input_text else "C", explanation="why")

        return score

    @scorer(metrics={"a": [mean()]})
    def several():
        async def score(state, target):
            return Score(value={"a": 0.25})

        return score

    @solver
    def breaks():
        async def solve(state, generate):
            if "break" in state.input_text:
                raise ValueError("it broke")
            state.store.set("k", {"v": 1})
            return state

        return solve

    def outputs():
        made = [
            ModelOutput.for_tool_call("mockllm/m", "add", {"a": 1, "b": 2}),
            ModelOutput.for_tool_call("mockllm/m", "add", {"a": 13, "b": 2}),
            ModelOutput.from_content("mockllm/m", "three"),
        ] * 20
        for sample in made:
            sample.usage = ModelUsage(
                input_tokens=10, output_tokens=5, total_tokens=30, input_tokens_cache_read=15
            )
        return made

    samples = [
        Sample(id=1, input="one", target="3", metadata={"domain": "x"}),
        Sample(
            id="two",
            input=[ChatMessageUser(content=[ContentText(text="partial " + "y" * 200)])],
            target=["a", "b"],
        ),
        Sample(id=3, input="break", target="z"),
    ]
    folder = tmp_path_factory.mktemp("logs")
    for form in ("eval", "json"):
        task = inspect.Task(
            samples,
            solver=[use_tools(add()), breaks(), generate()],
            scorer=[letter(), several()],
            epochs=2,
        )
        model = get_model("mockllm/m", custom_outputs=outputs())
        log_folder = str(folder / form)
        inspect.eval(
            task,
            model=model,
            log_format=form,
            log_dir=log_folder,
            display="none",
            fail_on_error=False,
            max_samples=1,
        )
    eval_folder = folder / "eval"
    pieces_folder = folder / "pieces"
    convert_eval_logs_to_chunked(
        str(eval_folder), str(pieces_folder), chunk_size=2, attachments_chunk_bytes=300
    )
    return folder


@pytest.mark.parametrize("form", ["eval", "json", "pieces"])
def test_samples_are_those_inspect_reads_back(logs, form, tmp_path):
    """Runs, calls, results, errors, scores, tokens, texts."""
    from inspect_ai.log import read_eval_log

    (path,) = (logs / form).iterdir()
    (readable,) = (
        logs / form.replace("pieces", "eval")
    ).iterdir()  # not all releases read pieces again
    log = read_eval_log(str(readable), resolve_attachments=True)
    samples_by_identity = {}
    copy = shutil.copy(path, tmp_path / path.name)
    for record in read("inspect", copy):
        samples_by_identity[(record.id, record.run)] = record
    sample_count = len(log.samples)
    assert len(samples_by_identity) == sample_count == 6
    for wanted in log.samples:
        sample = samples_by_identity[str(wanted.id), wanted.epoch]
        results = {}
        for message in wanted.messages:
            if message.role == "tool":
                results[message.tool_call_id] = message
        calls = [
            call
            for message in wanted.messages
            if message.role == "assistant"
            for call in message.tool_calls or ()
        ]
        expected = [(c.function, c.arguments) for c in calls]
        assert [(call.name, call.arguments) for call in sample.calls or ()] == expected
        errors = []
        for c in calls:
            result = results[c.id]
            errors.append(None if result.error is None else results[c.id].error.message)
        assert [call.error for call in sample.calls or ()] == errors
        pairs = zip(calls, errors, strict=True)
        assert [call.result or "" for call in sample.calls or ()] == [
            results[c.id].text or e for c, e in pairs
        ]
        failed = gradestack.Status.FAILED
        assert (sample.status is failed) is (wanted.error is not None)
        scores = {}
        for name, score in (wanted.scores or {}).items():
            scores[name] = VALUES.get(str(score.value), score.value)
        several = scores.pop("several", {})
        recorded = sample.recorded.items()
        assert {n: v for n, v in recorded if n != "explanations"} == {
            **scores,
            **{f"several.{name}": value for name, value in several.items()},
        }
        model_usage = wanted.model_usage.values()
        used = list(model_usage)
        total = sum(read_sample.output_tokens for read_sample in used)
        assert (sample.usage.output_tokens or 0) == total
        input_tokens = sample.usage.input_tokens
        assert (input_tokens or 0) == sum(
            read_sample.input_tokens + read_sample.input_tokens_cache_read for read_sample in used
        )
        completion = wanted.output.completion
        assert (sample.text or "") == (completion or "")
        assert (
            sample.input == wanted.input if isinstance(wanted.input, str) else wanted.input[0].text
        )
