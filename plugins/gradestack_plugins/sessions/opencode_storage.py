"""Reader ``opencode_storage``: the folder in which opencode keeps its sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from typing_extensions import override

from gradestack import BadRecord, DataError, Input, Inputs, RecordFile, Sample, Shard, replace
from gradestack.jsonio import Range, loads, read_regular
from gradestack_plugins.readers.runs import Record, Run, RunReader
from gradestack_plugins.sessions.lines import SURE
from gradestack_plugins.sessions.opencode import run_of_export

_FOLDERS: Final = ("session", "message", "part")
_SESSIONS: Final = "session/*/*.json"


class OpenCodeStorage(RunReader):
    """Reads the storage of opencode: files of sessions, messages and parts, joined by their ids.

    Each session is a run, read as its export is. Messages and parts that cannot be read are counted
    in the remarks on its run.
    """

    example_file = "~/.local/share/opencode/storage"
    version = "1"
    records_are_runs = True
    takes_directories: ClassVar[bool] = True

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        if path.is_dir() and _storage_in(path) is not None:
            return SURE
        return 0.0

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if isinstance(record, dict) and "id" in record:
            return None
        return 0.0

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        for folder in inputs.data:
            storage = _storage_in(folder.path)
            if storage is None:
                names = ", ".join(_FOLDERS)
                raise DataError(
                    f"{folder.shown}: no storage of opencode: it has the folders {names}"
                )
            for session in sorted(storage.glob(_SESSIONS)):
                name = session.relative_to(folder.path).as_posix()
                file = folder.below(name)
                yield RecordFile(input=folder, file=file, ranges=(Range(),), extra=name)

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        session = shard.input.below(shard.extra)
        yield from super().read(replace(shard, input=session), index)

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        storage = file.path.parents[2]
        for value, source in records:
            remarks = Counter[str]()
            messages: list[Any] = []
            message_folder = storage / "message"
            for name, about in _documents(message_folder / file.path.stem, remarks):
                folder = storage / "part" / name
                documents = _documents(folder, remarks)
                parts = [part for _, part in documents]
                messages.append({"info": about, "parts": parts})
            record = Record({"info": value, "messages": messages}, source)
            run = run_of_export(record, file.name)
            run.remarks = dict(remarks)
            yield run


def _storage_in(path: Path) -> Path | None:
    """Return the storage that a folder is, or holds; None where it is none."""
    for folder in (path, path / "storage"):
        if all((folder / name).is_dir() for name in _FOLDERS):
            return folder
    return None


def _documents(folder: Path, remarks: Counter[str]) -> Iterator[tuple[str, Any]]:
    """Yield the documents of a folder in order, each with its id; those that are none count."""
    for path in sorted(folder.glob("*.json")):
        try:
            document = loads(read_regular(path))
            yield path.stem, document
        except (OSError, ValueError):
            remarks["unreadable_file"] += 1
