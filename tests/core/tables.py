"""Tables of grades made by hand."""

from gradestack import grade_from_json, key_from_row
from gradestack.grading.metrics import figures_of, grades_of, wanted
from gradestack.jsonio import dumps, loads
from gradestack.table import Table


def recomputed(report, metrics):
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
