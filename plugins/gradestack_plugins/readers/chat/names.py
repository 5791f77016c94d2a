"""Names of the columns and keys of people's own data: the table ``own_data@1``."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, Final, NamedTuple

from gradestack import Inputs
from gradestack.jsonio import as_list, compact, path_exists, path_steps, path_value
from gradestack_plugins.readers.chat import OBJECT, dialect, text_of
from gradestack_plugins.readers.chat.calls import (
    calls_of,
    decoded,
    plain_name,
    unread_of,
    with_names,
)
from gradestack_plugins.readers.chat.forms import nested
from gradestack_plugins.readers.chat.parts import row_kind
from gradestack_plugins.readers.chat.texts import glaive

OWN_DATA: Final = "own_data@1"
"""Name and version of the table."""
FIRST: Final = 1000
"""Number of records of an input that are looked at."""
_NAMED: Final = 20
"""Number of inputs that a command names one by one."""
_LARGEST: Final = 8 * 1024 * 1024
"""Characters of all records together that are looked at."""
_SESSIONS: Final = (
    *("conversation_id", "thread_id", "session_id", "trace_id"),
    *("$.config.configurable.thread_id", "$.checkpoint.thread_id", "$.context.trace_id"),
)
"""Ids that may be those of a conversation, whose records ask different questions."""
_TABLE: Final = """
messages: messages conversation conversations history transcript trajectory items new_items chat
  dialog contents events user_input outputs steps
  $.outputs.messages $.inputs.messages $.values.messages $.state.messages $.outputs.history
  $.inputs.history
input: input prompt question query user_input user_message user_query utterance
text: text response completion prediction output model_output actual_output final_output
  final_answer answer
calls: calls tool_calls actual_tool_calls predicted_calls tools_called actual_tool predicted_tool
expected.calls: expected.calls expected_calls expected_tool_calls expected_tools gold_calls
  reference_calls reference_tool_calls
  ground_truth_tool_calls reference_outputs reference_trajectory
  $.reference_outputs.tool_calls $.ground_truth.tool_calls
  $.expected.tool_calls $.expectations.expected_tool_calls
  expected reference ground_truth gold target expected_tool gold_tool
expected.text: expected.text expected expected_answer expected_output reference reference_answer
  reference_output
  ground_truth ground_truth_answer ground_truth_output gold gold_answer gold_output target label
  answer $.expectations.expected_response
id: id task_id case_id test_id question_id example_id conversation_id thread_id session_id custom_id
  trace_id uuid case
  $.metadata.task_id $.config.configurable.thread_id $.checkpoint.thread_id $.context.trace_id
