"""The page over the runs of a folder in a real browser."""

import json
import threading
from pathlib import Path

import pytest

import gradestack
from gradestack_plugins.pages.runs import folder_of, write_index
from gradestack_plugins.pages.served_folder import ServedFolder
from gradestack_plugins.pages.view import Server

CHECKS = [
    (Path(__file__).parent / name).read_text(encoding="utf-8")
    for name in ("names.js", "contrast.js")
]
PICK = "document.querySelectorAll('.pick')[{}].click()"
SHOWN = (
    "[...document.querySelectorAll('#compare p:not([hidden]), #there:not([hidden])')].map(one "
    "=> one.textContent)"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for number, name in enumerate(("first", "second one", "third")):
        rows = []
        for run_number in range(12):
            for model in "ab"[: 1 + number % 2]:
                predicted = "ab"[run_number % (4 - number) == 0]
                rows.append(
                    {
                        "id": str(run_number),
                        "model": model,
                        "expected": {"text": "a"},
                        "predicted": predicted,
                    }
                )
        rows_path = folder / "rows.jsonl"
        rows_path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        paths = [str(folder / "rows.jsonl")]
        suite = {
            "name": "s",
            "target": {"paths": paths},
            "graders": {"e": "exact_match"},
        }
        output = folder / name
        gradestack.run({**suite, "reader": "jsonl", "reports": ["html"]}, output=output)
        text = (folder / name / "header.json").read_text()
        header = json.loads(text)
        header["timestamp"] = f"2026-01-0{number + 1}T00:00:00+00:00"
        header_path = folder / name / "header.json"
        header_path.write_text(json.dumps(header))
    first_folder = folder / "first"
    third_folder = folder / "third"
    compared_folder = folder / "compared"
    gradestack.compare(first_folder, third_folder, output=compared_folder)
    return write_index(folder_of(folder), folder)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_it_is_silent_and_can_be_read(tab, page, width, scheme):
    tab.visit(page.as_uri(), width=width, scheme=scheme)
    tab.run(PICK.format(0))
    tab.run(PICK.format(2))
    assert tab.run("document.documentElement.scrollWidth") <= width
    names, contrast = (tab.run(check) for check in CHECKS)
    assert names == []
    assert contrast["poor"] == []
    assert contrast["seen"] > 30
    heads = (
        "[...document.querySelectorAll('.runs thead tr > *')].filter(one => one.matches('td') "
        "|| !one.textContent)"
    )
    script = f"{heads}.length"
    assert tab.run(script) == 0
    assert (
        tab.run(
            "[...document.querySelectorAll('.runs tbody tr')].map(one => one.checkVisibility())"
        )
        == [True] * 4
    )
    messages = tab.messages()
    assert messages == []
    requests = tab.requests()
    assert requests == [page.as_uri()]


def test_two_ticked_runs_are_a_command(tab, page):
    tab.visit(page.as_uri())
    assert tab.run("document.getElementById('compare').hidden")
    tab.run(PICK.format(0))
    assert tab.run(SHOWN) == ["Tick one more to compare it with third."]
    tab.run(PICK.format(2))
    assert tab.run("document.getElementById('command').textContent") == (
        "gradestack compare first third -o comparisons/first-third"
    )
    assert tab.run(SHOWN)[1:] == ["the comparison that is there"]
    assert (
        tab.run("document.getElementById('there').getAttribute('href')")
        == "./compared/comparison.html"
    )
    tab.run(PICK.format(1))
    command = "gradestack compare first 'second one' -o comparisons/first-second_one"
    assert tab.run("document.getElementById('command').textContent") == command
    assert tab.run("[...document.querySelectorAll('.pick')].map(one => one.checked)") == [
        False,
        True,
        True,
    ]
    process_count = len(tab.run(SHOWN))
    assert process_count == 1


def test_two_ticked_runs_show_the_differences_of_their_figures(tab, page):
    """Beside them stands what a comparison says, or that they are not tested."""
    tab.visit(page.as_uri())
    rows = "[...document.querySelectorAll('#apart tr')]"
    cells = f"{rows}.map(row => [...row.cells].map(cell => cell.textContent))"
    which = "document.getElementById('which').textContent"
    tab.run(PICK.format(0))
    tab.run(PICK.format(2))
    head, first, *_ = tab.run(cells)
    assert head == ["Figure", "first", "third", "Difference"]
    shares = [1 - 3 / 12, 1 - 6 / 12]
    texts = []
    for share in shares:
        texts.append(f"{100 * share:.1f}%")
    expected = ["Exact match", *texts, f"{100 * (shares[1] - shares[0]):+.1f} points"]
    assert first == expected
    assert "Exact match: third is worse than first" in tab.run(which) or "may be chance" in tab.run(
        which
    )
    tab.run(PICK.format(0))
    tab.run(PICK.format(1))
    assert tab.run(which) == "These two have no figure in common."


def test_the_run_before_has_a_verdict_beside_its_difference(tab, tmp_path):
    for number, (name, right) in enumerate((("one", 2), ("two", 11), ("three", 11))):
        samples = []
        for task in range(12):
            predicted = "a" if task < right else "b"
            samples.append({"id": str(task), "expected": "a", "predicted": predicted})
        output = tmp_path / name
        gradestack.grade(samples, graders={"e": "exact_match"}, output=output, name="s")
        text = (tmp_path / name / "header.json").read_text()
        header = json.loads(text)
        header["timestamp"] = f"2026-01-0{number + 1}T00:00:00+00:00"
        header_path = tmp_path / name / "header.json"
        header_path.write_text(json.dumps(header))
    folder = folder_of(tmp_path)
    index = write_index(folder, tmp_path)
    tab.visit(index.as_uri())
    tab.run(PICK.format(2))
    tab.run(PICK.format(1))
    row = tab.run(
        "[...document.querySelectorAll('#apart tbody tr')[0].cells].map(one => one.textContent)"
    )
    assert row[1:4] == ["16.7%", "91.7%", "+75.0 points"]
    assert row[4].startswith("+75.0 points (")
    assert row[4].endswith("), better")
    which = "document.getElementById('which').textContent"
    assert tab.run(which) == ""
    tab.run(PICK.format(1))
    tab.run(PICK.format(0))
    assert tab.run(which).startswith("These differences are not tested")


def test_without_scripts_the_runs_are_there(tab, page):
    tab.visit(page.as_uri(), scripts=False)
    tab.emulate()
    links = "[...document.querySelectorAll('.runs a')].map(one => one.textContent)"
    assert tab.run(links) == ["third", "second one", "first"]
    assert tab.run("[...document.querySelectorAll('.pick')].every(one => !one.checkVisibility())")


def test_in_a_served_folder_a_button_compares_two_ticked_runs(tab, page):
    folder = page.parent
    served = ServedFolder(folder_of(folder), folder, gradestack.discover())
    server = Server(served)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        tab.visit(server.url)
        tab.run(PICK.format(0))
        tab.run(PICK.format(2))
        assert tab.run("document.getElementById('command')") is None
        tab.run("document.getElementById('go').click()")
        tab.wait("location.pathname.endsWith('/comparison.html')")
        tab.wait("document.documentElement?.classList.contains('ready')")  # none at first
        assert "50.0% instead of 75.0%" in tab.run("document.querySelector('h1').textContent")
        assert tab.messages() == []
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        served.close()
