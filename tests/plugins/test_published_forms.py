"""Every published file of the forms read here, as a user names it.

Its samples are those it should hold.
"""

import json

import pytest

import gradestack
from gradestack import Inputs
from gradestack.suites.recognition import expand, name_inputs, recognise
from tests.plugins.chat_files import described_sample, reference

REGISTRY = gradestack.discover(limit="")


def samples_of(path):
    recognised = recognise(expand([str(path)]), REGISTRY, None)
    reader, inputs = (
        REGISTRY.load("reader", recognised.reader)(),
        Inputs(data=name_inputs(recognised.paths)),
    )
    index = reader.index(inputs)
    return [record for shard in reader.plan(inputs, index) for record in reader.read(shard, index)]


@pytest.mark.parametrize("folder", ["openai", "anthropic", "tau2", "bfcl", "gz", "inspect", "otel"])
def test_a_published_file_gives_its_samples(folder):
    """Ids, calls, text, tools, usage and references, by its name alone.

    Of BFCL also by its directory.
    """
    format_folder = reference("formats") / folder
    for name, content in json.loads(
        (format_folder / "expected.json").read_text(encoding="utf-8")
    ).items():
        for path in [
            format_folder / file_name for file_name in (name, *content.get("alternatives", ()))
        ]:
            samples = samples_of(path)
            assert len(samples) == len(content["samples"]), path
            for sample, wanted in zip(samples, content["samples"], strict=True):
                description = described_sample(sample)
                if isinstance(wanted["usage"], list):
                    usage = wanted["usage"]
                else:
                    usage = [wanted["usage"]]
                expected_here = None
                if sample.usage and usage[0]:
                    expected_here = {key: getattr(sample.usage, key) for key in usage[0]}
                assert expected_here in usage
                assert {**description, "usage": None} == {
                    **{key: wanted[key] for key in description},
                    "usage": None,
                }
                assert sample.status == wanted.get("status", sample.status)
                if isinstance(wanted["id"], list):
                    known = wanted["id"]
                else:
                    known = [wanted["id"]]
                assert {None, sample.id} & set(known)
                assert wanted["model"] == "any" or sample.model in wanted["model"]
                expected = [call.name for call in sample.expected.calls or ()]
                assert expected == wanted.get(
                    "expected_names",
                    [expected_call["name"] for expected_call in wanted.get("expected_calls", ())],
                )
                assert wanted.get("recorded", {}).items() <= dict(sample.recorded).items()
