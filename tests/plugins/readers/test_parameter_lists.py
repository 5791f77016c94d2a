"""Tools whose parameters are a list."""

import pytest

from gradestack_plugins.readers.parameter_lists import list_schema


def test_types_and_required_names():
    """The six words become JSON Schema's, which are understood too; any other leaves the type undeclared."""
    words = ["str", "int", "float", "bool", "list", "dict", "string", "object", "Any", "list[str]", 3, None]
    schema = list_schema([{"name": f"p{n}", "type": word} for n, word in enumerate(words)])
    found = [schema["properties"][f"p{n}"].get("type") for n in range(len(words))]
    assert found == ["string", "integer", "number", "boolean", "array", "object", "string", "object", *[None] * 4]
    assert schema["required"] == [f"p{n}" for n in range(len(words))]
    assert list_schema([{"name": "a", "required": False, "description": "A"}, {"name": 1}, None]) == {
        "type": "object",
        "properties": {"a": {"description": "A"}},
        "required": [],
    }


DEFAULTS = [
    ("int", "3", 3),
    ("int", "x", None),
    ("float", "2.5", 2.5),
    ("float", "", None),
    ("bool", "Yes", True),
    ("bool", "1", True),
    ("bool", "no", False),
    ("str", "3", "3"),
    ("str", "", None),
    ("list", "[1, 2]", [1, 2]),
    ("list", "['a']", ["a"]),
    ("dict", "{'a': 1}", {"a": 1}),
    ("dict", "nope", None),
    ("list", "{1, 2}", None),
    ("list", "['\\d']", ["\\d"]),
]


@pytest.mark.parametrize(("kind", "text", "value"), DEFAULTS)
def test_defaults_of_the_own_form(kind, text, value):
    """A default converts to its type; what does not convert, and an empty one, is left out."""
    parameter = {"name": "a", "type": kind, "description": "", "required": False, "default": text}
    schema = list_schema([parameter])
    found = schema["properties"]["a"].get("default")
    assert (found, type(found)) == (value, type(value))
    required = {**parameter, "required": True}
    schema = list_schema([required])
    assert "default" not in schema["properties"]["a"]


def test_a_default_of_none_is_null():
    """The word none is null for lists and objects, and a text elsewhere."""
    for kind, expected in (("list", None), ("dict", None), ("str", "None")):
        parameter = {"name": "a", "type": kind, "required": False, "default": "None"}
        assert list_schema([parameter, "odd"])["properties"]["a"]["default"] == expected
