"""A hundred samples of every kind, a worker for them, and all that its result says."""

import json

import attrs

from gradestack import (
    BadRecord,
    Expectation,
    Exporter,
    Fault,
    Input,
    Message,
    Sample,
    Shard,
    Source,
    Status,
    ToolCall,
    replace,
)
from gradestack.gates.rules import GateSpec
from gradestack.gates.successes import grader_figures
from gradestack.table import Table
from gradestack_plugins.extractors.extractors import LastAssistant
from gradestack_plugins.statistics.mean import Mean
from gradestack_plugins.tau_bench.aggregators import PartialStatistics
from gradestack_plugins.tau_bench.grader import TauPartial
from gradestack_plugins.text_graders.texts import JsonEqual
from tests.core import toy_components as toys
from tests.core.workers import grader_stage, merged, metric, singly, worker

GIVEN = Input(path="in.jsonl", name="in", shown="in.jsonl")
SHARD = Shard(ordinal=3, input=GIVEN, position=1000)
CALL = ToolCall(name="f", arguments={"x": 1, "y": [1, 2]})


@attrs.frozen(kw_only=True)
class Log(Exporter):
    """Two files: one chunk per record, and one for every other record."""

    reader = "toys"
    separator = "|"

    def row(self, record, grades, shard):
        if isinstance(record, BadRecord):
            yield "all.txt", f"bad {record.source.line}"
            return
        yield "all.txt", f"{record.id}={grades['toy'].outcome}"
        if record.id.endswith("0"):
            yield "some.txt", record.id


def worker_maker(folder):
    """Return a function that makes a worker with three graders and their metrics."""
    made = []

    def make(**fields):
        parts = folder / f"parts{len(made)}"
        parts.mkdir()
        grader = toys.Toy()
        toy = grader_stage(key="quality", component="toy", grader=grader)
        partial = grader_stage(key="partial", component="tau_partial", grader=TauPartial())
        text = grader_stage(
            key="text", component="json_equal", grader=JsonEqual(), extractor=LastAssistant()
        )
        count = toys.Count()
        options = {
            "graders": (toy, partial, text),
            "metrics": (
                metric(key="toy_count", of="quality", aggregator=count),
                metric(key="mean", of="quality", aggregator=Mean()),
                metric(key="mean", of="partial", aggregator=Mean()),
                metric(key="statistics", of="partial", aggregator=PartialStatistics()),
                metric(key="mean", of="text", aggregator=Mean()),
            ),
            "exporters": (("log", Log()),),
            "gate": GateSpec(op="gte", value=0.3),
            "main": "quality",
        }
        numbers = toys.Numbers()
        made.append(worker(parts, numbers, **{**options, **fields}))
        return made[-1]

    return make


WISHES = {
    5: "raise",
    11: "skip",
    17: "nothing",
    23: "nan part",
    29: "set",
    41: "raise",
    42: "raise",
}


def sample(number, **fields):
    """Make the numbered sample; some failed, one is missing, some break the toy grader."""
    if number in WISHES:
        wish = {"do": WISHES[number]}
    else:
        wish = {}
    failed = number % 31 == 7
    arguments = {"x": number % 4, "y": [2, 1]}
    made = (CALL, replace(CALL, arguments=arguments))[number % 2 :]
    last_message = Message(role="assistant", content=json.dumps(number % 3) if number % 9 else "")
    calls = (CALL,) if number % 6 else ()
    expectation = Expectation(calls=calls, text="1")
    if failed:
        status = Status.FAILED
    elif number == 50:
        status = Status.MISSING
    else:
        status = Status.OK
    score = number % 5 / 7
    recorded = {"score": score, **wish}
    error = None
    if failed:
        error = Fault(category="target", code="x")
    if number % 8:
        tags = ["odd"] if number % 2 else []
        facets = {"tags": tags, "nan": float("nan")}
    else:
        facets = {"deep": {1}}
    source = Source(file="in.jsonl", ordinal=number, line=number + 1)
    run = number // 20
    model = (None, "m", "é")[number % 3]
    usual_fields = {
        "id": f"t{number % 20}" if number % 10 else f"t{number}",
        "model": model,
        "run": run,
        "recorded": recorded,
        "expected": expectation,
        "calls": made if number % 13 else None,
        "turns": ((last_message,),),
        "status": status,
        "error": error,
        "facets": facets,
        "source": source,
    }
    return Sample(**{**usual_fields, **fields})


def records(count=100):
    for number in range(count):
        if number % 14 == 3:
            source = Source(file="in.jsonl", ordinal=number, line=number + 1)
            reason = f"bad {number}"
            yield BadRecord(
                source=source,
                reason=reason,
            )
        yield sample(number)


def rows(result):
    lines = result.parts.rows.read_bytes().splitlines()
    return [json.loads(line) for line in lines]


def readable_result(made, result):
    """Return the result of a shard as data that can be compared: rows, figures, counts, files."""
    merging = merged(made, result)
    figures = merging.figures()
    return {
        "rows": None if result.parts.rows is None else result.parts.rows.read_bytes(),
        "metrics": figures,
        "counts": [
            (key, name, grader_figures(count))
            for key, counts in merging.counts().items()
            for name, count in counts.items()
        ],
        "repeated": merging.merged.table.repeated(),
        "bad": (result.bad, result.bad_listed),
        "native": {name: path.read_text() for name, path in result.parts.native.items()},
        "rest": (
            result.samples,
            result.remarks,
            result.superseded,
            result.answered,
            result.broken,
            result.interrupted,
        ),
    }


def whole_result(made, samples):
    blocks = singly(samples)
    result = made.process(SHARD, blocks)
    return readable_result(made, result)


def consistent(result):
    """Check that rows, table and native file hold the same samples, and return their ids."""
    ids = [row["sample"]["id"] for row in rows(result)]
    assert result.samples == len(ids)
    table = Table([])
    table.extend(result.table)
    id_column = table.keys["id"]
    assert [id_column.values[code] for code in id_column.codes] == ids
    verdicts = table.verdicts.values()
    numbers = table.numbers.values()
    code_counts = set()
    for verdict in (*verdicts, *numbers):
        code_counts.add(len(verdict.codes))
    assert code_counts == {len(ids)}
    if "log/all.txt" in result.parts.native:
        log_all_txt = result.parts.native["log/all.txt"]
        text = log_all_txt.read_text()
        chunks = text.split("|")
        assert [chunk.partition("=")[0] for chunk in chunks if not chunk.startswith("bad")] == ids
    return ids


def numbered(count=100):
    return (Sample(id=str(number), recorded={"score": 1.0}) for number in range(count))
