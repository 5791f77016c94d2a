"""Ids of the records of chat logs: those that were recorded, and those that are made up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from gradestack import Input
from gradestack.jsonio import as_map
from gradestack_plugins.readers.chat.conversation import kind_of
from gradestack_plugins.readers.chat.parts import id_text

ANSWERS: Final = ("chatcmpl-", "resp_", "msg_", "gen-")
"""Beginnings of ids that name one answer, not a task."""
_REQUESTS: Final = (*ANSWERS, "batch_req_", "req_")
_TRACED: Final = ("trace_id", "span_id", "session_id")
_TASK: Final = frozenset({"task_id", "run", "trial"})
_SCALARS: Final = (str, int, float)
NOTHING: Final[Mapping[str, Any]] = {}


class Identity(NamedTuple):
    """A record's place among others."""

    id: str
    run: int | str | None
    cluster: str | None
    trace: Mapping[str, str]
    facets: Mapping[str, Any]
    remarks: Mapping[str, int]


def names_task(value: Any) -> bool:
    """Return whether an id is that of a task, not one of an answer or a request."""
    name = id_text(value)
    return name != "" and not name.startswith(_REQUESTS)


def identity(
    record: Mapping[str, Any],
    request: Mapping[str, Any],
    response: Mapping[str, Any],
    *,
    fallback_id: str,
    known: frozenset[str],
) -> Identity:
    """Return the identity of a record.

    The id is ``id`` beside messages, else ``custom_id``, ``task_id``, ``metadata.task_id``, the
    ``id`` of the record, the id of its trace, else it is made up. Ids that name an answer
    (``chatcmpl-``, ``resp_``, ``msg_``, ``gen-``) go to the trace; that of a Responses object is
    the record's. Metadata that is text or a number becomes facets.
    """
    parts = (record,) if record is request is response else (record, request, response)
    metadata: dict[str, Any] = {}
    for part in reversed(parts):
        metadata |= as_map(part.get("metadata"))
    keys = sorted(record.keys() - known)
    remarks = {kind_of("key", key): 1 for key in keys}
    identifier = ""
    for candidate in _candidates(record, parts, metadata):
        if names_task(candidate):
            identifier = id_text(candidate)
            break
        if candidate is not None and not id_text(candidate):
            remarks["id_unusable"] = 1
    if not identifier and record.get("object") == "response":
        identifier = id_text(record.get("id"))
    facets = {
        key: value
        for key, value in metadata.items()
        if key not in _TASK and isinstance(value, _SCALARS)
    }
    if not identifier:
        remarks["id_made"] = 1
        facets["id_made"] = True
    run = _run(record)
    run = _run(metadata) if run is None else run
    trace = _trace(parts)
    session_id = trace.get("session_id")
    return Identity(identifier or fallback_id, run, session_id, trace, facets, remarks)


def _candidates(
    record: Mapping[str, Any], parts: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any]
) -> Iterator[Any]:
    """Yield the values that may be the id of a record, the first usable one wins."""
    yield from (part["id"] for part in parts if "id" in part and "messages" in part)
    for key in ("custom_id", "task_id"):
        yield from (part.get(key) for part in parts)
    yield metadata.get("task_id")
    yield record.get("id")
    yield record.get("trace_id")


def _run(part: Mapping[str, Any]) -> int | str | None:
    run = part.get("run")
    if run is None:
        run = part.get("trial")
    is_number = isinstance(run, int) and not isinstance(run, bool)
    return run if isinstance(run, str) or is_number else None


def _trace(parts: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    """Return the ids of answer, trace, span and session that a record holds, by kind of id."""
    trace: dict[str, str] = {}
    for part in parts:
        name = part.get("id")
        if isinstance(name, str) and name.startswith(ANSWERS):
            trace["response_id"] = name
        for key in _TRACED:
            value = id_text(part.get(key))
            if value:
                trace.setdefault(key, value)
        talk = part.get("conversation")
        if isinstance(talk, dict):
            talk = talk.get("id")
        if isinstance(talk, str):
            trace.setdefault("session_id", talk)
    return trace or NOTHING


def _stem(shown: str) -> str:
    """Return a path without all suffixes of its name."""
    path = PurePath(shown)
    stem = path.name[:1] + path.name[1:].partition(".")[0]
    return path.with_name(stem).as_posix() if stem else shown


def stems(inputs: Iterable[Input]) -> list[str]:
    """Return the beginning of made-up ids for each input: its name without suffixes.

    Where two inputs share it, the shortest path that tells them apart without suffixes, or else
    with them.
    """
    shown = [file.shown for file in inputs]
    paths = list(map(_stem, shown))
    names = [PurePath(path).name for path in paths]
    same_names = Counter(names)
    same_paths = Counter(paths)
    return [
        name if same_names[name] == 1 else path if same_paths[path] == 1 else full
        for full, path, name in zip(shown, paths, names, strict=True)
    ]
