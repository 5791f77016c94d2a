"""One table of grades: a row per sample, columns of codes into lists of what is distinct.

While a shard is graded nothing is summed. A sample gets a code for its id, model and run, and per
grader one for its **verdict**: everything figures need of the grade. Equal verdicts are one, so
that a metric looks at each once. A shard's columns travel as bytes; the run joins them in input
order.
"""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import repeat
from operator import add, attrgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

import msgspec
from msgspec.structs import force_setattr

from gradestack.errors import TimedOut
from gradestack.model import JSON, Fault, Grade, Key, Outcome, Sample, Status, explained, replace

Numbers = Mapping[str, float]
"""What a grade, or a task, adds to the sums figures are computed from; an absent name is 0."""
Contribution = Callable[[Grade], Numbers | None]
_CODES: Final = "I"
"""Type of codes: 32 bits."""
FORM: Final = "6"
"""Form of a shard's columns; a run begun with another is not continued."""
_pack, _unpack = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder().decode
_MSGPACK, _JSON = b"m", b"j"


RAN: Final = {Status.OK: 1, Status.FAILED: 0, Status.MISSING: 2}
"""How columns write whether a recorded run did not fail."""
Place = Key | Sample
"""What has the columns of a sample."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the figures of a run need of its grades, beyond their verdicts.

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
        codes: list[Any] = list(map(known.get, values))
        if None in codes:
            for at, value in enumerate(values):
                if codes[at] is None:
                    codes[at] = known.setdefault(value, len(known))
                    self.values += [value] * (len(known) - len(self.values))
        return codes

    def add(self, values: Sequence[Any]) -> list[int]:
        """Add values and return their codes."""
        codes = self.codes_of(values)
        self.codes.extend(codes)
        return codes

    def extend(self, values: Sequence[Any], codes: array[int]) -> None:
        """Add codes into other values."""
        at = self.codes_of(values)
        self.codes.extend(
            codes if at == list(range(len(at))) else array(_CODES, map(at.__getitem__, codes))
        )

    def forget(self) -> None:
        """Let go of what is only needed to add more."""
        self._known.clear()


class GradeView:
    """A grade as a metric's ``contribution`` reads it.

    Attributes:
        reads_more: Whether anything was read that its verdict does not hold.
    """

    __slots__ = ("_grade", "reads_more")
    __class__ = property(lambda _: Grade)  # a contribution may ask whether it is given a grade

    def __init__(self, grade: Grade) -> None:
        self._grade, self.reads_more = grade, False

    def __getattr__(self, name: str) -> Any:
        if name not in _VERDICT:
            self.reads_more = True
            self._grade = explained(self._grade)
        return getattr(self._grade, name)


class Columns:
    """The table of one shard, while it is graded."""

    def __init__(
        self, wanted: Wanted, broken: Callable[[str, BaseException], None] | None = None
    ) -> None:
        self._wanted, self._broken = wanted, broken
        self._keys = {name: Column() for name in _KEYS}
        self._verdicts = {key: Column() for key in wanted.parts}
        self._numbers = {name: Column() for name in wanted.contributions}
        self._by_verdict: dict[str, dict[int, bytes]] = {name: {} for name in self._numbers}
        self._read_whole: set[str] = set()
        """Metrics that have read more of a grade than its verdict."""
        self._ran = bytearray()

    def add(
        self,
        places: Sequence[Place],
        grades: Mapping[str, Sequence[Grade]],
        ran: Iterable[int],
        verdicts: Mapping[str, Sequence[bytes]] | None = None,
    ) -> None:
        """Add a block of samples; ``verdicts`` are those of some graders, where they are known."""
        keys, facets = self._keys, self._wanted.facets
        for name in _KEYS[:-1]:
            keys[name].add(list(map(attrgetter(name), places)))
        groups = [
            {name: each.facets[name] for name in facets if name in each.facets}
            for each in places
            if facets
        ]
        keys["facets"].add(list(map(_packed, groups)) or [b""] * len(places))
        self._ran.extend(ran)
        known, parts = verdicts or {}, self._wanted.parts
        codes = {
            key: column.add(
                known[key] if key in known else packed_verdicts(grades[key], parts[key])
            )
            for key, column in self._verdicts.items()
        }
        for name in list(self._numbers):
            key = self._wanted.contributions[name][0]
            try:
                self._numbers[name].add(self._contributions(name, grades[key], codes[key]))
            except (
                Exception,
                SystemExit,
                GeneratorExit,
                TimedOut,
            ) as error:  # the other metrics must not be lost
                if self._broken is None:
                    raise
                del self._numbers[name]
                self._broken(name, error)

    def _contributions(
        self, name: str, grades: Sequence[Grade], codes: Sequence[int]
    ) -> list[bytes]:
        """Return what grades add to a metric's sums, packed.

        A contribution that reads nothing beyond the verdict is the same for equal verdicts: the
        metric is asked once.
        """
        contribution = self._wanted.contributions[name][1]
        if name in self._read_whole:
            return [_packed(contribution(explained(grade))) for grade in grades]
        known = self._by_verdict[name]
        packed: list[Any] = list(map(known.get, codes))
        if None not in packed:
            return packed
        for at, grade in enumerate(grades):
            if packed[at] is not None:
                continue
            packed[at] = known.get(codes[at])
            if packed[at] is None:
                view = GradeView(grade)
                packed[at] = _packed(contribution(cast("Grade", view)))
                if view.reads_more:
                    self._read_whole.add(name)
                else:
                    known[codes[at]] = packed[at]
        return packed

    def to_bytes(self) -> bytes:
        """Return everything added."""
        parts = [
            [
                (_packed(name), _packed(each.values), each.codes.tobytes())
                for name, each in columns.items()
            ]
            for columns in (self._keys, self._verdicts, self._numbers)
        ]
        return _pack([bytes(self._ran), *parts, _packed(self._wanted.parts)])


_KEYS: Final = ("id", "cluster", "model", "run", "facets")


def sound_numbers(numbers: Any) -> Numbers | None:
    """Return what a grade adds to sums."""
    if numbers is None:
        return None
    if not isinstance(numbers, Mapping):
        raise TypeError(f"contribution() gave {numbers!r:.200}, not a mapping of names to numbers")
    found: Numbers = numbers
    for name, number in numbers.items():
        if not isinstance(name, str) or not isinstance(number, int | float):
            raise TypeError(f"contribution() gave {name!r}: {number!r}, not a name and a number")
        if not name or not math.isfinite(number):
            raise ValueError(
                f"contribution() gave {name!r}: {number!r}, and names are not empty, numbers finite"
            )
    return found


def _packed(value: Any) -> bytes:
    """Return a value as bytes, equal ones as equal bytes."""
    try:
        return _MSGPACK + _pack(value)
    except (TypeError, ValueError, OverflowError):  # a lone surrogate, or a number beyond 64 bits
        return _JSON + json.dumps(msgspec.to_builtins(value), default=dict).encode()


def _unpacked(data: bytes) -> Any:
    return _unpack(data[1:]) if data[:1] == _MSGPACK else json.loads(data[1:])


_VERDICT: Final[Mapping[str, Any]] = {
    "outcome": Outcome,
    "score": Any,
    "passed": bool | None,
    "label": str | None,
    "gold": str | None,
    "counts": dict[str, Any],
    "parts": dict[str, Any],
    "numbers": dict[str, Any] | None,
}
"""A grade's verdict: what figures may need of any; what else some keep follows."""


