"""What every test may rely on."""

import signal


def pytest_configure():
    """Ctrl-C interrupts, also where the tests were started in the background of a shell, which has it ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
