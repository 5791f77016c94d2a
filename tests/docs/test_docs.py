"""The documentation against the program.

Nothing is left out, every example does what its page says.

Fenced blocks that are checked, in page order, in one directory per page that holds a copy of
``examples/`` and of two of its files, ``results.json`` and ``runs.jsonl``:

- ``console``: lines starting with ``$`` are run by one shell (``>`` continues one), the rest is
  what they print, standard error included. ``...`` stands for any text, also for any lines; blank
  lines do not matter.
- ``python run``: run as a script; what it prints must equal the texts after ``# =>`` where there
  are any.
- ``yaml`` whose first line is ``# suite``: loaded as a suite file, and held against the published
  schema.
- any block whose info string has a file name (``jsonl calls.jsonl``, ``yaml suite.yaml``,
  ``python pkg/mod.py``): written to that file first.

Any other block says above it why it is not run: ``<!-- not run: REASON -->``, or which test reads
it: ``<!-- worked example: NAME -->``. Readers of the page do not see these lines.
"""

import ast
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import attrs
import jsonschema
import pytest
import yaml

import gradestack
from gradestack import Outcome, discover
from gradestack.gates.rules import BaselineGate, GateSpec, LogicalSpec, SimpleGate, WeightedGate
from gradestack.hooks import FUNCTIONS, KINDS
from gradestack.suites.schema import suite_schema
from tests.docs.conftest import environment_of

CONTRACTS = {
    kind: getattr(gradestack, kind.capitalize())
    for kind in KINDS
    if kind not in FUNCTIONS | {"panel"}
}
ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MEANT_TO_BE_BROKEN = ("some.jsonl",)
GENERATED = re.compile(r"<!-- generated: \w+ -->\n.*?<!-- end -->", re.DOTALL)
NOT_RUN = re.compile(r"<!-- (not run|worked example): \S.* -->\n+\Z")
REFERENCE = [DOCS / "reference.md", *sorted((DOCS / "components").glob("*.md"))]
MARK = "--8<-- next command --8<--"


class Block(NamedTuple):
    """One fenced block of a page."""

    language: str
    word: str
    text: str

    @property
    def file(self):
        if "." in self.word:
            return self.word
        return None


def _blocks(page):
    blocks = []
    for fence_words, text in FENCE.findall(page.read_text(encoding="utf-8")):
        language, _, word = fence_words.strip().partition(" ")
        block = Block(language, word.strip(), text)
        blocks.append(block)
    return blocks


def _checked(block):
    suite = block.language == "yaml" and block.text.startswith("# suite\n")
    return (
        bool(block.file)
        or block.language == "console"
        or (block.language, block.word) == ("python", "run")
        or suite
    )


def _page_id(page):
    return page.relative_to(ROOT).as_posix()


def _prose(page):
    text = page.read_text(encoding="utf-8")
    return FENCE.sub("", text)


@pytest.fixture(scope="module")
def registry():
    return discover(limit="")


@pytest.fixture
def stage(tmp_path):
    examples_folder = ROOT / "examples"
    shutil.copytree(examples_folder, tmp_path / "examples")
    results_path = ROOT / "examples/airline/results.json"
    shutil.copy(results_path, tmp_path)
    runs_path = ROOT / "examples/quickstart/runs.jsonl"
    shutil.copy(runs_path, tmp_path)
    return tmp_path


def _tidy(text):
    """Return a text without trailing spaces, blank lines and what a busy machine adds, which carry
    no meaning.
    """
    lines = text.splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip() and "s so far" not in line)


def _matches(expected, printed):
    tidy = _tidy(expected)
    pattern = re.escape(tidy).replace(re.escape("..."), ".*")
    match = re.fullmatch(pattern, _tidy(printed), re.DOTALL)
    return match is not None


