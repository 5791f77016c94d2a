"""One table of grades: a row per sample, columns of codes into lists of what is distinct.

While a shard is graded nothing is summed. A sample gets a code for its id, model and run, and per
grader one for its **verdict**: everything figures need of the grade. Equal verdicts are one, so
that a metric looks at each once. Label and gold, of which there may be very many, stand beside it
until the shard is done: few metrics read them. A shard's columns travel as bytes; the run joins
them in input order.
"""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import repeat
from operator import add, attrgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

import msgspec
from msgspec.structs import force_setattr

from gradestack.errors import TimedOut
from gradestack.model import JSON, Fault, Grade, Key, Outcome, Sample, explained

Numbers = Mapping[str, float]
"""What a grade, or a task, adds to the sums figures are computed from; an absent name is 0."""
Contribution = Callable[[Grade], Numbers | None]
NamedVerdict = tuple[bytes, str | None, str | None]
"""What figures need of a grade: its packed verdict, label and gold."""
_CODES: Final = "I"
"""Type of codes: 32 bits."""
FORM: Final = "8"
"""Form of a shard's columns; a run begun with another is not continued."""
_pack, _unpack = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder().decode
_MSGPACK, _JSON = b"m", b"j"
_KEY_COLUMNS: Final = ("id", "cluster", "model", "run")
_FACETS: Final = "facets"
_BROKEN: Final = (Exception, SystemExit, GeneratorExit, TimedOut)
_BEYOND_MSGPACK: Final = (TypeError, ValueError, OverflowError)
"""What MessagePack raises at a lone surrogate, or a number beyond 64 bits."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of grades that the figures of a run need, beyond their verdicts.

    Attributes:
        parts: Grader key -> parts of its grades that metrics keep: ``fault``, ``metadata`` or
            ``metadata:NAME``.
        contributions: Name of a metric -> grader key and the metric's ``contribution``. It is
            taken where the grade is made, so that items and reasons need not travel.
        facets: Facets that metrics or gates group by.
    """

    parts: Mapping[str, Sequence[str]]
    contributions: Mapping[str, tuple[str, Contribution]] = msgspec.field(default_factory=dict)
    facets: Sequence[str] = ()


class Column:
    """A column: codes into distinct values."""

    __slots__ = ("_known", "codes", "values")

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.codes = array(_CODES)
        self._known: dict[Any, int] = {}

    def codes_of(self, values: Sequence[Any]) -> list[int]:
        """Return the codes of values; new ones get one."""
        known = self._known
        if len(known) != len(self.values):
            known.update(zip(self.values, range(len(self.values)), strict=True))
        try:
            return list(map(known.__getitem__, values))
        except KeyError:
            new = [value for value in dict.fromkeys(values) if value not in known]
            known.update(zip(new, range(len(known), len(known) + len(new)), strict=True))
            self.values += new
            return list(map(known.__getitem__, values))

    def add(self, values: Sequence[Any]) -> list[int]:
        """Add values and return their codes."""
        codes = self.codes_of(values)
        self.codes.extend(codes)
        return codes

    def extend(self, values: Sequence[Any], codes: array[int]) -> None:
        """Add codes into other values."""
        renumbered = self.codes_of(values)
        if renumbered != list(range(len(renumbered))):
            codes = array(_CODES, map(renumbered.__getitem__, codes))
        self.codes.extend(codes)

    def forget(self) -> None:
        """Drop what is only needed to add more."""
        self._known.clear()


class GradeView:
    """A grade as a metric's ``contribution`` reads it.

    Attributes:
        reads_names: Whether its label or its gold was read.
        reads_more: Whether anything was read that its verdict does not hold.
    """

    __slots__ = (
        *("outcome", "score", "passed", "counts", "parts", "numbers"),
        *("_grade", "_kept", "reads_names", "reads_more"),
    )
    __class__ = property(lambda _: Grade)  # a contribution may ask whether it is given a grade

    def __init__(self, grade: Grade, kept: Container[str] = ()) -> None:
        """Show a grade, of whose members the verdict holds those that are ``kept`` besides."""
        self.outcome, self.score, self.passed = grade.outcome, grade.score, grade.passed
        self.counts, self.parts, self.numbers = grade.counts, grade.parts, grade.numbers
        self._grade, self._kept = grade, kept
        self.reads_names = self.reads_more = False

    def __getattr__(self, name: str) -> Any:
        if name in _NAMES:
            self.reads_names = True
        elif name not in self._kept:
            self.reads_more = True
            self._grade = explained(self._grade)
        return getattr(self._grade, name)


