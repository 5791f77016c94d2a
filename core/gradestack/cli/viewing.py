"""The command ``view``: a run in the browser, however large. Only click is imported here at the top."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP do what Ctrl-C does, so that the temporary directory goes."""
    numbers = [number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@click.command()
@click.argument("run_dir")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port [default: any free one].")
@click.option("--open", "browser", is_flag=True, help="Open it in the browser.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks.")
def view(run_dir: str, *, port: int, browser: bool) -> None:
    """Serve RUN_DIR to this machine's browser: its samples as a list, one by one, and the whole report.

    Only reading is possible, and only for who knows the address that is printed. Ctrl-C ends it.
    """
    from gradestack.cli.signals import forward_termination  # noqa: PLC0415 - not needed for --help
    from gradestack.errors import ConfigError  # noqa: PLC0415
    from gradestack.registry import discover  # noqa: PLC0415
    from gradestack.report import load_report  # noqa: PLC0415
    from gradestack.serving.pages import ServedRun  # noqa: PLC0415
    from gradestack.serving.server import ADDRESS, Server  # noqa: PLC0415

    with forward_termination():  # packed inputs of slim rows are unpacked
        run = ServedRun(load_report(run_dir), discover())
    with _ended_by_signals():
        try:
            with Server(run, port) as server:
                click.echo(f"View: {server.url} (Ctrl-C ends it)")
                if browser:
                    import webbrowser  # noqa: PLC0415 - only here

                    webbrowser.open(server.url)
                server.serve_forever()
        except OSError as error:
            msg = f"--port {port}: {ADDRESS}:{port} cannot be listened on: {error.strerror or error}"
            raise ConfigError(msg) from error
        finally:
            run.close()
