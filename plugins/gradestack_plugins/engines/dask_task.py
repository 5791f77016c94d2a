"""What runs on a dask worker: the work is read once per process from the shared path, shards come one by one."""

from __future__ import annotations

import hashlib
import os
import pickle
import socket
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import cloudpickle

from gradestack import ConfigError, DataError, GradestackError, PluginError, Shard, __version__, error_text
from gradestack_plugins.engines.local import apply
from gradestack_plugins.engines.processes import Raised, caught
from gradestack_plugins.engines.time_limit import limits_of, process_limit

_HINT = "data and run directory must be on a path that all machines share, under the same name"
VERSIONS = "the scheduler and all workers need the same versions of gradestack and its plugins"
_loading = threading.Lock()
_loaded: dict[str, Any] = {}
"""Digest -> work, the last one only."""


@attrs.frozen
class Order:
    """Where the work is to be read from, and what it was read as."""

    path: str
    digest: str
    version: str

    @classmethod
    def write(cls, work: Any, shards: Sequence[Shard], place: Path) -> Order:
        """Write the work into a directory all workers see, with the sizes of the input files as they are here."""
        files = {shard.input.path.absolute() for shard in shards}
        sizes = {str(file): file.stat().st_size for file in sorted(files) if file.is_file()}
        # Unlike pickle, this takes classes of the script that was started.
        content = pickle.dumps((sizes, cloudpickle.dumps(work)), pickle.HIGHEST_PROTOCOL)
        digest = hashlib.blake2b(content, digest_size=16).hexdigest()
        path = place / f"{digest}.work"
        path.write_bytes(content)
        return cls(str(path), digest, __version__)

    def remove(self) -> None:
        """Remove it: nobody reads it any more."""
        Path(self.path).unlink(missing_ok=True)

    def work(self) -> Any:
        """Return the work, from this process's memory if it was here before."""
        with _loading:
            if self.digest not in _loaded:
                sizes, content = self._content()
                _check(sizes)
                _loaded.clear()
                _loaded[self.digest] = pickle.loads(content)  # noqa: S301 - of our own run directory
            return _loaded[self.digest]

    def _content(self) -> tuple[dict[str, int], bytes]:
        if self.version != __version__:
            raise ConfigError(
                f"the dask worker on {_here()} has gradestack {__version__}, this is {self.version}",
                "install the same versions on all machines",
            )
        try:
            return pickle.loads(Path(self.path).read_bytes())  # type: ignore[no-any-return]  # noqa: S301 - as above
        except OSError as error:
            raise DataError(
                f"{Path(self.path).parent}: the dask worker on {_here()} cannot see it: {error.strerror}", _HINT
            ) from error


def _check(sizes: dict[str, int]) -> None:
    for name, size in sizes.items():
        file = Path(name)
        if not file.is_file():
            raise DataError(f"{name}: the dask worker on {_here()} cannot see it", _HINT)
        if file.stat().st_size < size:  # it may have grown meanwhile
            raise DataError(
                f"{name}: the dask worker on {_here()} sees {file.stat().st_size} bytes of it, there were {size}", _HINT
            )


@attrs.frozen
class Task:
    """One shard to be worked on, wherever it is called."""

    order: Order
    shard: Shard

    def __call__(self) -> Any:
        """Return what the work says to the shard, or what it raised.

        Errors of ours and of the file system come back as a value, as they are: what dask itself raises where the value
        is waited for is then never taken for one of them. Other errors are told in words.
        """
        work = self.order.work()
        try:
            with process_limit(limits_of(work).seconds_per_grade):
                return apply(work, self.shard)
        except (GradestackError, OSError, KeyboardInterrupt) as error:
            return caught(error, self.shard)
        except BaseException as error:  # noqa: BLE001 - one that is no Exception would leave dask waiting for ever
            return Raised(PluginError(f"a dask worker raised {error_text(error)}", VERSIONS), traceback.format_exc())


def _here() -> str:
    return f"{socket.gethostname()} (process {os.getpid()})"