class Verdicts:
    """The verdicts of a grader's grades in one shard.

    Attributes:
        plain: Column of packed verdicts, without label and gold.
        named: Column of the same with label and gold.
    """

    def __init__(self, parts: Sequence[str]) -> None:
        """Start without grades; ``parts`` are those that metrics keep besides."""
        self.parts = parts
        self.plain, self.named = Column(), Column()

    def add(self, grades: Sequence[Grade], packed: Sequence[bytes]) -> None:
        """Add a block of grades, whose verdicts are packed."""
        self.plain.add(packed)
        self.named.add(list(zip(packed, *_names_of(grades), strict=True)))

    def plain_codes(self, named: int) -> list[int]:
        """Return the code of the plain verdict of each of so many named ones."""
        return self.plain.codes_of([verdict for verdict, _, _ in self.named.values[:named]])

    def pack(self) -> tuple[bytes, bytes]:
        """Return the packed values, and the codes.

        Names are packed apart: with an odd one, such as a lone surrogate, they become JSON, which
        has no form for packed verdicts.
        """
        values = self.named.values
        verdicts, labels, golds = [[value[place] for value in values] for place in range(3)]
        return _pack([verdicts, _packed(labels), _packed(golds)]), self.named.codes.tobytes()


def _unpack_verdicts(data: bytes) -> list[NamedVerdict]:
    verdicts, *names = _unpack(data)
    return list(zip(verdicts, *map(_unpacked, names), strict=True))


class MetricNumbers:
    """The numbers that the grades of a shard add to a metric's sums.

    A contribution that reads nothing beyond the verdict is the same for equal verdicts: the metric
    is asked once for each. As soon as it reads label or gold it is asked for each verdict with
    other ones, and as soon as it reads more, for each grade.
    """

    def __init__(self, contribution: Contribution, verdicts: Verdicts) -> None:
        """Start without grades, whose verdicts will be these."""
        self._contribution, self._verdicts = contribution, verdicts
        self._column = Column()
        self._reads_names = self._reads_more = False
        self._by_verdict: list[int] = []
        """The code of the numbers of each verdict, plain or named."""

    def add(self, grades: Sequence[Grade]) -> None:
        """Add a block of grades, whose verdicts were added already."""
        before = len(self._verdicts.plain.codes) - len(grades)
        while not self._reads_more:
            verdicts, code = self._verdicts_in_use(), len(self._by_verdict)
            if code == len(verdicts.values):
                return
            row = verdicts.codes.index(code, before)
            view = GradeView(grades[row - before], self._verdicts.parts)
            numbers = _packed(self._contribution(cast("Grade", view)))
            if view.reads_names and not self._reads_names:
                self._reads_names = True
                plain_codes = self._verdicts.plain_codes(self._verdicts.named.codes[row])
                self._by_verdict = list(map(self._by_verdict.__getitem__, plain_codes))
            self._by_verdict += self._column.codes_of([numbers])
            if view.reads_more:
                self._column.codes = self._codes_of_rows(row + 1)
                self._reads_more = True
                grades = grades[row + 1 - before :]
        self._column.add([_packed(self._contribution(explained(grade))) for grade in grades])

    def _verdicts_in_use(self) -> Column:
        """Return the verdicts as far as the metric reads them."""
        return self._verdicts.named if self._reads_names else self._verdicts.plain

    def _codes_of_rows(self, count: int | None = None) -> array[int]:
        codes = self._verdicts_in_use().codes[:count]
        return array(_CODES, map(self._by_verdict.__getitem__, codes))

    def finish(self) -> Column:
        """Return the column of the packed numbers."""
        if not self._reads_more:
            self._column.codes = self._codes_of_rows()
        return self._column


