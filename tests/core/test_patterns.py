"""Patterns that are compiled when they are first used are those that were written."""

import importlib
import re

import pytest

from gradestack import compile_later
from tests.core.test_house import MODULES, ROOT


def test_a_pattern_does_what_a_compiled_one_does():
    words = compile_later(r"(\w+) (\w+)", re.IGNORECASE)
    assert words.pattern == r"(\w+) (\w+)"
    assert words.fullmatch("one two")[2] == "two"
    assert words.sub(r"\2 \1", "one two") == "two one"
    assert words.flags & re.IGNORECASE
    assert compile_later(rb"\d").findall(b"1a2") == [b"1", b"2"]


def test_a_wrong_pattern_is_refused_when_it_is_used():
    wrong = compile_later("(")
    with pytest.raises(re.error, match="unterminated subpattern"):
        wrong.match("")


def test_every_pattern_of_ours_can_be_compiled():
    """Importing a module no longer tells of one that cannot."""
    kind = type(compile_later(""))
    patterns = []
    for path in [path for path in MODULES if path.stem != "__main__"]:
        parts = path.relative_to(ROOT).with_suffix("").parts[1:]
        module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
        patterns += [value for value in vars(module).values() if isinstance(value, kind)]
    assert len(patterns) > 100
    assert all(pattern.groups >= 0 for pattern in patterns)
