"""Tests of how often the interpreter collects garbage during a shard."""

import gc

import pytest

from gradestack.interpreter import for_a_shard


@pytest.fixture(autouse=True)
def threshold():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def _fail_inside():
    with for_a_shard():
        assert gc.get_threshold() == (100_000, 11, 12)
        raise KeyError


def test_less_often_inside_and_as_before_outside():
    gc.set_threshold(700, 11, 12)
    with pytest.raises(KeyError):
        _fail_inside()
    assert gc.get_threshold() == (700, 11, 12)


@pytest.mark.parametrize("chosen", [0, 120_000])
def test_a_caller_who_has_chosen_is_left_alone(chosen):
    gc.set_threshold(chosen, 10, 10)
    with for_a_shard():
        assert gc.get_threshold() == (chosen, 10, 10)