def verdicts_of(grades: Iterable[Grade], parts: Sequence[str] = ()) -> list[bytes]:
    """Return the verdicts of grades, with parts that metrics keep, as bytes.

    Equal ones as equal bytes.
    """
    return list(map(_pack, map(_getter(parts), grades)))


def packed_verdicts(grades: Sequence[Grade], parts: Sequence[str] = ()) -> list[bytes]:
    """Return the same; as JSON, which begins with ``[``, where MessagePack has no form for it."""
    try:
        return verdicts_of(grades, parts)
    except (TypeError, ValueError, OverflowError):
        return [_packed(value)[1:] for value in map(_getter(parts), grades)]


def _getter(parts: Sequence[str]) -> Callable[[Grade], tuple[Any, ...]]:
    plain = attrgetter(*_VERDICT, *[part for part in parts if ":" not in part])
    names = [part.partition(":")[2] for part in parts if ":" in part]
    if not names:
        return plain
    return lambda grade: (*plain(grade), *[grade.metadata.get(name) for name in names])


@cache
def _form(parts: tuple[str, ...]) -> type[Any]:
    fields = [
        *_VERDICT.items(),
        *((f"part_{at}", _PARTS.get(part, Any)) for at, part in enumerate(parts)),
    ]
    return msgspec.defstruct("Verdict", fields, array_like=True)