model: model model_name provided_model_name $.provider.id $.attributes.llm.model_name
tools: tools tool_definitions available_tools
usage: usage usage_details $.attributes.llm.token_count $.info.model_stats
usage.cost_usd: usage.cost_usd $.costDetails.total $.cost_details.total
recorded: success passed pass resolved is_resolved solved is_correct correct reward
"""
_NAMES: Final[Mapping[str, Sequence[str]]] = {
    field: names.split()
    for field, _, names in (
        line.partition(":") for line in _TABLE.replace("\n  ", " ").strip().split("\n")
    )
}
"""Field -> names, the first that is there wins. A name that begins with ``$`` is a path."""
_STEPS: Final = (
    ("input", "output"),
    ("inputs", "outputs"),
    ("$.attributes.llm.input_messages", "$.attributes.llm.output_messages"),
    ("input", "new_items"),
    ("query", "response"),
)
"""Names of a history, each with that of the messages that followed it."""
VERDICTS: Final = {
    **dict.fromkeys(("true", "yes", "pass", "passed", "success", "1"), True),
    **dict.fromkeys(("false", "no", "fail", "failed", "failure", "0"), False),
}
"""Words for verdicts."""
_ANY_REFERENCE: Final = frozenset({"expected", "reference", "ground_truth", "gold", "target"})
"""Columns that may hold any reference."""


@cache
def _plain_usual_name(name: str) -> str:
    """Return the plain form of one of our own names, which are asked for in every file."""
    return plain_name(name.removeprefix("$."))


_PLAIN_SESSIONS: Final = tuple(map(plain_name, _SESSIONS))
_PLAIN_TEXTS: Final = frozenset(map(plain_name, _NAMES["expected.text"]))


def usual_record(record: Any) -> Any:
    """Return a span whose keys are paths as objects, a list as the messages it is.

    Anything else is returned as it is.
    """
    if isinstance(record, list):
        return {"messages": record}
    if not isinstance(record, dict):
        return record
    is_span = "span_kind" in record and "context" in record
    attributes = record.get("attributes") if is_span else None
    has_paths = isinstance(attributes, dict) and any("." in str(key) for key in attributes)
    if not has_paths and "context.trace_id" not in record:
        return record
    try:
        return nested(record)
    except RecursionError:
        return record


def talk_of(value: Any) -> Any:
    """Return the messages that a value, JSON or glaive's text of them holds.

    Anything else is returned as it is.
    """
    spoken = glaive(value)
    if spoken is not None:
        return spoken
    data = decoded(value)
    if isinstance(data, dict):
        messages = data.get("messages")
        return messages if isinstance(messages, list) else [data]
    return data


def _is_talk(value: Any) -> bool:
    entries = dialect.of_entries(talk_of(value))
    return entries is not None


def _is_reply(value: Any) -> bool:
    return isinstance(value, str) or _is_talk(value)


def _are_calls(value: Any) -> bool:
    calls = calls_of(value)
    unread = unread_of(value)
    if unread or not isinstance(calls, list):
        return False
    return all(isinstance(call, dict) and {"name", "names"} & call.keys() for call in calls)


def _are_expected(value: Any) -> bool:
    """Return whether a value holds expected calls: as calls, or in messages."""
    are_calls = _are_calls(value)
    return are_calls or (not isinstance(value, str) and _is_talk(value))


def _are_data(value: Any) -> bool:
    """Return whether a value holds calls, and is not a text that may be a label."""
    return not isinstance(decoded(value), str) and _are_calls(value)


def _is_keyed(value: Any) -> bool:
    """Return whether a value holds calls under the names of their tools."""
    return with_names(value) is not value


def _is_scalar(value: Any) -> bool:
    if not isinstance(value, str | int | float):
        return False
    data = decoded(value)
    entries = data if isinstance(data, list) else [data]
    return not any(isinstance(entry, dict | list) for entry in entries)


def _is_verdict(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in VERDICTS
    return isinstance(value, bool | int | float)


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _is_object(value: Any) -> bool:
    return isinstance(decoded(value), dict)


_FITS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "messages": _is_talk,
    "input": _is_scalar,
    "text": _is_scalar,
    "calls": lambda value: _are_calls(with_names(value)),
    "expected.calls": _are_expected,
    "expected.text": _is_scalar,
    "id": _is_id,
    "model": lambda value: isinstance(value, str),
    "usage": _is_object,
    "tools": lambda value: isinstance(decoded(value), list),
    "usage.cost_usd": _is_scalar,
}
"""Field -> whether a value is one of the field."""


class Guess(NamedTuple):
    """The columns that were recognised."""

    columns: Mapping[str, str] = {}
    """Field -> column or path."""
    doubts: Sequence[str] = ()
    """Other readings, each with the option that asks for it."""
    names: Sequence[str] = ()
    """All columns there are."""
    rows: Sequence[Mapping[str, Any]] = ()
    """The records that were looked at."""

    @property
    def shows_a_run(self) -> bool:
        """Whether a column says what an agent did."""
        deeds = {"messages", "turns", "text", "label", "calls", "predicted", "plan", "state"}
        keys = self.columns.keys()
        return bool(deeds & keys) or self.holds_verdicts

    @property
    def holds_verdicts(self) -> bool:
        """Whether there are verdicts on what has an id or a question."""
        keys = self.columns.keys()
        is_named = bool(keys & {"id", "input"})
        return is_named and any(field.startswith("recorded") for field in self.columns)

    @property
    def is_dataset(self) -> bool:
        """Whether there are expectations by id, and maybe nothing else."""
        expects = any(field.startswith("expected.") for field in self.columns)
        return "id" in self.columns and expects

    @property
    def holds_answers(self) -> bool:
        """Whether there are messages, calls or answers."""
        keys = self.columns.keys()
        return bool(keys & {"messages", "calls", "text"})


class _Columns:
    """The columns of some records, and their values."""

    def __init__(self, records: Sequence[Mapping[str, Any]]) -> None:
        self.records = records
        self.names = list(dict.fromkeys(str(key) for record in records for key in record))
        names = reversed(self.names)
        self.by_name = {plain_name(name): name for name in names}

    def values(self, column: str) -> Iterator[Any]:
        """Yield the values of a column or path, record by record; None where one is empty."""
        for record in self.records:
            if column.startswith("$"):
                value = path_value(record, path_steps(column))
            else:
                value = record.get(column)
            yield None if value == "" else value

    def candidates(self, field: str) -> Iterator[str]:
        """Yield the columns that may hold a field, in the order of the table."""
        may_be_empty = field in {"calls", "expected.calls"}
        for name in _NAMES[field]:
            column = self.column(name)
            if column is not None and self.fit(column, _FITS[field], empty=may_be_empty):
                yield column

    def column(self, name: str) -> str | None:
        """Return the column of a name, or else the path below a column."""
        is_path = name.startswith("$") and path_steps(name)[0] in self.names
        plain_usual_name = _plain_usual_name(name)
        return self.by_name.get(plain_usual_name, name if is_path else None)

    def fit(self, column: str, is_fitting: Callable[[Any], bool], *, empty: bool = False) -> bool:
        """Return whether most values of a column are of a form.

        Without any value, whether that will do (``empty``).
        """
        values = [value for value in self.values(column) if value is not None]
        if not values:
            return empty and column in self.names
        total_fittings = sum(map(is_fitting, values))
        return 2 * total_fittings > len(values)

    def differ(self, one: str, other: str) -> bool:
        """Return whether two columns hold unequal values in a record that has both."""
        pairs = zip(self.values(one), self.values(other), strict=True)
        return any(left != right for left, right in pairs if None not in (left, right))


def beginning(records: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the first records, of large ones fewer."""
    size = 0
    for record in map(usual_record, islice(records, FIRST)):
        if isinstance(record, OBJECT):
            yield record
            size += sum(len(value) for value in record.values() if isinstance(value, str))
        if size > _LARGEST:
            return


