"""The part of a run on a dask worker: the work comes once to each, as what tasks depend on.

Shards come one by one.
"""

from __future__ import annotations

import os
import pickle
import socket
import threading
import traceback
from pathlib import Path
from typing import Any

import cloudpickle

from gradestack import (
    ConfigError,
    DataError,
    GradestackError,
    PluginError,
    Shard,
    __version__,
    error_text,
)
from gradestack_plugins.engines.local import apply
from gradestack_plugins.engines.processes import Raised, caught
from gradestack_plugins.engines.time_limit import folder_of, limits_of, process_limit

_HINT = "data and report directory must be on a path that all machines share, under the same name"
VERSIONS = "the scheduler and all workers need the same versions of gradestack and its plugins"
_loading = threading.Lock()
_loaded: tuple[bytes, Any] = (b"", None)
"""The work a worker was at last, and what it was read from."""


def written(work: Any) -> bytes:
    """Return work as it is sent.

    Unlike pickle, this takes classes of the script that was started.
    """
    return cloudpickle.dumps(work)  # type: ignore[no-any-return]


def work_on(content: bytes, shard: Shard, size: int, version: str) -> Any:
    """Return the result of the work on a shard, or the error it raised.

    Its input had ``size`` bytes where the run is.

    Errors of ours and of the file system come back as a value, as they are: what dask itself raises
    where the value is waited for is then never taken for one of them. Other errors are told in
    words.
    """
    work = _work(content, version)
    _check(shard.input.path, size)
    try:
        with process_limit(limits_of(work).seconds_per_grade):
            return apply(work, shard)
    except (GradestackError, OSError, KeyboardInterrupt) as error:
        return caught(error, shard)
    # one that is no Exception would leave dask waiting for ever
    except BaseException as error:  # noqa: BLE001
        plugin_error = PluginError(f"a dask worker raised {error_text(error)}", VERSIONS)
        return Raised(
            plugin_error,
            traceback.format_exc(),
        )


def _work(content: bytes, version: str) -> Any:
    """Unpickle the work of a run, once for each process.

    Raises:
        ConfigError: Versions differ.
        DataError: The worker cannot see the work's folder.
    """
    global _loaded  # noqa: PLW0603 - of this process
    if version != __version__:
        raise ConfigError(
            f"the dask worker on {_here()} has gradestack {__version__}, this is {version}",
            "install the same versions on all machines",
        )
    with _loading:
        if _loaded[0] != content:
            work = pickle.loads(content)  # noqa: S301 - the run's own
            if (folder := folder_of(work)) is not None and not folder.is_dir():
                raise DataError(f"{folder}: the dask worker on {_here()} cannot see it", _HINT)
            _loaded = content, work
        return _loaded[1]


def _check(file: Path, size: int) -> None:
    """Check that this worker sees a shard's file, at least as long as it was.

    Raises:
        DataError: It does not.
    """
    bytes_here = file.stat().st_size if file.is_file() else 0
    if size and not file.is_file():
        raise DataError(f"{file}: the dask worker on {_here()} cannot see it", _HINT)
    if bytes_here < size:  # it may have grown meanwhile
        raise DataError(
            f"{file}: the dask worker on {_here()} sees {bytes_here} bytes of it, "
            f"there were {size}",
            _HINT,
        )


def _here() -> str:
    return f"{socket.gethostname()} (process {os.getpid()})"
