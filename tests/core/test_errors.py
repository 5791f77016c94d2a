"""Errors people may cause."""

import pickle

import pytest

from gradestack import ConfigError, DataError, GradestackError, PluginError, first_of, reading


@pytest.mark.parametrize(("kind", "code"), [(ConfigError, 2), (DataError, 3), (PluginError, 4)])
def test_every_error_has_its_exit_code(kind, code):
    assert kind.exit_code == code
    assert issubclass(kind, GradestackError)


def test_all_problems_are_shown():
    error = ConfigError("two problems", "first", "second")
    assert str(error) == "two problems\n  - first\n  - second"
    assert error.problems == ("first", "second")


def test_a_message_has_a_limit():
    error = ConfigError(
        "a" + "x" * 1_000_000 + "z", *(f"{number} {'y' * 5000} end" for number in range(5000))
    )
    head, *problems = str(error).split("\n")
    assert head[0] == "a"
    assert head[-1] == "z"
    assert len(head) == 2003
    assert len(problems) == 101
    first_problem = problems[0][-3:]
    assert first_problem == "end"
    last_problem = problems[-1]
    assert last_problem == "  - and 4900 more"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301
    config_error = ConfigError("head", *map(str, range(101)))
    problem_count = len(config_error.problems)
    assert problem_count == 101


def test_errors_cross_process_borders():
    error = pickle.loads(pickle.dumps(DataError("head", "one", "two")))  # noqa: S301
    assert type(error) is DataError
    assert str(error) == "head\n  - one\n  - two"


def test_what_cannot_be_read_is_a_data_error_and_names_are_few(tmp_path):
    with pytest.raises(DataError, match=r"^shown: cannot be read: No such file"), reading("shown"):
        (tmp_path / "nowhere").read_bytes()
    with pytest.raises(KeyError), reading("shown"):
        raise KeyError
    firsts = [first_of("abc", most) for most in (2, 3)]
    assert firsts == ["a, b, …", "a, b, c"]
