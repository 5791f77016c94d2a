"""The line to a dask cluster.

Quiet, its own errors turned into ours, the workers of this machine looked after.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dask.config
from distributed import Client, Future, KilledWorker, Scheduler, Security, SpecCluster
from distributed.comm.addressing import parse_address, parse_host_port
from distributed.comm.registry import get_backend

from gradestack import (
    ConfigError,
    GradestackError,
    LostEngineError,
    PluginError,
    Shard,
    __version__,
    error_text,
)
from gradestack_plugins.engines.dask_local import LocalWorkers
from gradestack_plugins.engines.dask_task import VERSIONS, work_on, written
from gradestack_plugins.engines.machine import memory_share
from gradestack_plugins.engines.processes import TRIES, Raised
from gradestack_plugins.engines.time_limit import folder_of, limits_of

_LOGGERS = (
    "distributed",
    "distributed.client",
    "distributed.gc",
    "tornado",
    "tornado.application",
    "asyncio",
)
_SECONDS_TO_CLOSE = 10.0
_SECONDS_BETWEEN_POLLS = 1.0
_SOCKETS = ("tcp", "tls")
_SECONDS_BETWEEN_TRIES = 0.25
"""Seconds between two tries to reach a scheduler."""
_LOST = ("cancelled", "lost")
"""States of a task nobody is at any more."""
_SETTINGS: dict[str, Any] = {
    "distributed.scheduler.http.routes": [],
    "distributed.scheduler.worker-ttl": None,  # a long step outside Python is no death
    "distributed.admin.tick.limit": "1h",
    # work may hold expectations of any number
    "distributed.admin.large-graph-warning-threshold": "1TB",
}


class Cluster:
    """A connected cluster."""

    def __init__(
        self,
        client: Client,
        local: LocalWorkers | None,
        patience: float,
        silence: float | None,
        name: str,
    ) -> None:
        """Wrap a client of a cluster; ``local`` are its workers where they are on this machine."""
        self._client = client
        self._local = local
        self._patience = patience
        self._name = name
        self._silence = silence
        self._wake = threading.Event()
        self._threads = 0 if local is None else local.count
        self._polled = self._had_workers = time.monotonic()
        if local is None:
            self._poll()

    def threads(self) -> int:
        """Return the number of shards graded at a time; 1 while there are no workers."""
        return max(1, self._threads)

    def order(self, work: Any) -> Future:
        """Send pickled work to the cluster once; return the future that tasks refer to it by."""
        return self._submit(bytes, written(work))

    def submit(self, shard: Shard, packed_work: Future) -> Future:
        """Submit the grading of a shard, with the future of the work."""
        path = shard.input.path
        future = self._submit(
            work_on, packed_work, shard, path.stat().st_size if path.is_file() else 0, __version__
        )
        future.add_done_callback(lambda _: self._wake.set())
        return future

    def _submit(self, *task: Any) -> Future:
        try:
            key = f"gradestack-{uuid.uuid4().hex}"
            return self._client.submit(*task, key=key, pure=False)
        except Exception as error:
            raise self._gone() from error

    def wait(self, futures: Sequence[Future]) -> list[Future]:
        """Return those that are done; none after a second in which none was."""
        self._wake.clear()
        done = [future for future in futures if future.status != "pending"]
        if not done:
            self._wake.wait(_SECONDS_BETWEEN_POLLS)
            done = [future for future in futures if future.status != "pending"]
        now = time.monotonic()
        if now - self._polled >= _SECONDS_BETWEEN_POLLS:
            self._poll()
        return done

    def result_of(self, future: Future) -> tuple[bool, Any] | None:
        """Return the outcome of a finished task; None when it is lost and must be done again.

        Returns:
            (True, result or error to raise), or (False, None) where the task ends every worker.

        None when what became of it is lost, so that it must be done again.
        """
        try:
            if future.status in _LOST:
                return None
            return (True, self._result(future))
        except KilledWorker:
            return False, None
        except (GradestackError, MemoryError) as error:
            return True, Raised(error)
        # raised again when it is its turn
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001
            # An OSError, too: those of the file system come back as values, so it is one of dask's
            # own.
            if future.status in _LOST:
                return None
            plugin_error = PluginError(f"a dask worker raised {error_text(error)}", VERSIONS)
            return True, Raised(plugin_error)

    def _result(self, future: Any) -> Any:
        while True:
            try:
                return future.result(timeout=_SECONDS_BETWEEN_POLLS)
            except TimeoutError:
                if future.status == "error":
                    raise
                self._poll()

    def _poll(self) -> None:
        """See that there are workers; start those of this machine again that died."""
        now = self._polled = time.monotonic()
        if self._local is not None:
            self._local.tend()
        if self._client.status not in ("running", "connecting"):
            raise self._gone()
        try:
            ask = self._client.scheduler.ncores
            cores = self._client.sync(ask, workers=None, callback_timeout=self._silence)
            self._threads = sum(cores.values())
        except TimeoutError as error:
            problem = f"has not answered for {self._silence:g} s (limits.scheduler_seconds)"
            raise LostEngineError(f"the dask scheduler {self._name} {problem}") from error
        except Exception as error:
            raise self._gone() from error
        if self._threads:
            self._had_workers = now
        elif now - self._had_workers > self._patience:
            raise LostEngineError(
                f"the dask scheduler {self._name} has had no worker for {self._patience:g} seconds",
                "start workers, or wait longer: `patience`",
            )

    def _gone(self) -> LostEngineError:
        return LostEngineError(f"the dask scheduler {self._name} does not answer any more")


@contextlib.contextmanager
def _silenced_loggers() -> Iterator[None]:
    """Keep what dask logs to itself: what matters of it is told as our own error.

    After Ctrl-C on the way there or back, for good: what dask was at is given up, and complains
    when it is thrown away.
    """
    handler = logging.NullHandler()
    before = {}
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        before[name] = (logger.handlers, logger.propagate)
        logger.handlers, logger.propagate = [handler], False
    try:
        yield
    except KeyboardInterrupt:
        before.clear()
        raise
    finally:
        for name, (handlers, propagate) in before.items():
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = handlers, propagate


@contextlib.contextmanager
def connected(engine: Any, work: Any, workers: int) -> Iterator[Cluster]:
    """Connect to the scheduler at an engine's address, or start a cluster on this machine.

    A cluster that was started is ended afterwards.

    What its workers put away is in a folder of the run's directory, and goes with that, should the
    run be killed.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_silenced_loggers())
        temporary = tempfile.TemporaryDirectory(
            prefix="gradestack-dask-", dir=folder_of(work), ignore_cleanup_errors=True
        )
        enter_context = stack.enter_context(temporary)
        folder = Path(enter_context).absolute()
        stack.enter_context(dask.config.set({**_SETTINGS, "temporary-directory": str(folder)}))
        address = engine.address
        local = None
        silence = limits_of(work).scheduler_seconds
        if address is None:
            address = stack.enter_context(_scheduler())
            silence = None  # a scheduler of this process stands still with it
            local = LocalWorkers(address, workers, memory_share(engine.memory, workers), folder)
            stack.callback(local.close)
            local.tend()
        client = _client(address, engine.patience, silence)
        stack.callback(client.close, _SECONDS_TO_CLOSE)
        name = "of this run" if local else f"at {address}"
        yield Cluster(client, local, engine.patience, silence, name)


