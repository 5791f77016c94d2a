"""Small components of every kind, and what makes plugins and registries of them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import attrs

from gradestack import (
    Aggregator,
    BadRecord,
    Component,
    ConfigError,
    DataError,
    Engine,
    Exporter,
    Figure,
    Grade,
    Grader,
    Grades,
    Inputs,
    LostEngineError,
    Program,
    ProgramFigure,
    ProgramInput,
    ProgramRun,
    Reader,
    Reason,
    Registry,
    Reporter,
    Sample,
    Shard,
    Source,
    discover,
    hookimpl,
    skipped,
)
from gradestack.registry import Plugin

ROOT = Path(__file__).parents[2]


@attrs.frozen(kw_only=True)
class Toy(Grader):
    """Gives the score found in ``recorded.score``, and misbehaves as ``recorded.do`` says."""

    needs, compares = frozenset({"recorded"}), frozenset()
    metrics = ("toy_count",)
    version = "7"

    factor: float = 1.0
    limit: int | None = None
    mode: Literal["plain", "loud"] = "plain"
    weights: dict[str, float] = attrs.field(factory=dict)
    names: tuple[str, ...] = ()
    place: Path | None = None
    anything: Any = None

    def __attrs_post_init__(self) -> None:
        if self.factor < 0:
            msg = f"factor must not be negative, got {self.factor}"
            raise ValueError(msg)

    def grade(self, sample: Sample) -> Grade:
        wish = sample.recorded.get("do")
        if wish == "raise":
            msg = f"cannot grade {object()!r}"
            raise ZeroDivisionError(msg)
        if wish == "interrupt":
            raise KeyboardInterrupt
        if wish == "leave":
            raise GeneratorExit
        if wish == "end the run":
            msg = "this record ends the run"
            raise DataError(msg)
        if wish == "skip":
            return skipped("no_reference", "nothing to compare with")
        if wish == "nothing":
            return None
        if wish == "set":
            return Grade(score=1.0, metadata={"odd": {1, 2}})
        if wish == "nan part":
            return Grade(score=1.0, parts={"share": float("nan")})
        score = sample.recorded.get("score", 0.0)
        score = float(score) if isinstance(score, str) else score
        if score == 0:
            reasons = (Reason(code="low", pointer="/x", expected=1, actual=None),)
        else:
            reasons = ()
        return Grade(
            score=score * self.factor if self.factor != 1.0 else score,
            counts={"seen": 1},
            reasons=reasons,
        )


@attrs.frozen(kw_only=True)
class Demanding(Grader):
    """Cannot work without expected plans."""

    needs = frozenset({"native"})
    compares = frozenset({"plan"})

    def grade(self, sample: Sample) -> Grade:
        return Grade(score=1.0)


@attrs.frozen(kw_only=True)
class Count(Aggregator):
    """Counts outcomes, sums scores and lists ids in order; fails where it is told to."""

    figures = (Figure("sum", "Sum of scores", unit="count"),)

    fail: Literal["", "contribution", "infinite", "compute", "json"] = ""

    def _stumble(self, where: str) -> None:
        if self.fail == where:
            msg = f"stumbled in {where} over {object()!r}"
            raise RuntimeError(msg)

    def contribution(self, grade: Grade) -> Mapping[str, float]:
        self._stumble("contribution")
        return {
            "score": float("inf") if self.fail == "infinite" else grade.score or 0,
            f"outcome {grade.outcome}": 1,
        }

    def compute(self, grades: Grades) -> Mapping[str, Any]:
        self._stumble("compute")
        totals = {
            name.removeprefix("outcome "): number for name, number in sorted(grades.totals.items())
        }
        return {
            "sum": float(totals.pop("score", 0)),
            "outcomes": totals,
            "ids": [key.id for key, _ in grades],
            **({"odd": {1}} if self.fail == "json" else {}),
        }


@attrs.frozen(kw_only=True)
class Echo(Exporter):
    """Writes every record of a jsonl file back as a list, and the figures of the input."""

    reader = "jsonl"
    graders = ("toy",)
    separator = ",\n"
    breaks: ClassVar[str] = ""

    def row(
        self, record: Sample | BadRecord, grades: Mapping[str, Grade], shard: Shard
    ) -> Iterable[tuple[str, str]]:
        if self.breaks == "row" and isinstance(record, Sample) and record.id == "bad":
            msg = "no row"
            raise RuntimeError(msg)
        if isinstance(record, BadRecord):
            text = "bad"
        else:
            text = f"{record.id}={grades['toy'].score}"
        yield "echo.json", json.dumps(text, ensure_ascii=False)

    def frame(self, artefact: str, summary: Any) -> tuple[str, str]:
        return ("[\n", "\n]\n")

    def finish(self, summary: Any) -> Mapping[str, str]:
        if self.breaks == "finish":
            msg = "no end"
            raise RuntimeError(msg)
        toy = summary.graders["toy"]
        return {
            "figures.json": json.dumps(
                {"key": toy.key, "states": toy.states, **toy.aggregates["toy_count"]}
            )
        }


@attrs.frozen(kw_only=True)
class BreaksAtRow(Echo):
    """Raises on the record called bad."""

    breaks = "row"


@attrs.frozen(kw_only=True)
class BreaksAtEnd(Echo):
    """Raises when the input is finished."""

    breaks = "finish"


@attrs.frozen(kw_only=True)
class Dump(Reporter):
    """Writes the report as one JSON file, in the order it comes in."""

    title: str = "dump"
    breaks: bool = False

    def write(self, report: Any, out: Path) -> Iterable[Path]:
        if self.breaks:
            msg = f"no page in {report.path}/somewhere"
            raise RuntimeError(msg)
        page = out / "dump.json"
        rows = [row["sample"]["id"] for row in report.rows()]
        page.write_text(json.dumps([self.title, report.summary, rows]), encoding="utf-8")
        return [page]


@attrs.frozen(kw_only=True)
class Interrupting(Reporter):
    """Is interrupted while it writes."""

    def write(self, report: Any, out: Path) -> Iterable[Path]:
        raise KeyboardInterrupt


@attrs.frozen(kw_only=True)
class Fading(Engine):
    """Serial, until the machines are gone."""

    after: int = 5

    def map(self, work: Any, shards: Any) -> Iterator[Any]:
        for number, shard in enumerate(shards):
            if number == self.after:
                msg = "the machines are gone"
                raise LostEngineError(msg, "wait")
            yield work(shard)


@attrs.frozen(kw_only=True)
class Numbers(Reader):
    """Reads ``numbers`` files: one score per line after the first.

    Knows nothing else, and stumbles over words.
    """

    provides = frozenset({"recorded"})
    stack = "numbers"

    where: Literal["", "index", "plan", "read", "yield"] = ""

    @classmethod
    def sniff(cls, path: Path, head: bytes) -> float:
        return 1.0 if head.startswith(b"numbers\n") else 0.0

    def _stumble(self, where: str) -> None:
        if self.where == where:
            msg = f"stumbled in {where}"
            raise LookupError(msg)

    def index(self, inputs: Inputs) -> Any:
        self._stumble("index")

    def plan(self, inputs: Inputs, index: Any) -> Iterable[Shard]:
        self._stumble("plan")
        return [
            Shard(ordinal=number, input=shard_input, position=1000 * number)
            for number, shard_input in enumerate(inputs.data)
        ]

    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        for number, line in enumerate(
            shard.input.path.read_text(encoding="utf-8").splitlines()[1:]
        ):
            source = Source(file=shard.input.shown, ordinal=number, line=number + 2)
            yield Sample(id=str(number), recorded={"score": float(line)}, source=source)
            self._stumble("read")
            if self.where == "yield":
                yield "no sample"


@attrs.frozen(kw_only=True)
class NumbersProgram(Program):
    """Adds up the numbers of a file; has a gate of its own where the suite is called strict."""

    reader = "numbers"
    title = "the program of numbers"

    def run(self, program_input: ProgramInput) -> ProgramRun:
        """Sum the numbers of a file into a figure, a line and two native files."""
        if program_input.config.get("name") == "broken":
            msg = "the program stumbled"
            raise LookupError(msg)
        if program_input.config.get("name") == "outside":
            return ProgramRun(files={"../summary.json": "{}"})
        numbers = [float(line) for line in program_input.input.path.read_text().splitlines()[1:]]
        figures = {"sum": sum(numbers), "list": numbers, "rows": len(list(program_input.rows()))}
        passed = sum(numbers) > 1
        return ProgramRun(
            files={"numbers.json": json.dumps(figures), "numbers/more.json": '{"half": 0.5}'},
            console=f"Sum: {sum(numbers)}",
            exit_code=int(not passed) if program_input.config.get("name") == "strict" else None,
            figures=(ProgramFigure(label="sum", value=sum(numbers), figure="number.average.mean"),),
        )


def numbers_stack() -> dict[str, Any]:
    """Return the stack of the numbers format."""
    return {
        "graders": {"number": {"kind": "toy", "limit": 5}},
        "metrics": {"average": {"kind": "mean"}},
        "gate": {"metric_key": "number", "op": "gte", "value": 0.5},
        "reports": [],
    }


def counting_stack(inputs: Inputs | None = None) -> dict[str, Any]:
    """A grader for each input, and a gate about the first."""
    if inputs is None:
        names = ["toy"]
    else:
        names = [input_file.name for input_file in inputs.data]
    gate = {"metric_key": names[0], "op": "gte", "value": 0.5}
    return {
        "graders": {name: {"kind": "toy"} for name in names},
        "gate": gate,
        "warnings": ["counted"],
    }


@attrs.frozen(kw_only=True)
class Adapting(Toy):
    """Multiplies by the number of scores among the first samples, and refuses a recording without
    any.
    """

    def for_recording(
        self, key: str, reader: Reader, inputs: Inputs, samples: Iterable[Sample]
    ) -> "Adapting":
        scored_samples = sum("score" in sample.recorded for sample in samples)
        if not scored_samples:
            msg = f"{key} finds no score in {len(inputs.data)} input(s) of {type(reader).__name__}"
            raise ConfigError(msg)
        return attrs.evolve(self, factor=scored_samples)


def raising_stack() -> dict[str, Any]:
    """Raise instead of returning a stack."""
    raise LookupError("no stack here")


def listed_stack() -> list[str]:
    """Return something that is no stack."""
    return ["toy"]


class Plain(Grader):
    """A grader without options, which needs no attrs."""

    needs: ClassVar[frozenset[str]] = frozenset({"calls"})

    def grade(self, sample: Sample) -> Grade:
        return Grade(score=1.0)


class Forgetful(Grader):
    """A grader with an option whose author forgot attrs."""

    limit: int = 3

    def grade(self, sample: Sample) -> Grade:
        return Grade(score=1.0)


def offer(*components: Component) -> object:
    """Return a plugin object with the given components."""

    class Plugin:
        @hookimpl
        def gradestack_components(self) -> tuple[Component, ...]:
            return components

    return Plugin()


def component(kind: str, name: str, target: str) -> Component:
    """Return a component of this module."""
    return Component(
        kind=kind, name=name, target=f"gradestack_toys:{target}", summary=f"A {kind} for tests"
    )


TOYS = (
    component("grader", "toy", "Toy"),
    component("grader", "demanding", "Demanding"),
    component("aggregator", "toy_count", "Count"),
    component("reporter", "dump", "Dump"),
    component("reader", "numbers", "Numbers"),
    component("stack", "numbers", "numbers_stack"),
    component("program", "numbers", "NumbersProgram"),
)


def make_registry(*more: Component) -> Registry:
    """Return the sound built-in plugins, the toys, and further components.

    Exporters beside the jsonl reader.
    """
    exporters = [offered for offered in more if offered.kind == "exporter"]
    discovered = discover(
        extra=[("toys", offer(*TOYS, *(offered for offered in more if offered not in exporters)))],
        limit="",
    )
    plugins = (
        with_more(plugin, exporters) if plugin.name == "readers" else plugin
        for plugin in discovered.plugins
    )
    return Registry([plugin for plugin in plugins if not plugin.error])


def with_more(plugin: Plugin, components: Iterable[Component]) -> Plugin:
    """Return a plugin that offers further components."""
    return plugin._replace(components=(*plugin.components, *components))


def files_of(directory: Path, *but: str) -> dict[str, bytes]:
    """Return the content of every file below a directory, by relative path."""
    contents = {
        path.relative_to(directory).as_posix(): path
        for path in directory.rglob("*")
        if path.is_file()
    }
    return {name: path.read_bytes() for name, path in sorted(contents.items()) if name not in but}


# what recorded fields ask of the toy grader

DO_SKIP, DO_RAISE, DO_STOP = (
    {"recorded": {"do": "skip"}},
    {"recorded": {"do": "raise"}},
    {"recorded": {"do": "interrupt"}},
)

# a small sound suite

BASE = """\
name: x
target: {paths: [runs.jsonl]}
graders: {quality: toy}
"""