class _Recognition:
    """Recognises the columns of records, field by field."""

    def __init__(self, columns: _Columns, fields: dict[str, str]) -> None:
        self.columns = columns
        self.fields = fields
        self.used: set[str] = set()
        self.others: list[tuple[str, str, list[str]]] = []
        """Field, its column, and other columns that it could be."""

    def take(self, field: str, candidates: Iterable[str]) -> None:
        """Take the first free column for a field that has none."""
        if field in self.fields:
            return
        free = [column for column in candidates if column not in self.used]
        if not free:
            return
        self.fields[field] = free[0]
        self.used.add(free[0])
        if len(free) > 1 and field != "id":
            self.others.append((field, free[0], free[1:]))

    def take_usual(self, *fields: str) -> None:
        """Take columns for fields by the names that the table has for them."""
        for field in fields:
            self.take(field, self.columns.candidates(field))

    def take_history(self) -> None:
        """Take two columns of a history and what followed it."""
        for names in _STEPS:
            before, after = map(self.columns.column, names)
            if before and after and _are_steps(self.columns, before, after):
                self.fields |= {"prior_messages": before, "messages": after}
                self.used |= {before, after}
                return

    def take_calls(self) -> None:
        """Take the columns of expected calls and, where there are no messages, of those made."""
        columns = self.columns
        candidates = columns.candidates("expected.calls")
        self.take("expected.calls", (name for name in candidates if _says_calls(columns, name)))
        self.take("expected.calls", _columns_of_keyed_calls(columns))
        if "messages" not in self.fields:
            self.take_usual("calls")
        elif "calls" in columns.names:
            self.fields["calls"] = "calls"

    def take_expected_text(self) -> None:
        """Take the columns of the expected text, and of labels."""
        columns, fields = self.columns, self.fields
        is_form = "expected" in columns.names and columns.fit("expected", _is_dict)
        has_reply = not {"messages", "text", "calls", "predicted"}.isdisjoint(fields)
        candidates = columns.candidates("expected.text")
        if is_form or not has_reply:  # else `label` may be the expected text
            candidates = (column for column in candidates if column != "label")
        self.take("expected.text", candidates)
        if "label" in columns.names and "label" not in self.used:
            fields["label"] = "label"
            if "text" not in fields and "expected.text" in fields:
                fields["expected.label"] = fields.pop("expected.text")

    def take_expected(self) -> None:
        """Take the column ``expected`` of the jsonl form, where no field is read from it."""
        is_read = "expected" in self.fields.values()
        is_read = is_read or self.fields.get("expected.calls") == "$.expected.tool_calls"
        if "expected" in self.columns.names and not is_read:
            self.fields["expected"] = "expected"

    def take_verdict(self) -> None:
        """Take the column of the verdict."""
        for name in _NAMES["recorded"]:
            column = self.columns.column(name)
            if column is not None and self.columns.fit(column, _is_verdict):
                self.take(f"recorded.{name}", [column])
                return

    def take_ids(self) -> None:
        """Take the column of the id; that of sessions that ask several questions is the cluster."""
        is_export = any(map(row_kind, self.columns.records))
        for column in self.columns.candidates("id"):
            if is_export and not is_session(column):
                continue
            is_cluster = is_session(column) and self._ask_differently(column)
            self.fields.setdefault("cluster" if is_cluster else "id", column)

    def _ask_differently(self, column: str) -> bool:
        """Return whether records of one id ask different questions."""
        questions: dict[str, set[str]] = {}
        ids = self.columns.values(column)
        for record, identifier in zip(self.columns.records, ids, strict=True):
            if identifier is not None:
                question = _question(record, self.fields)
                questions.setdefault(str(identifier), set()).add(question)
        asked_by_ids = questions.values()
        return any(len(asked_by_id - {""}) > 1 for asked_by_id in asked_by_ids)

    def doubts(self) -> Iterator[str]:
        """Yield columns that could be read in place of others, each with its option."""
        used = set(self.fields.values())
        paths = [path_steps(column)[0] for column in used]
        used |= {str(path) for path in paths}
        for field, first, others in self.others:
            for column in others:
                if column not in used and self.columns.differ(first, column):
                    option = f"--map {field}={column}"
                    read = f"{field} is read from {first}, not from {column}"
                    yield f"{read}; to change that: {option}"


