"""Chat logs for tests: written to a file, read back by the reader named."""

import json
import os
from pathlib import Path

import pytest

from gradestack import BadRecord, Inputs, discover
from gradestack.suites.recognition import name_inputs


def written(folder, records, name="log.jsonl"):
    path = folder / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def read(reader, *paths, **options):
    """Return the samples and bad records that a reader finds in files."""
    component = discover(limit="").load("reader", reader)(**options)
    inputs = Inputs(data=name_inputs(paths))
    index = component.index(inputs)
    shards = component.plan(inputs, index)
    return [record for shard in shards for record in component.read(shard, index)]


def certainties(path):
    """Return the certainty of every reader that claims the file, by the reader's name."""
    registry = discover(limit="")
    head = path.read_bytes()[: 64 * 1024]
    certainty_by_reader = {}
    for name in registry.names("reader"):
        certainty_by_reader[name] = registry.load("reader", name).sniff(path, head)
    return {name: sure for name, sure in certainty_by_reader.items() if sure}


def reference(folder):
    """Return a folder of the published data."""
    root = os.environ.get("GRADESTACK_REFERENCE_DATA")
    if not root:
        pytest.skip("GRADESTACK_REFERENCE_DATA is not set")
    root_path = Path(root)
    return root_path / folder


def described_sample(sample):
    """Describe a sample in the form of the published expectations."""
    assert not isinstance(sample, BadRecord), sample
    calls = []
    for c in sample.calls:
        calls.append(
            {
                "name": c.name,
                "arguments": c.arguments,
                "result": c.result is not None,
                "error": c.error is not None,
            }
        )
    if sample.tools is None:
        tools = None
    else:
        tools = len(sample.tools)
    usage = sample.usage
    return {"run": sample.run, "calls": calls, "text": sample.text, "tools": tools, "usage": usage}
