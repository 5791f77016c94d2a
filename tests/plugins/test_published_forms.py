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
    texts = [str(path)]
    paths = expand(texts)
    recognised = recognise(paths, REGISTRY, None)
    reader = REGISTRY.load("reader", recognised.reader)()
    inputs = Inputs(data=name_inputs(recognised.paths))
    index = reader.index(inputs)
    shards = reader.plan(inputs, index)
    return [record for shard in shards for record in reader.read(shard, index)]


@pytest.mark.parametrize("folder", ["openai", "anthropic", "tau2", "bfcl", "gz", "inspect", "otel"])
def test_a_published_file_gives_its_samples(folder):
    """Ids, calls, text, tools, usage and references, by its name alone.

    Of BFCL also by its directory.
    """
    format_folder = reference("formats") / folder
    expected_path = format_folder / "expected.json"
    text = expected_path.read_text(encoding="utf-8")
    document = json.loads(text)
    for name, content in document.items():
        alternatives = content.get("alternatives", ())
        for path in [format_folder / file_name for file_name in (name, *alternatives)]:
            samples = samples_of(path)
            sample_count = len(content["samples"])
            assert len(samples) == sample_count, path
            for sample, wanted in zip(samples, content["samples"], strict=True):
                description = described_sample(sample)
                if isinstance(wanted["usage"], list):
                    usage = wanted["usage"]
                else:
                    usage = [wanted["usage"]]
                expected_here = None
                if sample.usage and usage[0]:
                    keys = usage[0]
                    expected_here = {key: getattr(sample.usage, key) for key in keys}
                assert expected_here in usage
                assert {**description, "usage": None} == {
                    **{key: wanted[key] for key in description},
                    "usage": None,
                }
                status = wanted.get("status", sample.status)
                assert sample.status == status
                if isinstance(wanted["id"], list):
                    known = wanted["id"]
                else:
                    known = [wanted["id"]]
                assert {None, sample.id} & set(known)
                model = wanted["model"]
                assert model == "any" or sample.model in wanted["model"]
                calls = sample.expected.calls or ()
                names_read = [call.name for call in calls]
                expected_calls = wanted.get("expected_calls", ())
                names = [expected_call["name"] for expected_call in expected_calls]
                expected_names = wanted.get(
                    "expected_names",
                    names,
                )
                assert names_read == expected_names
                recorded = wanted.get("recorded", {}).items()
                assert recorded <= dict(sample.recorded).items()