def guess(
    records: Iterable[Mapping[str, Any]],
    field_of: Callable[[str], Any] = lambda _: None,
    *,
    fitting: bool = False,
) -> Guess:
    """Return the columns of records, by their names and by the values in the first records.

    Args:
        records: The records.
        field_of: Returns whether a name is a field of a sample: such columns are used first.
        fitting: Whether a column is used for messages, calls or answers only where it holds them.
    """
    first = list(beginning(records))
    model_calls = [record for record in first if row_kind(record) == "model"]
    columns = _Columns(model_calls or first)
    names = [name for name in columns.names if field_of(name) is not None and name not in _TABLED]
    pairs = dict(zip(names, names, strict=True))
    recognition = _Recognition(columns, pairs)
    recognition.take_history()
    recognition.take_usual("messages", "text")
    recognition.take_calls()
    recognition.take_expected_text()
    recognition.take_expected()
    fields = recognition.fields
    if fields.get("messages", "").startswith("$.state."):
        fields.pop("state", None)
    recognition.take_usual("input", "model", "tools", "usage", "usage.cost_usd")
    recognition.take_verdict()
    recognition.take_ids()
    if not fitting and not Guess(fields).shows_a_run:  # reading them will say what is wrong
        fields |= {name: name for name in ("messages", "calls", "text") if name in columns.names}
    return Guess(fields, list(recognition.doubts()), columns.names, columns.records)


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _are_steps(columns: _Columns, before: str, after: str) -> bool:
    """Return whether two columns hold a history and what followed it: messages in one of them."""
    pairs = zip(columns.values(before), columns.values(after), strict=True)
    both = [pair for pair in pairs if None not in pair]
    steps = [pair for pair in both if all(map(_is_reply, pair)) and any(map(_is_talk, pair))]
    return 2 * len(steps) > len(both)


