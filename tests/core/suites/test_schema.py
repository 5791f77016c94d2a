"""JSON Schemas: of options, and of suites."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
import jsonschema
import pytest
import yaml

from gradestack.suites.schema import class_schema, options, suite_schema, type_schema
from tests.core.outcomes import data

SUITE = """\
name: x
profile: upstream
target: {kind: recorded, paths: [a.jsonl], reader: jsonl}
graders:
  q: {kind: toy, factor: 0.5, weights: {a: 1}, names: [b], mode: loud, limit: null}
  r: toy
metrics:
  average: {kind: mean, of: q, confidence: 0.9}
  count: toy_count
gate: {op: gte, value: 0.5, metric_key: q}
reports: [html, {kind: dump, title: t}]
engine: serial
duplicates: last
"""


@pytest.fixture(scope="module")
def schema(registry):
    """The schema of suites with the toys installed."""
    found = suite_schema(registry)
    jsonschema.Draft202012Validator.check_schema(found)
    return found


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (bool, {"type": "boolean"}),
        (float, {"type": "number"}),
        (Path, {"type": "string"}),
        (Any, {}),
        (Literal["a", 3], {"enum": ["a", 3]}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (tuple[str, ...], {"type": "array", "items": {"type": "string"}}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (object, {}),
    ],
)
def test_types(kind, expected):
    assert type_schema(kind) == expected


def test_classes(toys):
    @attrs.frozen(kw_only=True)
    class Needy:
        wanted: str
        inner: toys.Dump = attrs.field(factory=toys.Dump)
        places: tuple[Path, ...] = (Path("a"),)
        names: frozenset[str] = frozenset({"b", "a"})
        place: Path = Path("x/y")

    found = class_schema(Needy)
    assert found["required"] == ["wanted"]
    assert found["additionalProperties"] is False
    assert found["properties"]["inner"]["default"] == {"title": "dump", "breaks": False}
    assert found["properties"]["names"]["default"] == ["a", "b"]
    assert found["properties"]["place"]["default"] == "x/y"
    assert found["properties"]["places"]["default"] == ["a"]
    assert [option.default for option in options(Needy)][:2] == [attrs.NOTHING, {"title": "dump", "breaks": False}]
    assert options(int) == []


def test_a_sound_suite_is_valid(schema):
    jsonschema.validate(yaml.safe_load(SUITE), schema)


@pytest.mark.parametrize("line", data(__file__, "schema.yaml")["valid"])
def test_every_other_form_is_valid_too(schema, line):
    jsonschema.validate(yaml.safe_load(line), schema)


@pytest.mark.parametrize(("old", "new"), data(__file__, "schema.yaml")["mistakes"])
def test_mistakes_are_not(schema, old, new):
    """An editor marks what the loader would refuse."""
    assert SUITE.count(old) == 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(SUITE.replace(old, new)), schema)


def test_a_component_that_cannot_be_loaded_is_left_to_the_loader(make_registry_, toys):
    found = suite_schema(make_registry_(toys.component("grader", "sick", "Missing")))
    jsonschema.validate({"target": {"paths": ["a"]}, "graders": {"q": "sick"}}, found)