def _run_console(block, folder, environment):
    commands, outputs = [], []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            commands.append(line[2:])
            outputs.append([])
        elif line.startswith("> ") and commands and not outputs[-1]:
            commands[-1] += "\n" + line[2:]
        else:
            assert commands, f"a console block starts with a command, not with {line!r}"
            last_output = outputs[-1]
            last_output.append(line)
    script = "exec 2>&1\n" + "".join(
        f"{shell_command}\n_code=$?; echo; echo '{MARK}'; (exit $_code)\n"
        for shell_command in commands
    )
    done = subprocess.run(
        ["bash", "-c", script],
        check=False,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    printed = done.stdout.split(MARK)[:-1]
    assert len(printed) == len(commands), done.stdout
    for command, expected, got in zip(commands, outputs, printed, strict=True):
        wanted = "\n".join(expected)
        assert _matches(wanted, got), (
            f"$ {command}\n--- the page says\n{_tidy(wanted)}\n--- printed\n{_tidy(got)}"
        )


def _run_python(block, folder, environment):
    lines = block.text.splitlines()
    expected = [line.partition("# =>")[2].strip() for line in lines if "# =>" in line]
    script = folder / "example.py"
    script.write_text(block.text, encoding="utf-8")
    pythonpath = environment.get("PYTHONPATH")
    paths = os.pathsep.join([str(folder), *filter(None, [pythonpath])])
    environment = {**environment, "PYTHONPATH": paths}
    done = subprocess.run(
        ["python", script.name],
        check=False,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{block.text}\n{done.stderr}"
    if expected:
        assert done.stdout.splitlines() == expected, block.text


@cache
def _validator(registry):
    return jsonschema.Draft202012Validator(suite_schema(registry))


def _check_suite(block, folder, registry):
    path = folder / "checked-suite.yaml"
    path.write_text(block.text, encoding="utf-8")
    gradestack.load_suite(path, registry=registry)
    validator = _validator(registry)
    validator.validate(yaml.safe_load(block.text))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(map(_checked, _blocks(page)))], ids=_page_id
)
def test_examples_do_what_their_page_says(page, stage, registry, warm):
    environment = environment_of(warm)
    run_page(page, stage, registry, environment)


def run_page(page, folder, registry, environment):
    """Every command prints what stands below it, every script runs, every suite is valid."""
    for block in _blocks(page):
        if block.file:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text, encoding="utf-8")
        if block.language == "console":
            _run_console(block, folder, environment)
        elif (block.language, block.word) == ("python", "run"):
            _run_python(block, folder, environment)
        elif block.language == "yaml" and block.text.startswith("# suite\n"):
            _check_suite(block, folder, registry)


def test_examples_are_checked_at_all():
    """The pages hold examples of every checked kind, so that the test above is about something."""
    blocks = [block for page in PAGES for block in _blocks(page)]
    count = sum(block.language == "console" for block in blocks)
    assert count > 10
    assert sum((block.language, block.word) == ("python", "run") for block in blocks) > 10
    assert sum(block.text.startswith("# suite\n") for block in blocks) > 5
    readme_path = ROOT / "README.md"
    assert any(block.language == "console" for block in _blocks(readme_path))


@pytest.mark.parametrize("page", PAGES, ids=_page_id)
def test_a_block_that_is_not_run_says_why(page):
    """But for blocks that ``make reference`` writes, which are held against the program."""
    text = GENERATED.sub("", page.read_text(encoding="utf-8"))
    silent = []
    for match in FENCE.finditer(text):
        fence_words, content = match.groups()
        language, _, word = fence_words.strip().partition(" ")
        reason = NOT_RUN.search(text, 0, match.start())
        if not _checked(Block(language, word.strip(), content)) and reason is None:
            silent.append(match.group(0)[:60])
    assert page in REFERENCE or silent == []


@pytest.mark.parametrize("page", PAGES, ids=_page_id)
def test_blocks_are_of_their_language(page):
    """Blocks that are not run are at least well-formed: YAML, TOML, JSON and Python can be read."""
    readers = {
        "yaml": yaml.safe_load,
        "toml": tomllib.loads,
        "json": json.loads,
        "jsonl": lambda text: [json.loads(line) for line in text.splitlines()],
        "python": ast.parse,
    }
    for block in _blocks(page):
        if block.language in readers and block.file not in MEANT_TO_BE_BROKEN:
            readers[block.language](block.text)


def test_a_wrong_output_is_noticed(stage, warm):
    """The console check tells a page that says something else from one that is right."""
    block = Block("console", "", "$ echo one && false\none\n$ echo $?\n1\n")
    environment = environment_of(warm)
    _run_console(
        block,
        stage,
        environment,
    )
    with pytest.raises(AssertionError, match="the page says"):
        _run_console(Block("console", "", "$ echo one\ntwo\n"), stage, environment_of(warm))


