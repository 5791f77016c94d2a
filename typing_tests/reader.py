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
from gradestack.jsonio import JsonProblem, Line, iter_lines, line_ranges, loads


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
            for ordinal, (start, end, first) in enumerate(line_ranges(given.path)):
                yield Shard(ordinal=ordinal, input=given, start=start, end=end, first_line=first)

    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        """Yield one sample per line."""
        for ordinal, line in enumerate(iter_lines(shard.input.path, shard.start, shard.end)):
            assert_type(line, Line)
            source = Source(file=shard.input.shown, ordinal=ordinal, line=line.number)
            try:
                yield self.sample(loads(line.data), source)
            except JsonProblem as error:
                yield BadRecord(source=source, reason=str(error))

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
