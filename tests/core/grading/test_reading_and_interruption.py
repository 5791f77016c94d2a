"""Plugin code at arm's length."""

import re
import signal

import pytest

from gradestack import DataError, PluginError, error_text, interpreter
from gradestack.errors import guarded, stable_text
from gradestack.interpreter import Interruption


class Odd:
    """Has no repr of its own."""


def test_object_addresses_are_taken_out():
    """They differ from run to run; nothing else is touched."""
    error = ValueError(f"a {object()!r} and {Odd()!r} at 0x12: look at 0 and x")
    text = stable_text(error)
    assert "0x" not in text
    assert re.fullmatch(r"a <object object> and <.*Odd object>: look at 0 and x", text)


def test_long_texts_are_cut():
    error = ValueError("x" * 1000)
    assert error_text(error) == "ValueError: " + "x" * 500


def test_surprises_become_plugin_errors():
    """Named after the component; our own errors and the file system's pass as they are."""
    with pytest.raises(PluginError, match="reader x raised KeyError: 'a'"), guarded("reader x"):
        raise KeyError("a")
    data_error = DataError("m")
    file_not_found_error = FileNotFoundError(2, "gone")
    for error in (data_error, file_not_found_error):
        with pytest.raises(type(error)), guarded("reader x"):
            raise error
    with pytest.raises(KeyboardInterrupt), guarded("reader x"):
        raise KeyboardInterrupt


def test_an_interruption_waits_for_the_sample_at_hand():
    """The first signal is only noted, the second interrupts.

    Afterwards the usual handler is back.
    """
    handler_before = signal.getsignal(signal.SIGINT)
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
        assert interruption.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is handler_before


def test_a_callers_own_handler_stays():
    """Where the caller handles the signal itself, nothing is installed."""
    handler_before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interruption():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, handler_before)


def test_a_second_ctrl_c_during_the_word_about_the_first(monkeypatch):
    messages = []

    def word(_):
        messages.append("held back")
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(interpreter, "ON_DEFERRED_SIGINT", [word])
    with Interruption() as interruption, pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert interruption.requested
    assert messages == ["held back"]
