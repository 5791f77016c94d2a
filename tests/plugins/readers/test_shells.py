"""Exit codes of shell tools, and when they are errors."""

import pytest

from gradestack import ToolCall
from gradestack_plugins.readers.chat.conversation import conversation_of, finish
from gradestack_plugins.readers.chat.shells import ONE_IS_FINE

RESULTS = {
    "first line": ("Exit code: 1\nfailed", 1),
    "last line": ("failed\nexited with code 2", 2),
    "sentence": ("Command failed with exit code 1", 1),
    "tag": ("<returncode>0</returncode>\nok", 0),
    "field": ({"stdout": "", "exit_code": 3}, 3),
    "metadata": ('{"output": "x", "metadata": {"exit_code": 1}}', 1),
    "returncode": ({"returncode": 0}, 0),
    "middle line": ("a\nExit code: 1\nb", None),
    "no code": ("1", None),
    "prose": ("it returns 3 rows", None),
}


def shell_call(command="pytest", name="Bash"):
    return ToolCall(name=name, arguments={"command": command})


@pytest.mark.parametrize("name", RESULTS)
def test_the_exit_code_is_read_from_a_field_or_the_first_or_last_line(name):
    result, code = RESULTS[name]
    call = shell_call()
    finish(call, result, None)
    assert call.exit_code == code
    assert call.status == ("error" if code else "ok")


@pytest.mark.parametrize("command", sorted(ONE_IS_FINE))
@pytest.mark.parametrize(("code", "status"), [(1, "ok"), (2, "error")])
def test_one_is_fine_where_a_command_found_nothing(command, code, status):
    call = shell_call(f"cd x && FOO=1 sudo /usr/bin/{command} a b")
    finish(call, f"Exit code: {code}", None)
    assert call.exit_code == code
    assert call.status == status


def test_the_last_command_decides():
    call = shell_call(["bash", "-lc", "grep a b; pytest -q"])
    finish(call, "Exit code: 1", None)
    assert call.status == "error"


def test_other_tools_have_no_exit_code():
    call = shell_call(name="search")
    finish(call, "Exit code: 2", None)
    assert call.exit_code is None
    assert call.status == "ok"


@pytest.mark.parametrize(("mark", "status"), [({"is_error": False}, "ok"), ({}, "error")])
def test_the_status_of_the_format_decides(mark, status):
    use = {"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "pytest"}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "Exit code: 1", **mark}
    messages = [
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    (call,) = conversation_of(messages).calls
    assert call.exit_code == 1
    assert call.status == status
