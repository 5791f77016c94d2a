"""Tables of grades made by hand."""

from gradestack import Grade, Key, grade_from_json, key_from_row, skipped
from gradestack.gates.scores import Scores
from gradestack.grading.metrics import figures_of, grades_of, wanted
from gradestack.jsonio import dumps, loads
from gradestack.table import Table, Wanted


def scores_of(models=(), ran=None, **columns):
    """Return the scores of a table with a column for each grader, filled up with skipped samples.

    Args:
        models: Of the samples; default: none.
        ran: Whether their recorded runs did not fail; default: they did not.
        columns: Grader key -> scores, None for a sample that was skipped.
    """
    count = max(map(len, columns.values()))
    keys = [Key(id=str(number), model=models[number] if models else None) for number in range(count)]
    grades = {}
    for key, scores in columns.items():
        filled = [*scores, *[None] * (count - len(scores))]
        grades[key] = [skipped("x", "y") if score is None else Grade(score=score) for score in filled]
    return Scores(Table.of(Wanted(parts=dict.fromkeys(columns, ())), keys, grades, ran))


def recomputed(report, metrics):
    """Return grader key -> metric key -> figures, made of the rows of a run alone."""
    rows = list(report.rows())
    keys = [key_from_row(row, ordinal) for ordinal, row in enumerate(rows)]
    grades = {key: [grade_from_json(row["grades"][key]) for row in rows] for key in rows[0]["grades"]}
    table = Table.of(wanted(grades, metrics), keys, grades)
    found = {key: {} for key in grades}
    for metric in metrics:
        aggregator = metric.stage.component
        figures = figures_of(aggregator, grades_of(aggregator, table, metric.of, metric.name))
        found[metric.of][metric.stage.key] = loads(dumps(figures))
    return found
