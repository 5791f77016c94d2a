"""Dask workers on this machine.

Started, started again when they die, and gone without a trace at the end.

Why not ``LocalCluster``: it starts its workers with multiprocessing's "spawn", which runs the
caller's script again where that has no ``if __name__ == "__main__"``. These are processes of the
interpreter that know nothing of the script.

Run as a module, this is such a worker:
``python -P -m gradestack_plugins.engines.dask_local ADDRESS DIRECTORY MEMORY``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from multiprocessing.util import Finalize
from pathlib import Path

from gradestack import PluginError
from gradestack_plugins.engines.machine import be_expendable, following, limit_memory

_STILLBORN = 3
"""Processes that may end before they have joined the scheduler."""


class LocalWorkers:
    """A number of worker processes of one scheduler."""

    def __init__(self, address: str, count: int, memory: int | None, directory: Path) -> None:
        """Prepare the command that starts a worker; none is started yet."""
        self.count = count
        self.processes: list[subprocess.Popen[bytes]] = []
        self._stillborn = 0
        self._directory = directory
        self._log = directory / "log"
        module = "gradestack_plugins.engines.dask_local"
        # -P: Python would import from the working directory first, even its own library
        self._command = [
            sys.executable,
            "-P",
            "-m",
            module,
            address,
            str(self._directory),
            str(memory or 0),
        ]
        self._at_exit = Finalize(None, self.close, exitpriority=10)

    def tend(self) -> None:
        """Start as many workers as are missing."""
        for process in [entry for entry in self.processes if entry.poll() is not None]:
            self.processes.remove(process)
            mark = _mark(self._directory, process.pid)
            if not mark.exists():
                self._stillborn += 1
            if self._stillborn >= _STILLBORN:
                text = self._log.read_text(encoding="utf-8", errors="replace").strip()
                lines = text.splitlines()
                raise PluginError(
                    f"dask workers end before they are ready (exit code {process.returncode})",
                    *lines[-1:],
                )
        while len(self.processes) < self.count:
            self.processes.append(self._start())

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a worker's process, whose output goes to the log."""
        folders = dict.fromkeys(entry or str(Path.cwd()) for entry in sys.path)
        path = os.pathsep.join(folders)
        with self._log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - our own module
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C is for this process, which ends them
            )

    def close(self) -> None:
        """End all."""
        self._at_exit.cancel()
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self.processes.clear()


def _mark(directory: Path, process: int) -> Path:
    return directory / f"joined-{process}"


async def _serve(address: str, directory: Path, memory: int) -> None:
    """Work for the scheduler at an address, until it has no more work."""
    import dask.config  # noqa: PLC0415 - of the worker process only
    from distributed import Worker  # noqa: PLC0415

    dask.config.set({"distributed.worker.http.routes": [], "distributed.worker.daemon": False})
    worker = Worker(
        address,
        nthreads=1,
        local_directory=str(directory),
        memory_limit=0,
        host="127.0.0.1",
        dashboard=False,
    )
    async with worker:
        if memory:
            limit_memory(memory)
        _mark(directory, os.getpid()).touch()
        await worker.finished()


def main(address: str, directory: str, memory: str) -> None:
    """Be a worker process until the scheduler or the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    be_expendable()
    parent = os.getppid()
    with (
        contextlib.suppress(OSError),
        following(lambda: os.getppid() != parent),
    ):  # without scheduler there is no run
        directory_path = Path(directory)
        serve = _serve(address, directory_path, int(memory))
        asyncio.run(serve)


if __name__ == "__main__":
    main(*sys.argv[1:])
