"""Workers made by hand, from component objects."""

from gradestack import Inputs
from gradestack.grading.graders import Graders
from gradestack.grading.merging import Merged
from gradestack.grading.plan import Metric, Plan, Stage, Success
from gradestack.grading.worker import Worker
from gradestack.metrics.of_run import RunFigures
from gradestack.rows.write import RowEncoder
from gradestack.rundir.recorder import FileShardWriters

USUAL = {
    "exporters": (),
    "gate": None,
    "main": "quality",
    "rows": True,
    "strict": False,
    "by_run": False,
}


def stage(kind, key, name, component, **fields):
    usual_fields = {"options": {}, "version": component.version, "distribution": "tests 0"}
    return Stage(kind=kind, key=key, name=name, component=component, **usual_fields, **fields)


def grader_stage(*, key, component, grader, extractor=None):
    if extractor is None:
        text = None
    else:
        text = stage("extractor", key, type(extractor).__name__, extractor)
    return stage("grader", key, component, grader, extractor=text)


def grade_sample(stage, sample, *, strict=False):
    """Return a grader's grade of one sample, and the text it judged."""
    graders = Graders((stage,), {stage.key: ()}, explain=True, strict=strict)
    grades = graders.grade([sample])
    column = grades.columns[stage.key]
    return column[0], grades.texts.get(stage.key, [None])[0]


def metric(*, key, of, aggregator):
    return Metric(of=of, stage=stage("aggregator", key, type(aggregator).__name__, aggregator))


def worker(folder, reader, *, graders, metrics=(), **fields):
    """Return a worker that writes its pieces into a folder.

    ``exporters`` are (name, exporter) pairs; further fields are those of the plan, the writers and
    the worker.
    """
    known = USUAL | fields
    inputs = Inputs(data=())
    plan = Plan(
        name="tests",
        inputs=inputs,
        reader=stage("reader", "reader", type(reader).__name__, reader),
        graders=graders,
        metrics=metrics,
        exporters=tuple(
            stage("exporter", name, name, exporter) for name, exporter in known.pop("exporters")
        ),
        main=known.pop("main"),
        rule=known.pop("gate"),
        num_runs=2 if known.pop("by_run") else None,
        same_inputs=known.pop("same_inputs", False),
    )
    strict = known.pop("strict")
    success = Success(plan.main, plan.rule)
    encoder = RowEncoder.of(plan, success, strict=strict)
    rows_name = "results.jsonl" if known.pop("rows") else None
    writers = FileShardWriters(folder, encoder, rows_name)
    return Worker(plan=plan, index=None, writers=writers, strict=strict, **known)


def merged(made, *results):
    """Merge the results of a worker's shards."""
    merged = Merged.of(made.plan)
    for result in results:
        merged.add(result)
    return RunFigures(made.plan, merged)


def singly(records):
    return ([record] for record in records)
