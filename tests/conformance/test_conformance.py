"""Every installed component keeps the laws; a component cannot be added without passing here."""

import attrs
import pytest

from gradestack import discover, testing
from gradestack.suites.options import Problems, _convert, fields_of, structure
from tests.core.outcomes import some_of

REGISTRY = discover(limit="")
COMPONENTS = [component for component, _ in REGISTRY.components()]


def _of(kind):
    return [
        pytest.param(component, id=component.name)
        for component in COMPONENTS
        if component.kind == kind
    ]


def _made(component):
    """Make the component with no options, and with those of a profile, where it takes them."""
    target = REGISTRY.load(component.kind, component.name)
    variants = []
    for options in ({}, {"profile": "upstream"}):
        try:
            variants.append(structure(options, target))
        except Problems:
            continue
    return variants


def test_no_built_in_plugin_is_broken():
    assert REGISTRY.broken == ()
    assert REGISTRY.conflicts == []


@pytest.mark.parametrize(
    "component", [pytest.param(c, id=f"{c.kind}-{c.name}") for c in COMPONENTS]
)
def test_component_is_importable_documented_and_plain(component):
    """A component is of its kind, has a docstring, and options that a YAML can set."""
    testing.check_component(component)


BARE = [component for component in _of("grader") if _made(component.values[0])]
"""Graders that can be made without options.

Of the others, their family's tests run the kit with some.
"""


@pytest.mark.parametrize("component", BARE)
def test_grader_keeps_the_contract(component):
    """A grader is pure, deterministic, frugal and never raises, in both profiles."""
    for grader in _made(component):
        testing.check_grader(grader)


@pytest.mark.parametrize("component", some_of(BARE, 10))
def test_grader_does_not_depend_on_hash_seed(component):
    """Grades do not depend on the order of sets."""
    testing.check_hash_seeds(_made(component)[0])


@pytest.mark.parametrize("component", some_of(_of("aggregator"), 3))
def test_aggregator_keeps_the_laws(component):
    """Figures are declared, and the same for equal grades and however the samples are cut."""
    made = _made(component)
    assert made, "it cannot be made without options"
    for aggregator in made:
        for seed in (1, 2, 3):
            testing.check_aggregator(aggregator, seed=seed)


SURE = [
    component
    for component in COMPONENTS
    if component.kind == "aggregator"
    and "confidence" in attrs.fields_dict(REGISTRY.load(component.kind, component.name))
]


@pytest.mark.parametrize(
    "component", [pytest.param(component, id=component.name) for component in SURE]
)
def test_a_confidence_is_between_0_and_1(component):
    """A suite that asks for 95 instead of 0.95 is refused before anything is read."""
    made = REGISTRY.load("aggregator", component.name)
    assert made(confidence=0.5).confidence == 0.5
    for value in (0, 1, 95):
        match = f"confidence must be between 0 and 1, got {value}"
        with pytest.raises(ValueError, match=match):
            made(confidence=value)


@pytest.mark.parametrize("value", ["text", 1, {"a": "b"}, ["a"]], ids=repr)
def test_options_of_every_type_are_converted_or_refused_as_values(value):
    """A type that the converter does not know would refuse the option whatever is written."""
    unsupported = []
    for component in COMPONENTS:
        component_class = REGISTRY.load(component.kind, component.name)
        fields = fields_of(component_class)
        for name, field in (fields or {}).items():
            try:
                _convert(value, field.kind, None)
            except Exception as error:  # noqa: BLE001 - whatever a class refuses its options with
                if "not supported" in str(error):
                    unsupported.append(f"{component.kind} {component.name}: {name}")
    assert unsupported == []
