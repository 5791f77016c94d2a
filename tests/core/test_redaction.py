"""A copy of a run without secrets: what is replaced, what stays, and what is refused."""

import json

import pytest

from gradestack import ConfigError, load_report
from gradestack.cli.commands import main
from gradestack.outcome.redaction import Redactor, write_redacted

RUNS = [
    {
        "id": "ann@example.org",
        "input": "My key is sk-abcdefghijklmnop1234.",
        "expected": [{"name": "mail", "arguments": {"to": "ann@example.org", "Password": "one-1"}}],
        "predicted": [
            {
                "name": "mail",
                "arguments": {"to": "bob@example.org", "Password": "two-2"},
                "result": '{"password": "three-3", "ok": true}',
            }
        ],
    },
    {"id": "b", "expected": [{"name": "f"}], "predicted": [], "facets": {"who": "eve@example.org"}},
    {"id": "c", "expected": [{"name": "f"}], "error": "no route to eve@example.org"},
]
SECRETS = ("example.org", "sk-abcdef", "one-1", "two-2", "three-3")
RULES = ("emails", "keys", "field:password")


@pytest.fixture
def graded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs_path = tmp_path / "runs.jsonl"
    runs_path.write_text("".join(f"{json.dumps(run)}\n" for run in RUNS))
    _run("grade", "runs.jsonl", "-o", "out", "-q")
    return tmp_path


def _run(*arguments):
    try:
        main([*arguments])
    except SystemExit as done:
        return done.code or 0
    return 0


def test_no_secret_is_in_any_file_of_the_copy(graded, capsys):
    """And the same figures are; the copy is a report like any other."""
    rules = [text for rule in RULES for text in ("--redact", rule)]
    assert _run("report", "out", "-o", "copy", *rules) == 0
    copy_folder = graded / "copy"
    paths = copy_folder.rglob("*")
    files = [path for path in paths if path.is_file()]
    names = {path.name for path in files}
    assert names >= {"results.jsonl", "report.html", "report.md"}
    leaks = []
    for path in files:
        for secret in SECRETS:
            if secret in path.read_text():
                leaks.append((path.name, secret))
    assert leaks == []
    original = load_report("out")
    copy = load_report("copy")
    states = copy.metrics["states"]
    assert states == original.metrics["states"]
    avg_score_total = copy.metrics["avg_score_total"]
    assert avg_score_total == original.metrics["avg_score_total"]
    rows = list(copy.rows())
    scores = [row["grade"]["score"] for row in original.rows()]
    assert [row["grade"]["score"] for row in rows] == scores
    predicted = rows[0]["predicted"]
    calls = predicted["calls"]
    made = calls[0]
    expected = rows[0]["expected"]
    first_call = expected["calls"][0]
    assert made["arguments"]["to"] != first_call["arguments"]["to"]
    arguments = rows[0]["expected"]["calls"][0]["arguments"]
    sample = rows[0]["sample"]
    assert arguments["to"] == sample["id"]
    document = json.loads(made["result"])
    assert document["ok"] is True


def test_equal_texts_have_one_number_and_states_stay():
    redactor = Redactor(["emails", "e"])
    assert redactor.redact(["a@b.cd", "x a@b.cd", "graded", "eve"]) == [
        "[redacted 1]",
        "x [redacted 1]",
        "graded",
        "[redacted 2]v[redacted 2]",
    ]


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        (["("], "not a regular expression"),
        (["x*"], "matches the empty text"),
        (["field:"], "expected the name of a field"),
        (["calls"], "matches the name of the grader 'calls'"),
        (["email"], "did you mean 'emails'"),
    ],
)
def test_rules_that_cannot_be_followed_are_refused(graded, rules, problem):
    with pytest.raises(ConfigError, match=problem):
        write_redacted(load_report("out"), rules, graded / "copy")