def _grades(verdicts: Iterable[bytes], parts: Sequence[str]) -> Iterator[Grade]:
    names = [*[part for part in parts if ":" not in part], *[part for part in parts if ":" in part]]
    form = _form(tuple(names))
    decode = msgspec.msgpack.Decoder(form).decode
    for data in verdicts:
        known = msgspec.convert(json.loads(data), form) if data[:1] == b"[" else decode(data)
        grade = Grade(
            outcome=known.outcome,
            score=known.score,
            passed=known.passed,
            label=known.label,
            gold=known.gold,
            counts=MappingProxyType(known.counts),
            parts=MappingProxyType(known.parts),
            numbers=known.numbers,
        )
        if names:
            found: dict[str, Any] = {}
            for at, name in enumerate(names):
                of, _, key = name.partition(":")
                value = getattr(known, f"part_{at}")
                if value is not None:
                    found[of] = {**found.get(of, {}), key: value} if key else value
            grade = replace(grade, **found)
            force_setattr(grade, "metadata", _frozen(grade.metadata))
        yield grade


def _frozen(value: Any) -> Any:
    """Return a value whose mappings cannot be changed.

    Several metrics, one after the other, see it.
    """
    return (
        MappingProxyType({key: _frozen(each) for key, each in value.items()})
        if type(value) is dict
        else value
    )


_PARTS: Final[Mapping[str, Any]] = {
    "fault": Fault | None,
    "metadata": dict[str, Any],
}


