"""Which task a record of a chat log is a run of.

Ids that were recorded, and ids made up where there are none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from gradestack import Input
from gradestack.jsonio import as_map
from gradestack_plugins.readers.chat.conversation import kind_of

ANSWERS: Final = (
    "chatcmpl-",
    "resp_",
    "msg_",
    "gen-",
)  # how ids begin that name one answer, not a task
_REQUESTS: Final = (*ANSWERS, "batch_req_", "req_")
_TRACED: Final = ("trace_id", "span_id", "session_id")
_TASK: Final = frozenset({"task_id", "run", "trial"})
_SCALARS: Final = (str, int, float)
NOTHING: Final[Mapping[str, Any]] = {}


class Identity(NamedTuple):
    """What a record says of its place among others."""

    id: str
    run: int | str | None
    cluster: str | None
    trace: Mapping[str, str]
    facets: Mapping[str, Any]
    remarks: Mapping[str, int]


def _usable(value: Any) -> str | None:
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def names_task(value: Any) -> bool:
    """Return whether an id is that of a task, not one of an answer or a request."""
    name = _usable(value)
    return name is not None and not name.startswith(_REQUESTS)


def identity(
    record: Mapping[str, Any],
    request: Mapping[str, Any],
    response: Mapping[str, Any],
    *,
    made: str,
    known: frozenset[str],
) -> Identity:
    """Return the identity of a record.

    The id is ``id`` beside messages, else ``custom_id``, ``task_id``, ``metadata.task_id``, the
    ``id`` of the record, the id of its trace, else it is made up. Ids that name an answer
    (``chatcmpl-``, ``resp_``, ``msg_``, ``gen-``) go to the trace; that of a Responses object is
    the record's. Metadata that is text or a number becomes facets.
    """
    parts = (record,) if record is request is response else (record, request, response)
    metadata = {
        key: each for part in reversed(parts) for key, each in as_map(part.get("metadata")).items()
    }
    candidates = [part["id"] for part in parts if "id" in part and "messages" in part]
    candidates += [part.get(key) for key in ("custom_id", "task_id") for part in parts]
    candidates += [metadata.get("task_id"), record.get("id"), record.get("trace_id")]
    trace, remarks = (
        _trace(parts),
        {kind_of("key", key): 1 for key in sorted(record.keys() - known)},
    )
    place = next((at for at, each in enumerate(candidates) if names_task(each)), len(candidates))
    found = None if place == len(candidates) else _usable(candidates[place])
    if any(each is not None and _usable(each) is None for each in candidates[:place]):
        remarks["id_unusable"] = 1
    if found is None and record.get("object") == "response":
        found = _usable(record.get("id"))
    facets = {
        key: each
        for key, each in metadata.items()
        if key not in _TASK and isinstance(each, _SCALARS)
    }
    if found is None:
        remarks["id_made"] = 1
        facets["id_made"] = True
    run = _run(record)
    run = _run(metadata) if run is None else run
    return Identity(
        made if found is None else found, run, trace.get("session_id"), trace, facets, remarks
    )


def _run(part: Mapping[str, Any]) -> int | str | None:
    run = part.get("run")
    run = part.get("trial") if run is None else run
    return (
        run
        if isinstance(run, str) or (isinstance(run, int) and not isinstance(run, bool))
        else None
    )


def _trace(parts: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for part in parts:
        name = part.get("id")
        if isinstance(name, str) and name.startswith(ANSWERS):
            found["response_id"] = name
        for key in _TRACED:
            if key in part and isinstance(part[key], str):
                found.setdefault(key, part[key])
        talk = part.get("conversation")
        talk = talk.get("id") if isinstance(talk, dict) else talk
        if isinstance(talk, str):
            found.setdefault("session_id", talk)
    return found or NOTHING


def _stem(shown: str) -> str:
    path = PurePath(shown)
    name = path.name
    stem = name[:1] + name[1:].partition(".")[0]
    return path.with_name(stem).as_posix() if stem else shown


def stems(inputs: Iterable[Input]) -> list[str]:
    """Return what made-up ids of each input begin with: its name without suffixes.

    Where two inputs share it, the shortest path that tells them apart without suffixes, or else
    with them.
    """
    given = list(inputs)
    names = [PurePath(_stem(each.shown)).name for each in given]
    paths = [_stem(each.shown) for each in given]
    of_names, of_paths = Counter(names), Counter(paths)
    return [
        name if of_names[name] == 1 else path if of_paths[path] == 1 else each.shown
        for each, name, path in zip(given, names, paths, strict=True)
    ]
