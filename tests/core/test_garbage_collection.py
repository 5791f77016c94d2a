"""Tests of how often the interpreter collects garbage during a shard."""

import gc
import subprocess
import sys

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


def test_the_command_line_collects_seldom_before_click_is_imported():
    """Its classes and options stay; looking through them takes a twentieth of ``--version``."""
    code = (
        "import builtins, gc, sys\n"
        "import gradestack.cli\n"
        "assert 'click' not in sys.modules\n"
        "imported = builtins.__import__\n"
        "def watch(name, *others, **known):\n"
        "    if name == 'click':\n"
        "        print(gc.get_threshold()[0])\n"
        "        raise KeyboardInterrupt\n"
        "    return imported(name, *others, **known)\n"
        "builtins.__import__ = watch\n"
        "gradestack.cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "100000\n"
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