class Cells(NamedTuple):
    """The tasks of each model: what samples add is summed by these."""

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
        verdicts: Grader key -> column of what figures need of its grades (packed).
        numbers: Name of a metric -> column of what grades add to its sums (packed), of metrics that
            read more.
        parts: Grader key -> what else its verdicts hold.
        ran: Status of each sample's recorded run, as in ``RAN``.
        inputs: Where the samples of each input begin: name and number of rows before.
    """

    def __init__(self, graders: Iterable[str]) -> None:
        self.keys = {name: Column() for name in _KEYS}
        self.verdicts = {key: Column() for key in graders}
        self.numbers: dict[str, Column] = {}
        self.parts: dict[str, Sequence[str]] = {}
        self.ran = bytearray()
        self.inputs: list[tuple[str, int]] = []
        self._grades: dict[str, list[Grade]] = {}
        self._cells: Cells | None = None
        self._alike: dict[str, Counter[tuple[int, int]]] = {}

    @classmethod
    def of(
        cls,
        wanted: Wanted,
        places: Sequence[Place],
        grades: Mapping[str, Sequence[Grade]],
        ran: Iterable[int] | None = None,
    ) -> Table:
        """Return the table of grades at hand."""
        columns = Columns(wanted)
        columns.add(places, grades, repeat(RAN[Status.OK], len(places)) if ran is None else ran)
        found = cls(wanted.parts)
        found.extend(columns.to_bytes())
        return found

    def __len__(self) -> int:
        return len(self.ran)

    def extend(self, data: bytes, name: str = "") -> None:
        """Add the columns of the next shard, which ``Columns.to_bytes`` returned.

        ``name`` is that of its input.
        """
        if not self.inputs or self.inputs[-1][0] != name:
            self.inputs.append((name, len(self)))
        before, self._cells, self._alike = len(self), None, {}
        ran, *parts, wanted = _unpack(data)
        self.parts = _unpacked(wanted)
        self.ran += ran
        for columns, into in zip(parts, (self.keys, self.verdicts, self.numbers), strict=True):
            for packed, values, codes in columns:
                column = into.setdefault(_unpacked(packed), Column())
                if (
                    len(column.codes) == before
                ):  # one that is missing in a shard is broken, and of no use
                    column.extend(_unpacked(values), array(_CODES, codes))

    def facets(self) -> list[dict[str, JSON]]:
        """Return the distinct facets, as far as they were asked for."""
        return [_unpacked(each) if each else {} for each in self.keys["facets"].values]

    def contributions(self, name: str) -> list[Numbers | None]:
        """Return the distinct contributions of grades to a metric."""
        return [sound_numbers(_unpacked(packed)) for packed in self.numbers_column(name).values]

    def numbers_column(self, name: str) -> Column:
        """Return the column of a metric's numbers: an empty one while the table has no rows."""
        return self.numbers[name] if len(self) else Column()

    def grades(self, key: str) -> list[Grade]:
        """Return the distinct grades of a grader, with what figures need of them."""
        found = self._grades.setdefault(key, [])
        if len(found) < len(values := self.verdicts[key].values):
            found.extend(_grades(values[len(found) :], self.parts[key]))
        return found

    def alike(self, key: str, rows: Sequence[int] | None = None) -> Counter[tuple[int, int]]:
        """Return how many samples, or rows, have which verdict of a grader, and model."""
        columns = [self.verdicts[key].codes, self.keys["model"].codes]
        if rows is not None:
            return Counter(zip(*[map(codes.__getitem__, rows) for codes in columns], strict=True))
        if key not in self._alike:
            self._alike[key] = Counter(zip(*columns, strict=True))
        return self._alike[key]

    def repeated(self, *, named: bool = False) -> list[int]:
        """Return the rows whose id, model and run an earlier one has.

        Those of missing runs repeat nothing. ``named``: only rows of runs that have a name.
        """
        ids, models, runs = (self.keys[name] for name in ("id", "model", "run"))
        seen, found = set[int](), list[int]()
        if len(ids.values) == len(self):
            return found
        unnamed = {code for code, run in enumerate(runs.values) if named and run is None}
        columns = zip(ids.codes, models.codes, runs.codes, self.ran, strict=True)
        for row, (at, model, run, ran) in enumerate(columns):
            if run in unnamed:
                continue
            identity = (at * len(models.values) + model) * len(runs.values) + run
            if identity in seen and ran != RAN[Status.MISSING]:
                found.append(row)
            elif ran != RAN[Status.MISSING]:
                seen.add(identity)
        return found

    def forget(self) -> None:
        """Let go of what is only needed to add more shards."""
        for columns in (self.keys, self.verdicts, self.numbers):
            for column in columns.values():
                column.forget()

    def tasks(self) -> tuple[list[str], array[int]]:
        """Return the names of the tasks, a sample's cluster or else its id, and each
        sample's task.
        """
        ids, clusters = self.keys["id"], self.keys["cluster"]
        if all(each is None for each in clusters.values):
            return ids.values, ids.codes
        known: dict[str, int] = {}
        found = array(_CODES)
        for at, cluster in zip(ids.codes, clusters.codes, strict=True):
            name = clusters.values[cluster]
            name = ids.values[at] if name is None else name
            found.append(known.setdefault(name, len(known)))
        return list(known), found

    def cells(self) -> Cells:
        """Return the tasks of each model, and each sample's."""
        if self._cells is None:
            models, (names, tasks) = self.keys["model"], self.tasks()
            known = {
                name: at
                for at, name in enumerate(dict.fromkeys(name or "" for name in models.values))
            }
            if len(known) <= 1:
                self._cells = Cells(list(known), names, tasks, range(len(names)), bytes(len(names)))
            else:
                of_code = [known[name or ""] for name in models.values]
                first = [model * len(names) for model in of_code]
                cells_of = list(map(add, map(first.__getitem__, models.codes), tasks))
                cells = {cell: at for at, cell in enumerate(dict.fromkeys(cells_of))}
                codes = array(_CODES, map(cells.__getitem__, cells_of))
                of_models = array(_CODES, [cell // len(names) for cell in cells])
                of_tasks = array(_CODES, [cell % len(names) for cell in cells])
                self._cells = Cells(list(known), names, codes, of_tasks, of_models)
        return self._cells

    def of_input(self, name: str) -> array[int]:
        """Return the rows of an input: none of a table to which nothing was added yet."""
        rows = array(_CODES)
        ends = [*(start for _, start in self.inputs[1:]), len(self)]
        for (input_name, start), end in zip(self.inputs, ends, strict=False):
            if input_name == name:
                rows.extend(range(start, end))
        return rows
