"""Adding graders to a finished run: its suite, made again with more graders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from gradestack.copies.files import Folder, folder_of_runs
from gradestack.errors import ConfigError
from gradestack.jsonio.values import as_map
from gradestack.model import replace
from gradestack.python_api import (
    RunArguments,
    document_of,
    keyed_graders,
    read_suite,
    resolve,
    run_options,
)
from gradestack.regular_files import checksum
from gradestack.report import Report, load_report
from gradestack.runner import run_suite
from gradestack.suites.spec import RunOptions, Suite


def add_graders(
    run: str | Path,
    graders: str | Sequence[str] | Mapping[str, Any],
    *,
    filter: str | None = None,  # noqa: A002 - as the command line has it
    **options: Unpack[RunArguments],
) -> Report:
    """Add graders to a finished run and return its report.

    The grades in the run are kept. The report is byte for byte the one that all graders would
    have written together. The new graders read the files that the run graded; where these have
    changed since, they read the rows that the run stored.

    Args:
        run: Report directory; it is replaced unless ``output`` names another.
        graders: Names, or ``FILE.py:NAME``; or key -> name or ``kind`` with options.
        filter: Expression; the new graders skip the recorded runs of which it is false.
        **options: Those of ``RunArguments``.

    Raises:
        ConfigError: A grader is in the run already, or cannot be used.
        DataError: The run cannot be read.
        PluginError: A plugin it uses is broken.
    """
    options.setdefault("output", run)
    chosen = run_options(**options)
    return run_suite(extended_suite(run, chosen, graders, filter), chosen)


def extended_suite(
    run: str | Path,
    options: RunOptions,
    graders: str | Sequence[str] | Mapping[str, Any],
    filter: str | None = None,  # noqa: A002 - as the command line has it
) -> Suite:
    """Return the suite of a finished run with more graders."""
    report = load_report(run)
    added = keyed_graders(graders)
    known = _keys_of(report, "grader")
    for key in added:
        if key in known:
            advice = (
                "leave it out; add_graders(RUN, {KEY: NAME}) in Python adds one under another key"
            )
            raise ConfigError(f"{run}: the run has a grader {key!r} already", advice)
    if filter is not None:
        added = {key: _with_filter(entry, filter) for key, entry in added.items()}
    flaw = _flaw_of_inputs(report)
    if flaw:
        options.echo(f"{flaw}: the rows of {run} are graded again")
        return read_suite(report, options, more_graders=added)
    config = _config_in_order(report)
    config["graders"] = {**config.get("graders", {}), **added}
    suite_name = report.header["suite_name"]
    document = document_of(config, str(run), str(suite_name))
    is_open = options.allow_outside or options.allow_code
    folder = _folder_of_inputs(report, is_open=is_open)
    suite = resolve(document, options, folder)
    # the stack that the data chose is named by now, and would not say again why it was chosen
    notes = dict.fromkeys([*map(str, report.header.get("notes", ())), *suite.notes])
    return replace(suite, notes=tuple(notes))


def _folder_of_inputs(report: Report, *, is_open: bool) -> Folder:
    """Return the folder that paths of a run's configuration are taken from.

    Raises:
        ConfigError: A file of the run lies outside the working directory.
    """
    folder = folder_of_runs(is_open=is_open)
    inputs = report.header["inputs"]
    paths = [Path(str(entry["path"])) for entry in inputs]
    for path in paths:
        folder.require_below(path, str(path))
    config = report.summary["config"]
    target = as_map(config["target"])
    first = next(iter(target["paths"]))
    shown = Path(str(first["path"] if isinstance(first, Mapping) else first))
    for parent in paths[0].parents:
        joined = parent / shown
        if joined == paths[0] or joined in paths[0].parents:
            return folder._replace(path=parent)
    return folder


def _keys_of(report: Report, kind: str) -> list[str]:
    """Return the keys of a run's components of a kind, in its order."""
    entries = report.header.get("components", ())
    return [str(entry["key"]) for entry in entries if entry["kind"] == kind]


def _with_filter(entry: Any, text: str) -> dict[str, Any]:
    options = dict(entry) if isinstance(entry, Mapping) else {"kind": entry}
    return {**options, "filter": text}


def _config_in_order(report: Report) -> dict[str, Any]:
    """Return a run's configuration; summary.json has its keys sorted."""
    config = dict(as_map(report.summary["config"]))
    for section, kind in (("graders", "grader"), ("metrics", "aggregator")):
        entries = config.get(section)
        if isinstance(entries, Mapping):
            keys = _keys_of(report, kind)
            config[section] = _ordered(entries, keys)
    headline = config.get("headline")
    if isinstance(headline, Mapping) and isinstance(headline.get("figures"), Mapping):
        figures = report.summary["headline"]["figures"]
        labels = [figure["label"] for figure in figures]
        ordered = _ordered(headline["figures"], labels)
        config["headline"] = {**headline, "figures": ordered}
    return config


def _ordered(entries: Mapping[str, Any], order: Iterable[str]) -> dict[str, Any]:
    first = {key: entries[key] for key in order if key in entries}
    return first | dict(entries)


def _flaw_of_inputs(report: Report) -> str:
    """Return why the files of a run cannot be read again; "" where they are unchanged."""
    inputs = report.header.get("inputs") or ()
    for entry in inputs:
        path = Path(str(entry["path"]))
        if not path.is_file():
            return f"{path} is no longer there"
        is_same_size = path.stat().st_size == entry.get("bytes")
        if not is_same_size or checksum(path) != entry.get("sha256"):
            return f"{path} has changed"
    return "" if inputs else "the run was not made of files"
