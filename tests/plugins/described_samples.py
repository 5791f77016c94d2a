"""Samples compared with what an ``expected.json`` beside an example of a format says of them."""

from gradestack import Input, Inputs


def read(reader, *paths):
    inputs = Inputs(
        data=tuple(
            Input(path=path, name=f"{n}-{path.stem}", shown=str(path))
            for n, path in enumerate(paths)
        )
    )
    index = reader.index(inputs)
    shards = reader.plan(inputs, index)
    return [record for shard in shards for record in reader.read(shard, index)]


def described(sample, wanted):
    """Return a sample in the words of an expected.json, as far as that says something of it."""
    used = sample.usage
    calls = [_call(call) for call in sample.calls or ()]
    expected_calls = []
    for call in sample.expected.calls or ():
        expected_calls.append(
            {"name": call.name, "arguments": call.arguments, "requestor": call.requestor}
        )
    keys = wanted.get("recorded", ())
    recorded = {key: sample.recorded.get(key) for key in keys}
    if sample.tools is None:
        tools = None
    else:
        tools = len(sample.tools)
    expected_names = [call.name for call in sample.expected.calls or ()]
    usage = used and {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
    status = str(sample.status)
    description = {
        "id": sample.id,
        "run": sample.run,
        "model": sample.model,
        "calls": calls,
        "text": sample.text,
        "tools": tools,
        "usage": usage,
        "status": status,
        "expected_calls": expected_calls,
        "expected_names": expected_names,
        "recorded": recorded,
    }
    return {key: description[key] for key in wanted}


def _call(call):
    return {
        "name": call.name,
        "arguments": call.arguments,
        "result": call.result is not None,
        "error": call.error is not None,
    }


def agrees(sample, wanted):
    """Return whether a sample is what an expected.json says.

    Of a list of models or usages any will do.
    """
    description = described(sample, wanted)
    any_of = set()
    for key in ("model", "usage"):
        if isinstance(wanted.get(key), list):
            any_of.add(key)
    return all(
        description[key] in value if key in any_of else description[key] == value
        for key, value in wanted.items()
    )