class Columns:
    """The table of one shard, while it is graded."""

    def __init__(
        self, wanted: Wanted, broken: Callable[[str, BaseException], None] | None = None
    ) -> None:
        """Start empty columns for keys, verdicts and the numbers of metrics."""
        self._wanted, self._broken = wanted, broken
        self._keys = {name: Column() for name in (*_KEY_COLUMNS, _FACETS)}
        self._verdicts = {key: Verdicts(parts) for key, parts in wanted.parts.items()}
        self._numbers = {
            name: MetricNumbers(contribution, self._verdicts[key])
            for name, (key, contribution) in wanted.contributions.items()
        }
        self._is_missing = bytearray()

    def add(
        self,
        keys: Sequence[Key | Sample],
        grades: Mapping[str, Sequence[Grade]],
        is_missing: Iterable[bool],
        verdicts: Mapping[str, Sequence[bytes]] | None = None,
    ) -> None:
        """Add a block of samples.

        Args:
            keys: What has id, cluster, model, run and facets of each sample.
            grades: Grader key -> the grades of the samples.
            is_missing: Whether each sample has no recorded run.
            verdicts: Verdicts of some graders, where they are known.
        """
        for name in _KEY_COLUMNS:
            self._keys[name].add(list(map(attrgetter(name), keys)))
        self._keys[_FACETS].add(self._pack_facets(keys))
        self._is_missing.extend(is_missing)
        for key, of_grader in self._verdicts.items():
            known = None
            if verdicts:
                known = verdicts.get(key)
            if known is None:
                known = pack_verdicts(grades[key], of_grader.parts)
            of_grader.add(grades[key], known)
        for name, numbers in list(self._numbers.items()):
            key, _ = self._wanted.contributions[name]
            try:
                numbers.add(grades[key])
            except _BROKEN as error:  # the other metrics must not be lost
                if self._broken is None:
                    raise
                del self._numbers[name]
                self._broken(name, error)

    def _pack_facets(self, keys: Sequence[Key | Sample]) -> list[bytes]:
        names = self._wanted.facets
        if not names:
            return [b""] * len(keys)
        facets = [key.facets for key in keys]
        return [
            _packed({name: sample_facets[name] for name in names if name in sample_facets})
            for sample_facets in facets
        ]

    def to_bytes(self) -> bytes:
        """Return everything added."""
        numbers = {name: of_metric.finish() for name, of_metric in self._numbers.items()}
        keys, sums = [
            [_pack_column(name, column) for name, column in columns.items()]
            for columns in (self._keys, numbers)
        ]
        verdicts = [(_packed(key), *of_grader.pack()) for key, of_grader in self._verdicts.items()]
        return _pack([bytes(self._is_missing), keys, verdicts, sums, _packed(self._wanted.parts)])


def _pack_column(name: str, column: Column) -> tuple[bytes, bytes, bytes]:
    return _packed(name), _packed(column.values), column.codes.tobytes()


def check_numbers(numbers: Any) -> Numbers | None:
    """Check the numbers that a grade adds to sums, and return them.

    Raises:
        TypeError: It is no mapping of names to numbers.
        ValueError: A name is empty, or a number is not finite.
    """
    if numbers is None:
        return None
    if not isinstance(numbers, Mapping):
        raise TypeError(f"contribution() gave {numbers!r:.200}, not a mapping of names to numbers")
    for name, number in numbers.items():
        shown = f"contribution() gave {name!r}: {number!r}"
        if not isinstance(name, str) or not isinstance(number, int | float):
            raise TypeError(f"{shown}, not a name and a number")
        if not name or not math.isfinite(number):
            raise ValueError(f"{shown}, and names are not empty, numbers finite")
    return numbers


def _packed(value: Any) -> bytes:
    """Return a value as bytes, equal ones as equal bytes."""
    try:
        return _MSGPACK + _pack(value)
    except _BEYOND_MSGPACK:
        return _JSON + json.dumps(msgspec.to_builtins(value), default=dict).encode()


def _unpacked(data: bytes) -> Any:
    if data[:1] == _MSGPACK:
        return _unpack(data[1:])
    return json.loads(data[1:])