def _sections(page):
    """Return heading -> text up to the next heading of any level."""
    text = page.read_text(encoding="utf-8")
    parts = re.split(r"^#{1,6} (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _spans(text):
    """Return the code spans of a text, fenced blocks left out."""
    return set(re.findall(r"`([^`\n]+)`", FENCE.sub("", text)))


def _words(text):
    words = set()
    for span in _spans(text):
        for word in re.split(r"[\s,/|]+", span):
            words.add(word.split("=")[0])
    return words


def test_exit_codes_are_described():
    errors_path = DOCS / "errors.md"
    text = errors_path.read_text(encoding="utf-8")
    codes = [code for code in (0, 1, 2, 3, 4, 130) if f"| {code} |" not in text]
    assert codes == []


# Components, hooks and contracts


def test_every_built_in_component_is_mentioned(registry):
    words = set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        words |= _words(text).union(*(re.split(r"[\s:,]+", heading) for heading in _sections(page)))
    components = registry.components()
    names = [c.name for c, _ in components if c.name not in words]
    assert names == []


def test_every_option_of_a_component_is_described(registry):
    """On some page, or where the component itself is described."""
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    words = set().union(*(_words(text) | set(re.findall(r"(\w+)[:=]", text)) for text in texts))
    components = registry.components()
    classes = [registry.load(component.kind, component.name) for component, _ in components]
    for described_class in filter(attrs.has, classes):
        fields = attrs.fields(described_class)
        options = {field.name for field in fields if field.init}
        matches = set(re.findall(r"\w+", described_class.__doc__))
        assert sorted(options - words - matches) == [], described_class


def test_readme_table_lists_every_reader_and_stack(registry):
    """The README's table of formats is complete, and names nothing that is not there."""
    readme_path = ROOT / "README.md"
    text = readme_path.read_text(encoding="utf-8")
    words = _words(text)
    for kind in ("reader", "stack"):
        names = registry.names(kind)
        assert [name for name in names if name not in words] == []
    index = text.index("| you have |")
    matches = re.findall(r"^\| [^|]+\|([^|]*)\|([^|]*)\|$", text[index:], re.MULTILINE)
    rows = matches[2:]
    assert len(rows) > 10
    for column, kind in enumerate(("reader", "stack")):
        expected = set(registry.names(kind))
        assert set().union(*(_spans(row[column]) for row in rows)) <= expected
    for readers, stacks in rows:
        spans = _spans(readers)
        default_stacks = {registry.load("reader", name).stack for name in spans} - {None}
        assert default_stacks == _spans(stacks), readers


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_component_has_an_example(kind):
    page = DOCS / "plugins.md"
    sections = _sections(page)
    assert any(kind in heading.lower() for heading in sections)
    blocks = _blocks(page)
    code = "\n".join(block.text for block in blocks if block.language == "python")
    base = CONTRACTS.get(kind)
    assert f"\n{kind} " in code
    if base is not None:
        assert re.search(rf"class \w+\((?:\w+\.)?{base.__name__}\b", code)


def test_the_easy_reader_is_described():
    """docs/plugins.md names every public member of RecordReader, and a format with it takes at most
    30 lines.
    """
    page = DOCS / "plugins.md"
    words = set()
    text = page.read_text(encoding="utf-8")
    for word in _words(text):
        words.add(word.partition("(")[0])
    names = vars(gradestack.RecordReader)
    assert {name for name in names if not name.startswith("_")} <= words
    blocks = _blocks(page)
    code = next(block.text for block in blocks if "(RecordReader)" in block.text)
    lines = code.splitlines()
    line_count = len(lines)
    assert line_count <= 30


def test_every_suite_key_is_described():
    schema = suite_schema(discover(limit=""))
    suites, gates = (
        _words((DOCS / name).read_text(encoding="utf-8")) for name in ("suites.md", "gates.md")
    )
    properties = set(schema["properties"])
    assert properties <= suites
    kinds = (GateSpec, SimpleGate, WeightedGate, LogicalSpec, BaselineGate)
    names = {name for kind in kinds for name in kind.__struct_fields__}
    assert names <= gates


def test_every_sample_field_is_described(registry):
    samples_path = DOCS / "samples.md"
    text = samples_path.read_text(encoding="utf-8")
    words = _words(text)
    fields = set(gradestack.Sample.__struct_fields__)
    json_schema = registry.load("reader", "jsonl").json_schema()
    properties = json_schema["properties"]
    keys = set(properties)
    assert (fields | keys) - words == set()


def test_every_state_is_described():
    figures_path = DOCS / "figures.md"
    text = figures_path.read_text(encoding="utf-8")
    words = _words(text)
    outcomes = {str(outcome) for outcome in Outcome}
    assert outcomes <= words


# A report directory


def test_every_key_of_a_run_directory_is_described(tmp_path):
    run_directory_path = DOCS / "run-directory.md"
    text = run_directory_path.read_text(encoding="utf-8")
    words = _words(text)
    suite_path = ROOT / "examples/quickstart/suite.yaml"
    output = tmp_path / "out"
    report = gradestack.run(suite_path, output=output)
    paths = report.path.iterdir()
    names = {path.name for path in paths}
    assert names <= words
    summary = {key: value for key, value in report.summary.items() if key != "config"}
    assert set(summary) | {"config"} <= words
    metrics = set(summary["metrics"])
    assert metrics <= words
    by_metric = summary["metrics"]["by_metric"]
    calls = set(by_metric["calls"])
    assert calls <= words
    keys = {key for gate in report.gates for key in gate}
    assert keys <= words
    header = set(report.header)
    assert header | {key for component in report.header["components"] for key in component} <= words
    components = report.header["inputs"]
    assert {key for component in components for key in component} <= words
    rows = list(report.rows())
    assert {*gradestack.Row.__annotations__, *gradestack.GradeRow.__annotations__} <= words
    grades = [grade for row in rows for grade in row["grades"].values()]
    assert {key for grade in grades for item in grade.get("items", ()) for key in item} <= words
    assert {
        key
        for row in rows
        for name in ("sample", "source", "expected", "predicted")
        for key in row[name]
    } <= words


# Links


def _slug(heading):
    plain = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower())
    return plain.strip().replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=_page_id)
