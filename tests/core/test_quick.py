"""Makers build the very objects the classes build."""

import copy
import pickle

import attrs
import pytest

from gradestack import model
from gradestack.quick import maker
from gradestack_plugins.tau_bench.records import Call

HOT = [
    model.Source,
    model.Fault,
    model.ToolCall,
    model.Message,
    model.ToolSpec,
    model.Expectation,
    model.Sample,
    model.BadRecord,
    model.Reason,
    model.Item,
    model.Grade,
    model.Key,
    Call,
]
VALUES = [f"value {number}" for number in range(40)]


@pytest.fixture(params=HOT, ids=lambda cls: cls.__name__)
def hot(request):
    """Each class that is made for every sample."""
    return request.param


def _names(cls):
    return [field.name for field in attrs.fields(cls)]


def _usually(cls, values):
    return cls(**dict(zip(_names(cls), values, strict=False)))


def test_what_is_made_by_position_equals_what_is_made_by_name(hot):
    """Every field stands in its place, those that are not compared included."""
    values = VALUES[: len(_names(hot))]
    made, usual = maker(hot)(*values), (hot(*values) if hot is Call else _usually(hot, values))
    assert type(made) is hot
    assert made == usual
    assert hash(made) == hash(usual)
    assert repr(made) == repr(usual)
    assert [getattr(made, name) for name in _names(hot)] == values


def test_defaults_are_those_of_the_class(hot):
    """Left out at the end or all but the required ones; containers are fresh for every object."""
    required = [field.name for field in attrs.fields(hot) if field.default is attrs.NOTHING]
    given = {name: f"the {name}" for name in required}
    make = maker(hot)
    made, usual = make(**given), hot(**given)
    assert [getattr(made, name) for name in _names(hot)] == [getattr(usual, name) for name in _names(hot)]
    again = make(**given)
    for name in _names(hot):
        if isinstance(getattr(made, name), dict):
            assert getattr(made, name) is not getattr(again, name)


def test_what_is_made_is_frozen(hot):
    """No field can be set or deleted, none can be added, and there are no loose ends of the open twin."""
    made = maker(hot)(*VALUES[: len(_names(hot))])
    for name in [*_names(hot), "other"]:
        with pytest.raises((attrs.exceptions.FrozenInstanceError, AttributeError)):
            setattr(made, name, 1)
    with pytest.raises((attrs.exceptions.FrozenInstanceError, AttributeError)):
        delattr(made, _names(hot)[0])
    assert not hasattr(made, "__dict__")


def test_what_is_made_can_be_pickled_copied_and_evolved(hot):
    """As any object of the class."""
    values = VALUES[: len(_names(hot))]
    made = maker(hot)(*values)
    for other in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made), attrs.evolve(made)):  # noqa: S301
        assert type(other) is hot
        assert [getattr(other, name) for name in _names(hot)] == values


def test_a_required_field_cannot_be_forgotten(hot):
    """A maker refuses what the class refuses: too few fields, too many, unknown ones."""
    make, values = maker(hot), VALUES[: len(_names(hot))]
    with pytest.raises(TypeError):
        make(*values, "one more")
    with pytest.raises(TypeError):
        make(*values[:-1], stranger=1)
    if attrs.fields(hot)[0].default is attrs.NOTHING:
        with pytest.raises(TypeError):
            make()