_VERDICT: Final[Mapping[str, Any]] = {
    "outcome": Outcome,
    "score": Any,
    "passed": bool | None,
    "counts": dict[str, Any],
    "parts": dict[str, Any],
    "numbers": dict[str, Any] | None,
}
"""A grade's verdict: what figures may need of any but its names; what else some keep follows."""
_NAMES: Final = ("label", "gold")
_KINDS_OF_NAMES: Final = (str, type(None))
_KEPT: Final[Mapping[str, Any]] = {"fault": Fault | None, "metadata": dict[str, Any]}
"""Parts of a grade that metrics keep as a whole."""


def _names_of(grades: Iterable[Grade]) -> list[list[str | None]]:
    """Return the labels and golds of grades."""
    return [list(map(attrgetter(name), grades)) for name in _NAMES]


def have_sound_names(grades: Iterable[Grade]) -> bool:
    """Check whether labels and golds are text or None."""
    labels, golds = _names_of(grades)
    kinds = {*map(type, labels), *map(type, golds)}
    return all(issubclass(kind, _KINDS_OF_NAMES) for kind in kinds)


def verdicts_of(grades: Iterable[Grade], parts: Sequence[str] = ()) -> list[bytes]:
    """Return the verdicts of grades, with parts that metrics keep, as bytes.

    Equal ones as equal bytes.
    """
    return list(map(_pack, map(_getter(parts), grades)))


def pack_verdicts(grades: Sequence[Grade], parts: Sequence[str] = ()) -> list[bytes]:
    """Return the same; as JSON, which begins with ``[``, where MessagePack has no form for it."""
    try:
        return verdicts_of(grades, parts)
    except _BEYOND_MSGPACK:
        return [_packed(value)[1:] for value in map(_getter(parts), grades)]


