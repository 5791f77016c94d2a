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
    (tmp_path / "runs.jsonl").write_text("".join(f"{json.dumps(run)}\n" for run in RUNS))
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
    files = [path for path in (graded / "copy").rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"results.jsonl", "report.html", "report.md"}
    leaks = [
        (path.name, secret) for path in files for secret in SECRETS if secret in path.read_text()
    ]
    assert leaks == []
    original, copy = load_report("out"), load_report("copy")
    assert copy.metrics["states"] == original.metrics["states"]
    assert copy.metrics["avg_score_total"] == original.metrics["avg_score_total"]
    rows = list(copy.rows())
    assert [row["grade"]["score"] for row in rows] == [
        row["grade"]["score"] for row in original.rows()
    ]
    made = rows[0]["predicted"]["calls"][0]
    assert made["arguments"]["to"] != rows[0]["expected"]["calls"][0]["arguments"]["to"]
    assert rows[0]["expected"]["calls"][0]["arguments"]["to"] == rows[0]["sample"]["id"]
    assert json.loads(made["result"])["ok"] is True


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
        (["field:grades"], "pages need this field"),
        (["calls"], "matches names that rows need"),
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
    warnings = [line for line in capsys.readouterr().err.splitlines() if "--redact" in line]
    assert [line.partition("--redact ")[2].partition(": ")[0] for line in warnings] == [
        "keys,emails",
        "field:nosuch",
    ]


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
