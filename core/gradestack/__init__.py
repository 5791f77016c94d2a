"""gradestack grades recorded runs of tool-calling LLM agents.

>>> import gradestack
>>> report = gradestack.run("suite.yaml")  # doctest: +SKIP
>>> report = gradestack.grade_files(["results.json"])  # doctest: +SKIP
>>> report = gradestack.grade(samples, graders=["tau_partial"])  # doctest: +SKIP

The one import root, for users and authors of plugins; beside it ``gradestack.testing`` and
``gradestack.jsonio``. Names are imported on first use: ``--help`` shall not pay for them. Types:
``__init__.pyi``.
"""

from gradestack._version import __version__

_NAMES = {
    "api": "TextGrader Contract Engine Extractor Grader Input Inputs Reader ResultT Shard",
    "aggregator": "Aggregator Figure Ratio valid_confidence",
    "exporter": "ExportSummary Exporter GraderSummary Program ProgramFigure ProgramInput "
    "ProgramRun",
    "cli.signals": "forward_termination",
    "copies.files": "shown_address",
    "declared": "Declarations which_is_better with_unit",
    "errors": "ConfigError DataError GradestackError LostEngineError PluginError TimedOut "
    "error_text first_of guarded "
    "library missing_library reading suggest",
    "gates.texts": "gate_texts",
    "grading.subset": "Subset",
    "hooks": "Component Kind hookimpl",
    "interpreter": "IN_PROGRESS Limits Watchdog time_limit_text",
    "watching": "SECONDS_BETWEEN_POLLS watchdog",
    "grading.progress": "Progress",
    "grades": "Grades",
    "intervals": "Estimate Interval estimate interval jackknife ratio ratio_interval t_quantile",
    "model": "ABSENT BadRecord Expectation ExpectedCall Explanation Fault Grade "
    "IMPOSSIBLE_AMOUNT Item JSON Key LARGEST_SCORE Message Outcome Reason "
    "Rule Sample Source Status ToolCall ToolSpec Usage VERDICT_NAMES check_grade explained failed "
    "impossible_amounts native_of replace skipped",
    "output": "csv_line terminal_line",
    "outcome.causes": "Cause CauseKind Causes NO_REASON argument_at cause_kinds causes_of_run "
    "declared_presets error_kind find_causes is_failed most_often set_aside swapped_labels",
    "outcome.pages": "publish",
    "comparison.compared": "Comparison",
    "comparison.families": "compared_rows",
    "python_compare": "compare",
    "python_add": "add_graders",
    "python_api": "RunArguments figures grade grade_files load_files_suite load_suite run "
    "stream stream_suite",
    "records": "RecordFile RecordReader read_document read_records",
    "patterns": "compile_later",
    "registry": "Registry discover",
    "report": "Report Reporter is_run load_report",
    "rows.read": "GradeRow Row grade_from_json",
    "rows.write": "grade_to_json",
    "suites.code": "load_file with_files",
    "suites.components": "stack_for",
    "suites.recognition": "recognise",
    "suites.document": "read_yaml yaml_data",
    "suites.options": "class_schema preset_version",
    "suites.schema": "suite_schema",
    "exact_sums": "TaskNumbers",
    "table": "Numbers",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", *_MODULES]  # noqa: PLE0604 - names, all of them


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        msg = f"module 'gradestack' has no attribute {name!r}"
        raise AttributeError(msg)
    import importlib  # noqa: PLC0415 - only on first use

    value = globals()[name] = getattr(importlib.import_module(f"gradestack.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