_TABLED: Final = frozenset({*_NAMES, "label", "expected"} - {"recorded"})
"""Fields whose columns are recognised by their values, too."""


def _says_calls(columns: _Columns, column: str) -> bool:
    """Return whether a column that may hold an expected text holds calls."""
    return plain_name(column) not in _PLAIN_TEXTS or columns.fit(column, _are_data)


def _columns_of_keyed_calls(columns: _Columns) -> Iterator[str]:
    """Yield the columns that expect calls as ``{TOOL: ARGUMENTS}``.

    A column that may hold anything else has to name tools that are called in the same data.
    """
    call_columns = filter(None, map(columns.column, _NAMES["calls"]))
    called = set[str]().union(*(_named_tools(columns, column) for column in call_columns))
    for name in _NAMES["expected.calls"]:
        column = columns.column(name)
        if column is None or not columns.fit(column, _is_keyed):
            continue
        if column not in _ANY_REFERENCE or _named_tools(columns, column) & called:
            yield column


def _named_tools(columns: _Columns, column: str) -> set[str]:
    """Return the names of the tools in the calls of a column."""
    values = [value for value in columns.values(column) if value is not None]
    calls = [call for value in values for call in as_list(calls_of(with_names(value)))]
    names = [call.get("name") for call in calls if isinstance(call, dict)]
    return {name for name in names if isinstance(name, str)}


def is_session(column: str) -> bool:
    """Return whether a column or path is that of a conversation's, thread's or trace's id."""
    return plain_name(column) in _PLAIN_SESSIONS


def names_session(record: Mapping[str, Any]) -> bool:
    """Return whether a record has the id of a conversation, a thread or a trace."""
    names = {plain_name(str(name)) for name in record}
    return any(
        path_exists(record, path_steps(session)) if session.startswith("$") else plain in names
        for session, plain in zip(_SESSIONS, _PLAIN_SESSIONS, strict=True)
    )


def has_several_records(records: Iterable[Mapping[str, Any]], column: str) -> bool:
    """Return whether two or more records have the same id in a column."""
    values = (path_value(record, path_steps(column)) for record in records)
    ids = Counter(str(value) for value in values if value is not None and value != "")
    numbers = ids.values()
    return any(number > 1 for number in numbers)


def _question(record: Mapping[str, Any], fields: Mapping[str, str]) -> str:
    """Return the question of a record, or else the first message of the user."""
    if "input" in fields:
        steps = path_steps(fields["input"])
        return compact(path_value(record, steps))
    messages = fields.get("messages")
    column = fields.get("prior_messages", messages)
    if column is None:
        talk = None
    else:
        talk = talk_of(path_value(record, path_steps(column)))
    for entry in talk if isinstance(talk, list) else ():
        if isinstance(entry, OBJECT) and entry.get("role") == "user":
            text = text_of(entry.get("content"))
            return text or compact(entry.get("content"))
    return ""


def _paths_to_name(inputs: Inputs) -> list[str]:
    """Return the arguments for inputs in a command: for very many, the folder above them all."""
    paths = [str(file.path) for file in inputs.data]
    if len(paths) <= _NAMED:
        return paths
    folders = [file.path.parent for file in inputs.data]
    if any(folder.is_absolute() for folder in folders):
        folders = [folder.absolute() for folder in folders]
    commonpath = os.path.commonpath(folders)
    return [commonpath or "."]


def notes_on(
    inputs: Inputs, columns: Mapping[str, str], options: Sequence[str] | None
) -> list[str]:
    """Return a note on the recognised columns, and one with the command that asks for them.

    Args:
        inputs: The files.
        columns: Field -> column or path.
        options: Options of the command; None where no command says the same.
    """
    if not columns:
        return []
    pairs = ", ".join(f"{field} = {column}" for field, column in columns.items())
    note = f"Recognised ({OWN_DATA}): {pairs}"
    if options is None:
        return [note]
    paths = _paths_to_name(inputs)
    if inputs.dataset is not None:
        path = str(inputs.dataset.path)
        paths += ["--dataset", path]
    words = [*paths, *options]
    for field, column in columns.items():
        words += ["--map", f"{field}={column}"]
    command = shlex.join(["gradestack", "grade", *words])
    return [note, f"The same as: {command}"]
