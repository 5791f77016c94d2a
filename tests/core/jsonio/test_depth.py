"""JSON is read to one depth on every Python, by the interpreter's count of levels or by our own."""

import json

import pytest

from gradestack.interpreter import ROOM, for_a_shard
from gradestack.jsonio import (
    JsonProblem,
    check_depth,
    compact,
    iter_list,
    loads,
    standard_loads,
    values,
)

USED = 20
"""Levels that the functions between the shard and the decoder take, and more."""


@pytest.fixture(params=["as it is", "counted here"], autouse=True)
def count(request, monkeypatch):
    """Have levels counted as on this Python, and as on those that count functions alone."""
    if request.param == "counted here":
        monkeypatch.setattr(values, "_COUNTED", False)


def nested(levels, inner=""):
    return "[" * levels + inner + "]" * levels


def below(calls, read):
    if calls:
        return below(calls - 1, read)
    return read()


def listed(text, folder):
    """Read the only element of a list in a file, and raise its problem as other readers do."""
    path = folder / "list.json"
    path.write_text(f"[{text}]")
    (element,) = iter_list(path)
    if element.problem:
        raise JsonProblem(element.problem)


READERS = {
    "text": lambda text, _: loads(text),
    "bytes": lambda text, _: loads(text.encode()),
    "what msgspec refuses": lambda text, _: loads(text.replace("[]", "[NaN]")),
    "the standard library": lambda text, _: standard_loads(text),
    "an element of a list": listed,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("calls", [0, 300])
def test_levels_and_calls_share_one_limit(reader, calls, tmp_path):
    read = READERS[reader]
    with for_a_shard():
        below(calls, lambda: read(nested(ROOM - calls - USED), tmp_path))
        with pytest.raises((JsonProblem, RecursionError)) as caught:
            below(calls, lambda: read(nested(ROOM - calls + 5), tmp_path))
    assert "nested too deeply" in str(caught.value) or isinstance(caught.value, RecursionError)


@pytest.mark.parametrize("form", ["[", '{"a": '])
def test_what_is_broken_behind_its_depth_is_too_deep(form, tmp_path):
    """And what is broken in front of it is no JSON.

    The first mistake is the one that is reported.
    """
    for read in (loads, lambda text: loads(text.encode()), lambda text: listed(text, tmp_path)):
        with pytest.raises(JsonProblem, match="nested too deeply"):
            read(form * 3000)
        with pytest.raises(JsonProblem, match="not JSON"):
            read('{"a" 1, "b": ' + nested(3000) + "}")


def test_only_levels_count():
    """Lists side by side are no deeper than one, brackets inside texts are none, and neither are
    those outside.
    """
    wide = json.dumps([[[number]] for number in range(5000)])
    document_count = len(loads(wide))
    expected = len(loads(wide.encode()))
    assert document_count == expected == 5000
    texts = json.dumps(["[" * 3000, '\\"[{' * 1000, {'"': "{[" * 3000}])
    document = loads(texts)
    text = texts.encode()
    assert document == loads(text) == json.loads(texts)
    check_depth('[1, "' + "[" * 5000)


def test_what_is_too_deep_is_not_shown():
    value = []
    for _ in range(3000):
        value = [value]
    for deep in (value, {"a": value}):
        with pytest.raises(RecursionError):
            compact(deep)