def test_a_rule_that_replaces_nothing_is_named(graded, capsys):
    """A rule that was mistyped would leave every secret where it is."""
    rules = ["--redact", "emails", "--redact", "field:to", "--redact", "keys,emails"]
    assert _run("report", "out", "-o", "copy", *rules, "--redact", "field:nosuch") == 0
    lines = capsys.readouterr().err.splitlines()
    warnings = [line for line in lines if "--redact" in line]
    assert [line.partition("--redact ")[2].partition(": ")[0] for line in warnings] == [
        "keys,emails",
        "field:nosuch",
    ]


def _paths(value, path=""):
    """Return the paths of all keys in a value."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{path}.{key}"
            yield from _paths(item, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from _paths(item, f"{path}[]")


def _names_of_keys(rows):
    return sorted({path.rpartition(".")[2] for row in rows for path in _paths(row)})


def test_a_pattern_changes_no_key_of_a_row_or_summary_that_is_gradestacks_own(graded):
    """Whatever key of the original the pattern is; keys of recorded objects change."""
    runs_path = graded / "runs.jsonl"
    runs_path.write_text(
        """{"id": "a", "input": "hello", "expected": [{"name": "f", "arguments": {"a": "x"}}],
 "predicted": [{"name": "f", "arguments": {"a": "y", "metadata": {"metadata": 1}}}],
 "facets": {"score": "one"}}""".replace("\n", "")
    )
    _run("grade", "runs.jsonl", "-o", "out", "-q")
    original = load_report("out")
    rows = list(original.rows())
    names_of_keys = _names_of_keys([original.summary, *rows])
    own = [name for name in names_of_keys if name.isidentifier()]
    recorded = {".predicted.calls[].arguments", ".expected.calls[].arguments", ".facets"}
    for name in sorted({*own} - {"a", "calls", "f"}):
        redactor = Redactor([f"^{name}$"])
        for row in rows:
            kept = [path for path in _paths(row) if not path.startswith((*recorded,))]
            paths = _paths(redactor.redact_row(row))
            assert [path for path in paths if not path.startswith((*recorded,))] == kept
        summary = redactor.redact_own(original.summary, frozenset())
        assert [*_paths(summary)] == [*_paths(original.summary)]
    copy_folder = graded / "copy"
    write_redacted(original, ["metadata", "score"], copy_folder)
    report = load_report("copy")
    row = next(report.rows())
    calls = row["predicted"]["calls"]
    first_call = calls[0]
    redacted_2 = first_call["arguments"]["[redacted 2]"]
    assert redacted_2 == {"[redacted 2]": 1}
    assert row["facets"] == {"[redacted 1]": "one"}


def test_a_field_hides_values_of_the_data_alone(graded):
    """A call keeps its name and a grade its score, whatever fields of the data are called."""
    runs_path = graded / "runs.jsonl"
    runs_path.write_text(
        '{"id": "a", "expected": [], "predicted": '
        '[{"name": "f", "arguments": {"name": "Ann", "score": "secret"}}]}'
    )
    _run("grade", "runs.jsonl", "-o", "out", "-q")
    report = load_report("out")
    copy_folder = graded / "copy"
    write_redacted(report, ["field:name", "field:score"], copy_folder)
    rows = load_report("copy").rows()
    row = next(rows)
    calls = row["predicted"]["calls"]
    call = calls[0]
    assert call == {"name": "f", "arguments": {"name": "[redacted 1]", "score": "[redacted 2]"}}
    score = row["grade"]["score"]
    assert score == 0.0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--redact", "emails"], "name its directory, -o DIR"),
        (["--redact", "emails", "-o", "out"], "the directory is not empty"),
        (["--redact", "emails", "-o", "copy", "--limit", "1"], "leave out --filter"),
    ],
)
def test_a_copy_has_a_new_directory_and_all_runs(graded, capsys, arguments, problem):
    assert _run("report", "out", *arguments) == 2
    assert problem in capsys.readouterr().err
