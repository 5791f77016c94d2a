"""Names that pages write exist: options, attributes of a report, imports and signatures."""

import importlib
import inspect
import re
from pathlib import Path

import click

import gradestack
from gradestack.cli.commands import cli
from gradestack.python_api import RunArguments

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^([ \t]*)```.*?^\1```[ \t]*$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
OLD_NAMES = re.compile(r"^\| (?:old name|before) .*?\n(?:\|.*\n)*", re.MULTILINE)
"""Tables whose first column holds names that are gone."""
PAGES = sorted(
    [ROOT / "README.md", ROOT / "SECURITY.md", *DOCS.glob("*.md"), *DOCS.glob("tutorials/*.md")]
)
OPTIONS_OF_OTHERS = {"--memory-limit": "dask worker", "--no-build-isolation": "pip"}
OTHER_PROGRAMS = re.compile(r"(?:claude|copilot|cursor-agent|gemini|goose|pip|python) ")
FILE_ENDINGS = {"html", "json", "md"}
"""What follows ``report.`` in names of files."""


def _name(page):
    return page.relative_to(ROOT).as_posix()


def _spans(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return SPAN.findall(OLD_NAMES.sub("", text))


def _commands(command):
    yield command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from _commands(command.get_command(context, name))


def _options():
    options = {"--help", "--version"}
    for command in _commands(cli):
        for parameter in command.params:
            options.update(parameter.opts, parameter.secondary_opts)
    return options


def test_options_that_pages_name_exist():
    known = _options() | OPTIONS_OF_OTHERS.keys()
    unknown = [
        f"{_name(page)}: {option}"
        for page in PAGES
        for span in _spans(page)
        if not OTHER_PROGRAMS.match(span)
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", span)
        if option not in known
    ]
    assert unknown == []


def _has(owner, name):
    return hasattr(owner, name) or name in getattr(owner, "__annotations__", {})


def test_attributes_of_a_report_that_pages_name_exist():
    """Written as ``report.NAME``, or in the section of the Python page about the report."""
    unknown = [
        f"{_name(page)}: {span}"
        for page in PAGES
        for span in _spans(page)
        for name in re.findall(r"^report\.([a-z_]+)(?![.:\w])", span)
        if not _has(gradestack.Report, name) and name not in FILE_ENDINGS
    ]
    assert unknown == []
    python_api_path = DOCS / "python-api.md"
    text = python_api_path.read_text(encoding="utf-8")
    section = text.partition("\n## The report\n")[2].partition("\nIn a [notebook]")[0]
    rows = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    beside = section.partition("also use ")[2]
    names = re.findall(r"`(\w+)", " ".join([*rows, beside]))
    assert len(names) > 20
    assert [name for name in names if not _has(gradestack.Report, name)] == []


def _finds(path):
    """Return whether a dotted path is a module or an attribute of one."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        try:
            owner = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for name in parts[end:]:
            if not _has(owner, name):
                return False
            owner = getattr(owner, name, None)
        return True
    return False


def test_imports_that_pages_name_exist():
    unknown = [
        f"{_name(page)}: {path}"
        for page in PAGES
        for span in _spans(page)
        for path in re.findall(r"(?<![\w./-])gradestack(?:_plugins)?(?:\.\w+)+", span)
        if not _finds(path)
    ]
    assert unknown == []


def _parameters(function):
    """List the parameters of a function, those of its ``options`` too."""
    names = list(inspect.signature(function).parameters)
    last_name = names[-1]
    if last_name == "options":
        names = [*names[:-1], *RunArguments.__annotations__]
    return names


def test_signatures_of_the_python_page_are_true():
    """One that ends in ``…`` may leave out parameters."""
    python_api_path = DOCS / "python-api.md"
    page = python_api_path.read_text(encoding="utf-8")
    signatures = re.findall(r"`(\w+)\(([^()`]*, [^()`]*)\)`", page)
    checked = [(name, text) for name, text in signatures if hasattr(gradestack, name)]
    assert len(checked) > 4
    for name, text in checked:
        words = text.split(",")
        written = {word.strip() for word in words} - {"*"}
        parameters = set(_parameters(getattr(gradestack, name)))
        assert written - {"…"} <= parameters, name
        assert "…" in written or parameters <= written, name
