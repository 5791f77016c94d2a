"""Tables saved as files from a page, in a real browser."""

import csv
import json
import time

import pytest

from gradestack_plugins.pages.html import HtmlReporter
from gradestack_plugins.pages.index import index_of
from gradestack_plugins.tables.files import CsvReporter, JsonReporter

READY = "document.documentElement.classList.contains('ready') || !document.getElementById('list')"
FORMULA = '=HYPERLINK("https://example.invalid")'


@pytest.fixture
def report(fake):
    rows = fake.realistic_rows(tasks=5, trials=2)
    failed_row = next(row for row in rows if row["state"] == "graded" and row["grade"]["reasons"])
    failed_row["sample"]["id"] = FORMULA
    return fake.make_report(rows)


@pytest.fixture
def opened(tab, report, tmp_path):
    (path,) = HtmlReporter().write(report, tmp_path)
    tab.visit(path.as_uri(), width=1440)
    tab.wait(READY)
    saved_folder = tmp_path / "saved"
    tab.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(saved_folder))
    return tab


@pytest.fixture
def saved(opened, tmp_path):
    def save(table, form):
        saved_folder = tmp_path / "saved"
        path = saved_folder / f"rail-{table}.{form}"
        opened.run(f"document.querySelector('[data-save={table}][data-form={form}]').click()")
        now = time.monotonic()
        deadline = now + 60
        while not path.is_file():
            assert time.monotonic() < deadline, "nothing was saved"
            opened.run("new Promise(done => setTimeout(done, 20))")
        return path.read_bytes().decode()

    return save


def test_tables_of_the_run_are_the_files_of_the_reporters(saved, report, tmp_path):
    for reporter in (CsvReporter(), JsonReporter()):
        reporter.write(report, tmp_path)
    for table in ("figures", "headline", "gates", "failures"):
        for form in ("csv", "json"):
            assert (
                saved(table, form)
                == (tmp_path / "tables" / f"{table}.{form}").read_bytes().decode()
            )


def test_tasks_are_counted_as_the_reporters_count_them(saved, report, tmp_path):
    CsvReporter().write(report, tmp_path)
    tables_folder = tmp_path / "tables"
    tasks_path = tables_folder / "tasks.csv"
    text = tasks_path.read_text(encoding="utf-8")
    reader = csv.reader(text.splitlines())
    wanted = list(reader)
    lines = saved("tasks", "csv").splitlines()
    saved_rows = list(csv.reader(lines))
    expected = [line[:-1] for line in wanted]
    assert [line[:-1] for line in saved_rows] == expected
    for line, other in zip(saved_rows[1:], wanted[1:], strict=True):
        assert (line[-1] == "") == (other[-1] == "")
        if line[-1]:
            difference = float(line[-1]) - float(other[-1])
            assert abs(difference) <= 0.001
    document = json.loads(saved("tasks", "json"))
    (task_row,) = (line for line in document if line["id"] == FORMULA)
    assert task_row["trials"] == 1
    passed = task_row["passed"]
    not_passed = task_row["not_passed"]
    assert passed + not_passed + task_row["ungraded"] == 1


def test_samples_are_those_the_list_shows(saved, opened, report):
    text = saved("samples", "json")
    document = json.loads(text)
    document_count = len(document)
    entry_count = len(index_of(report).entries)
    assert document_count == entry_count
    opened.run("const find = document.getElementById('find'); find.value = 'HYPERLINK'")
    opened.run("find.dispatchEvent(new Event('input', {bubbles: true}))")
    opened.wait("document.getElementById('shown-count').textContent.startsWith('1 of')")
    lines = saved("samples", "csv").splitlines()
    head, line = csv.reader(lines)
    assert head == ["position", "id", "model", "run", "outcome", "score", "reasons"]
    index = index_of(report)
    entry = index.entries[int(line[0])]
    expected_text = f"'{FORMULA}"
    assert line[1] == expected_text
    expected = [entry.model, entry.run]
    assert line[2:4] == expected
    kinds = list(index_of(report).reasons.kinds)
    by_run = list(index_of(report).reasons.by_run)
    options = by_run[entry.position]
    reasons = []
    for sample in json.loads(line[6]):
        reasons.append([sample[key] or "" for key in ("grader", "code", "subject", "argument")])
    assert reasons == [list(kinds[number]) for number in options]


def test_buttons_have_names_and_are_not_printed(opened):
    names = opened.run(
        "[...document.querySelectorAll('[data-save]')].map(one => one.getAttribute('aria-label'))"
    )
    name_count = len(set(names))
    assert len(names) == name_count == 12
    assert {"Save tasks as CSV", "Save the runs listed as JSON", "Save figures as CSV"} <= set(
        names
    )
    shown = (
        "[...document.querySelectorAll('.save')].filter(one => getComputedStyle(one).display "
        "!== 'none').length"
    )
    assert opened.run(shown) == 6
    assert opened.run("document.querySelector('[data-save=tasks]').tabIndex") == 0
    opened.send("Emulation.setEmulatedMedia", media="print")
    assert opened.run(shown) == 0
    opened.send("Emulation.setEmulatedMedia", media="")
