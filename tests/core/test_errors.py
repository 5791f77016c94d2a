"""Errors people may cause."""

import pickle

import pytest

from gradestack import ConfigError, DataError, GradestackError, PluginError


@pytest.mark.parametrize(("kind", "code"), [(ConfigError, 2), (DataError, 3), (PluginError, 4)])
def test_every_error_has_its_exit_code(kind, code):
    """And one base, caught at one place."""
    assert kind.exit_code == code
    assert issubclass(kind, GradestackError)


def test_all_problems_are_shown():
    """One line each, below the head line."""
    error = ConfigError("two problems", "first", "second")
    assert str(error) == "two problems\n  - first\n  - second"
    assert error.problems == ("first", "second")


def test_errors_cross_process_borders():
    """With their problems."""
    error = pickle.loads(pickle.dumps(DataError("head", "one", "two")))  # noqa: S301
    assert (type(error), str(error)) == (DataError, "head\n  - one\n  - two")
