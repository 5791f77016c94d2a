"""A reader: it plans shards and yields samples or bad records."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, assert_type

import attrs

from gradestack import (
    BadRecord,
    DataError,
    Expectation,
    ExpectedCall,
    Input,
    Inputs,
    Message,
    Reader,
    Rule,
    Sample,
    Shard,
    Source,
    ToolCall,
    ToolSpec,
    Usage,
)
from gradestack.jsonio import Element, Range, iter_records, record_ranges


@attrs.frozen(kw_only=True)
class Lines(Reader):
    """JSON Lines with a name and the calls that were made."""

    provides = frozenset({"calls"})
    stack = "quickstart"
    duplicates = "last"

    key: str = "name"

    @classmethod
    def sniff(cls, path: Path, head: bytes) -> float:
        """Return whether it begins as an object does."""
        return 0.5 if head.startswith(b"{") else 0.0

    def plan(self, inputs: Inputs, index: Any) -> Iterable[Shard]:
        """Cut each file between lines."""
        if inputs.dataset is not None:
            msg = f"{inputs.dataset.path}: cannot be joined"
            raise DataError(msg, "name the files alone")
        for given in inputs.data:
            for ordinal, part in enumerate(record_ranges(given.path, "lines")):
                yield Shard(
                    ordinal=ordinal,
                    input=given,
                    start=part.start,
                    end=part.end,
                    first_line=part.first_line,
                    first_row=part.first_row,
                )

    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        """Yield one sample per line."""
        part = Range(shard.start, shard.end, shard.first_line, shard.first_row)
        for record in iter_records(shard.input.path, part, "lines"):
            assert_type(record, Element)
            source = Source(file=shard.input.shown, ordinal=record.ordinal, line=record.line)
            if record.problem is None:
                yield self.sample(record.value, source)
            else:
                yield BadRecord(source=source, reason=record.problem)

    def sample(self, record: dict[str, Any], source: Source) -> Sample:
        """Return a sample with most of its fields."""
        call = ToolCall(name="search", arguments={"q": 1})
        return Sample(
            id=record[self.key],
            model="m",
            run=0,
            input="what?",
            turns=((Message(role="assistant", content="that", tool_calls=(call,)),),),
            calls=(call,),
            tools=(ToolSpec(name="search"),),
            expected=Expectation(
                calls=(ExpectedCall(name="search", rules={"q": Rule(any_of=(1, 2))}),)
            ),
            usage=Usage(requests=1),
            source=source,
            facets={"tag": "x"},
        )


here = Input(path=Path("runs.jsonl"), name="runs", shown="runs.jsonl")
for each in Lines(key="id").read(Shard(ordinal=0, input=here), None):
    assert_type(each, Sample | BadRecord)

Inputs(data=[here])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Sample(name="a")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