def _client(address: str, patience: float, silence: float | None) -> Client:
    """Connect to the scheduler at an address, waiting at most ``patience`` seconds.

    Raises:
        ConfigError: None answers there.
    """
    try:
        # Before a client is made: one that is not finished waits and complains when it is thrown
        # away.
        scheme, location = parse_address(address)
        get_backend(scheme).get_address_host(location)
        if scheme in _SOCKETS:
            _wait_for(address, parse_host_port(location), patience)
            if silence is not None:
                _check_alive(scheme, parse_host_port(location), silence)
        with warnings.catch_warnings():
            # of versions that differ: what matters of that is checked with the work
            warnings.simplefilter("ignore")
            return Client(address, set_as_default=False, timeout=patience)
    except (OSError, TimeoutError, ValueError, ImportError) as error:
        raise ConfigError(f"engine: no dask scheduler answers at {address}", str(error)) from error


def _wait_for(address: str, host_port: tuple[str, int], patience: float) -> None:
    """Wait until somebody answers at an address, and say so when that is not at once."""
    deadline = time.monotonic() + patience
    has_warned = False
    while True:
        try:
            timeout = max(0.1, deadline - time.monotonic())
            socket.create_connection(host_port, timeout=timeout).close()
        except OSError as error:
            now = time.monotonic()
            if now + _SECONDS_BETWEEN_TRIES >= deadline:
                raise
            if not has_warned:
                waiting = f"waiting up to {patience:g} s for the dask scheduler at {address}"
                # nothing else is seen meanwhile
                print(f"{waiting} ({error})", file=sys.stderr, flush=True)  # noqa: T201
                has_warned = True
            time.sleep(_SECONDS_BETWEEN_TRIES)
        else:
            return


def _check_alive(scheme: str, host_port: tuple[str, int], silence: float) -> None:
    """Refuse a scheduler that accepts connections but says nothing.

    A client would wait for minutes.
    """
    tls = Security().get_connection_args("client")["ssl_context"]
    if scheme == "tls" and tls is None:  # the client says what is missing
        return
    with contextlib.ExitStack() as stack:
        line = stack.enter_context(socket.create_connection(host_port, timeout=silence))
        try:
            if scheme == "tls":
                line = stack.enter_context(tls.wrap_socket(line))
            line.recv(1)  # the beginning of its greeting
        except TimeoutError:
            raise TimeoutError(
                f"it has said nothing for {silence:g} s (limits.scheduler_seconds)"
            ) from None


@contextlib.contextmanager
def _scheduler() -> Iterator[str]:
    """Run a scheduler on this machine, and yield its address."""
    allowed_failures = TRIES - 1
    options = {
        "host": "127.0.0.1",
        "port": 0,
        "dashboard": False,
        "dashboard_address": "127.0.0.1:0",
        "allowed_failures": allowed_failures,
    }
    cluster = SpecCluster(scheduler={"cls": Scheduler, "options": options}, workers={})
    try:
        yield cluster.scheduler_address
    finally:
        cluster.close(timeout=_SECONDS_TO_CLOSE)
