"""Chat logs with anything in the place of anything.

A sample or a bad record, and a page that can be written.
"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack import BadRecord, Grade, Input, Inputs, Sample
from gradestack_plugins.readers.api_logs import AnthropicLogs, OpenAILogs
from tests.conftest import examples
from tests.core.row_reference import row_bytes

_KEYS = """
messages request response body choices message output input role content type tool_calls function_call function id
call_id
tool_call_id tool_use_id name arguments custom error status usage prompt_tokens input_tokens tools functions metadata
task_id custom_id result params system stop_reason thinking text is_error object data instructions index finish_reason
approval_request_id approve summary server_label incomplete_details reason run trial conversation
"""
_WORDS = """
user assistant tool system function message function_call function_call_output mcp_call mcp_approval_request reasoning
mcp_approval_response web_search_call shell_call shell_call_output custom_tool_call text tool_use tool_result
server_tool_use mcp_tool_use web_search_tool_result thinking list response a {} {"error":1}
"""
KEYS, WORDS = _KEYS.split(), [*_WORDS.split(), "", "\ud800"]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
    ),
    max_leaves=40,
)
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(WORDS[:5])},
        optional=dict.fromkeys(
            ("content", "tool_calls", "function_call", "tool_call_id", "type", "name"), VALUES
        ),
    )
    | st.fixed_dictionaries(
        {"type": st.sampled_from(WORDS[5:])},
        optional=dict.fromkeys(
            ("call_id", "id", "name", "arguments", "output", "error", "status", "summary"), VALUES
        ),
    ),
    max_size=6,
)
RECORDS = (
    VALUES
    | ENTRIES
    | st.fixed_dictionaries(
        {"messages": ENTRIES}, optional={key: VALUES for key in KEYS if key != "messages"}
    )
    | st.fixed_dictionaries(
        {"object": st.just("response"), "output": ENTRIES},
        optional={"usage": VALUES, "tools": VALUES},
    )
    | st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": st.lists(VALUES, max_size=5)},
        optional={"usage": VALUES},
    )
)


@pytest.mark.parametrize("reader", [OpenAILogs(), AnthropicLogs()], ids=["openai", "anthropic"])
@settings(max_examples=examples(100))
@given(records=st.lists(RECORDS, min_size=1, max_size=3))
def test_anything_is_a_sample_or_a_bad_record(tmp_path_factory, reader, records):
    """Nothing raises, every sample can be written, and sniffing survives it too."""
    path = tmp_path_factory.getbasetemp() / "fuzzed.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    assert 0 <= type(reader).sniff(path, path.read_bytes()) <= 1
    inputs = Inputs(data=(Input(path=path, name="fuzzed", shown="fuzzed.jsonl"),))
    for shard in reader.plan(inputs, None):
        for found in reader.read(shard, None):
            assert isinstance(found, Sample | BadRecord)
            if isinstance(found, Sample):
                assert found.id
                assert row_bytes(found, {"g": Grade(score=1.0)}, "g", passed=True, submissions={})