def test_relative_links_resolve(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        if name:
            path = (page.parent / name).resolve()
        else:
            path = page
        assert path.exists(), f"{page.name} links to {target}"
        if anchor:
            text = path.read_text(encoding="utf-8")
            headings = re.findall(r"^#{1,6} (.+)$", FENCE.sub("", text), re.MULTILINE)
            slugs = {_slug(heading) for heading in headings}
            assert anchor in slugs, f"{page.name} links to {target}"


def test_the_reference_is_current():
    """``make reference`` would change nothing."""
    reference_path = DOCS / "reference.py"
    make_pages = runpy.run_path(str(reference_path))["make_pages"]
    outdated = []
    for path, text in make_pages().items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            relative_path = path.relative_to(ROOT)
            outdated.append(relative_path.as_posix())
    assert outdated == [], "run make reference"


def test_index_links_to_every_page():
    index_path = DOCS / "index.md"
    text = index_path.read_text(encoding="utf-8")
    others = []
    for page in DOCS.rglob("*.md"):
        if page.name != "index.md":
            relative_path = page.relative_to(DOCS)
            path = relative_path.as_posix()
            others.append(path)
    names = [name for name in others if f"]({name})" not in text]
    assert names == []


@pytest.mark.proof
def test_examples_of_plugins_are_typed(tmp_path):
    """But for ``broken.py``, which is meant to be."""
    for page in ("plugins.md", "tutorials/write-a-grader.md"):
        for block in _blocks(DOCS / page):
            if block.language == "python" and block.file and block.file != "broken.py":
                (tmp_path / block.file).parent.mkdir(exist_ok=True)
                (tmp_path / block.file).write_text(block.text)
    pyrightconfig_path = tmp_path / "pyrightconfig.json"
    pyrightconfig_path.write_text('{"typeCheckingMode": "strict"}')
    for checker in (["mypy", "--strict", "."], ["pyright", "--pythonpath", sys.executable]):
        command = [sys.executable, "-m", *checker]
        done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