def _split_parts(parts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the parts that are kept whole, and the names of kept metadata."""
    whole_parts = [part for part in parts if ":" not in part]
    return whole_parts, [part.partition(":")[2] for part in parts if ":" in part]


def _getter(parts: Sequence[str]) -> Callable[[Grade], tuple[Any, ...]]:
    whole_parts, metadata = _split_parts(parts)
    get_members = attrgetter(*_VERDICT, *whole_parts)
    if not metadata:
        return get_members
    return lambda grade: (*get_members(grade), *map(grade.metadata.get, metadata))


@cache
def _decoder(whole_parts: tuple[str, ...], metadata: int) -> msgspec.msgpack.Decoder[Any]:
    """Return the decoder of verdicts with some parts, and so many members of metadata."""
    fields: list[Any] = [*_VERDICT.items()]
    fields += [(f"whole_{part}", _KEPT.get(part, Any)) for part in whole_parts]
    fields += [(f"metadata_{index}", Any) for index in range(metadata)]
    return msgspec.msgpack.Decoder(msgspec.defstruct("Verdict", fields, array_like=True))


def _decode_verdicts(verdicts: Iterable[NamedVerdict], parts: Sequence[str]) -> Iterator[Grade]:
    """Yield the grade of each verdict, with the parts of a grade that were kept."""
    whole_parts, kept_metadata = _split_parts(parts)
    decoder = _decoder(tuple(whole_parts), len(kept_metadata))
    for packed, label, gold in verdicts:
        verdict: Any
        if packed.startswith(b"["):
            verdict = msgspec.convert(json.loads(packed), decoder.type)
        else:
            verdict = decoder.decode(packed)
        members = {name: getattr(verdict, name) for name in _VERDICT}
        for name in ("counts", "parts"):
            members[name] = MappingProxyType(members[name])
        for part in whole_parts:
            members[part] = getattr(verdict, f"whole_{part}")
        metadata = {}
        for index, name in enumerate(kept_metadata):
            value = getattr(verdict, f"metadata_{index}")
            if value is not None:
                metadata[name] = value
        if metadata:
            members["metadata"] = {**members.get("metadata", {}), **metadata}
        grade = Grade(label=label, gold=gold, **members)
        force_setattr(grade, "metadata", _freeze(grade.metadata))
        yield grade


def _freeze(value: Any) -> Any:
    """Return a value whose mappings cannot be changed.

    Several metrics, one after the other, see it.
    """
    if type(value) is not dict:
        return value
    return MappingProxyType({key: _freeze(member) for key, member in value.items()})


class TaskModelIndex(NamedTuple):
    """The tasks of each model: what samples add is summed by these cells."""

    models: list[str]
    """Names of the models, empty for none."""
    names: list[str]
    """Names of the tasks."""
    codes: Sequence[int]
    """The cell of each sample."""
    tasks: Sequence[int]
    """The task of each cell."""
    of_models: Sequence[int]
    """The model of each cell."""


class Table:
    """All grades of a run, in input order.

    Attributes:
        keys: Columns of the samples: ``id``, ``cluster``, ``model``, ``run`` and ``facets``
            (packed).
        verdicts: Grader key -> column of what figures need of its grades: packed verdict, label
            and gold.
        numbers: Name of a metric -> column of what grades add to its sums (packed).
        parts: Grader key -> what else its verdicts hold.
        is_missing: For each sample 1 where it has no recorded run, else 0.
        inputs: Where the samples of each input begin: name and number of rows before.
    """

    def __init__(self, graders: Iterable[str]) -> None:
        """Start an empty table with a column of verdicts per grader."""
        self.keys = {name: Column() for name in (*_KEY_COLUMNS, _FACETS)}
        self.verdicts = {key: Column() for key in graders}
        self.numbers: dict[str, Column] = {}
        self.parts: dict[str, Sequence[str]] = {}
        self.is_missing = bytearray()
        self.inputs: list[tuple[str, int]] = []
        self._grades: dict[str, list[Grade]] = {}
        self._cells: TaskModelIndex | None = None
        self._verdict_counts: dict[str, Counter[tuple[int, int]]] = {}
        self._repeated: list[int] | None = None

    @classmethod
    def of(
        cls,
        wanted: Wanted,
        keys: Sequence[Key | Sample],
        grades: Mapping[str, Sequence[Grade]],
        is_missing: Iterable[bool] | None = None,
    ) -> Table:
        """Return the table of grades at hand."""
        columns = Columns(wanted)
        missing = repeat(False, len(keys)) if is_missing is None else is_missing
        columns.add(keys, grades, missing)
        table = cls(wanted.parts)
        table.extend(columns.to_bytes())
        return table

    def __len__(self) -> int:
        return len(self.is_missing)

    def extend(self, data: bytes, name: str = "") -> None:
        """Add the columns of the next shard, which ``Columns.to_bytes`` returned.

        ``name`` is that of its input.
        """
        before = len(self)
        if not self.inputs or self.inputs[-1][0] != name:
            self.inputs.append((name, before))
        self._cells, self._verdict_counts, self._repeated = None, {}, None
        is_missing, keys, verdicts, numbers, parts = _unpack(data)
        self.parts = _unpacked(parts)
        self.is_missing += is_missing
        for columns, packed_columns, unpack in (
            (self.keys, keys, _unpacked),
            (self.verdicts, verdicts, _unpack_verdicts),
            (self.numbers, numbers, _unpacked),
        ):
            for packed_name, values, codes in packed_columns:
                column = columns.setdefault(_unpacked(packed_name), Column())
                if len(column.codes) == before:  # else it broke in an earlier shard, and is no use
                    column.extend(unpack(values), array(_CODES, codes))

    def facets(self) -> list[dict[str, JSON]]:
        """Return the distinct facets, as far as they were asked for."""
        return [_unpacked(packed) if packed else {} for packed in self.keys[_FACETS].values]

    def contributions(self, name: str) -> tuple[list[Numbers | None], Sequence[int]]:
        """Return the distinct contributions of grades to a metric, and the code of each sample.

        A table without rows has none.
        """
        column = self.numbers[name] if len(self) else Column()
        return [check_numbers(_unpacked(packed)) for packed in column.values], column.codes

    def grades(self, key: str) -> list[Grade]:
        """Return the distinct grades of a grader, with what figures need of them."""
        grades, verdicts = self._grades.setdefault(key, []), self.verdicts[key].values
        if len(grades) < len(verdicts):
            grades.extend(_decode_verdicts(verdicts[len(grades) :], self.parts[key]))
        return grades

    def count_verdicts(
        self, key: str, rows: Sequence[int] | None = None
    ) -> Counter[tuple[int, int]]:
        """Count samples, or rows, by their verdict of a grader and their model, as codes."""
        columns = [self.verdicts[key].codes, self.keys["model"].codes]
        if rows is not None:
            return Counter(zip(*[map(codes.__getitem__, rows) for codes in columns], strict=True))
        if key not in self._verdict_counts:
            self._verdict_counts[key] = Counter(zip(*columns, strict=True))
        return self._verdict_counts[key]

    def repeated(self) -> list[int]:
        """Return the rows that repeat the id, model and run of an earlier row.

        Rows of missing runs are left out.
        """
        if self._repeated is None:
            self._repeated = self._find_repeated()
        return self._repeated

    def _find_repeated(self) -> list[int]:
        ids, models, runs = (self.keys[name] for name in ("id", "model", "run"))
        if len(ids.values) == len(self):
            return []
        most_models, most_runs = len(models.values), len(runs.values)
        columns = zip(ids.codes, models.codes, runs.codes, strict=True)
        identities = [
            (name * most_models + model) * most_runs + run for name, model, run in columns
        ]
        if len(set(identities)) == len(self):
            return []
        earlier, repeated = set[int](), list[int]()
        for row, identity in enumerate(identities):
            if self.is_missing[row]:
                continue
            if identity in earlier:
                repeated.append(row)
            earlier.add(identity)
        return repeated

    def repeated_by_name(self) -> list[int]:
        """Return the repeated rows whose runs have a name."""
        runs = self.keys["run"]
        return [row for row in self.repeated() if runs.values[runs.codes[row]] is not None]

    def forget(self) -> None:
        """Drop what is only needed to add more shards."""
        for columns in (self.keys, self.verdicts, self.numbers):
            for column in columns.values():
                column.forget()

    def tasks(self) -> tuple[list[str], array[int]]:
        """Return the names of the tasks, a sample's cluster or else its id, and each
        sample's task.
        """
        ids, clusters = self.keys["id"], self.keys["cluster"]
        if all(cluster is None for cluster in clusters.values):
            return ids.values, ids.codes
        tasks: dict[str, int] = {}
        codes = array(_CODES)
        for code, cluster in zip(ids.codes, clusters.codes, strict=True):
            name = clusters.values[cluster]
            name = ids.values[code] if name is None else name
            codes.append(tasks.setdefault(name, len(tasks)))
        return list(tasks), codes

    def cells(self) -> TaskModelIndex:
        """Return the tasks of each model, and each sample's."""
        if self._cells is None:
            self._cells = self._index_cells()
        return self._cells

    def _index_cells(self) -> TaskModelIndex:
        """Number the pairs of task and model that have rows, and note the pair of each row."""
        column, (names, tasks) = self.keys["model"], self.tasks()
        models = list(dict.fromkeys(model or "" for model in column.values))
        if len(models) <= 1:
            return TaskModelIndex(models, names, tasks, range(len(names)), bytes(len(names)))
        first_number_by_model = {model: index * len(names) for index, model in enumerate(models)}
        first_numbers = [first_number_by_model[model or ""] for model in column.values]
        pair_numbers = list(map(add, map(first_numbers.__getitem__, column.codes), tasks))
        indexes_by_pair = {
            number: index for index, number in enumerate(dict.fromkeys(pair_numbers))
        }
        codes = array(_CODES, map(indexes_by_pair.__getitem__, pair_numbers))
        of_models = array(_CODES, [number // len(names) for number in indexes_by_pair])
        of_tasks = array(_CODES, [number % len(names) for number in indexes_by_pair])
        return TaskModelIndex(models, names, codes, of_tasks, of_models)

    def of_input(self, name: str) -> array[int]:
        """Return the rows of an input; there are none while the table is empty."""
        rows = array(_CODES)
        ends = [*(start for _, start in self.inputs[1:]), len(self)]
        for (input_name, start), end in zip(self.inputs, ends, strict=False):
            if input_name == name:
                rows.extend(range(start, end))
        return rows
