"""Tables of grades made by hand."""

from gradestack.grading.plan import needs_of_figures
from gradestack.jsonio import dumps, loads
from gradestack.metrics.computed import compute_figures, select_grades
from gradestack.rows.read import table_of


def recomputed(report, metrics):
    """Compute the figures of a report from its rows, by grader and metric."""
    needs = needs_of_figures(report.states, metrics)
    figures_by_grader = {key: {} for key in report.states}
    decoded = report.decoded("run")
    table = table_of(((row.key(), row) for _, row in decoded), needs)
    for metric in metrics:
        aggregator = metric.stage.component
        grades = select_grades(aggregator, table, metric.of, metric.name)
        figures = compute_figures(aggregator, grades)
        text = dumps(figures)
        figures_by_grader[metric.of][metric.stage.key] = loads(text)
    return figures_by_grader
