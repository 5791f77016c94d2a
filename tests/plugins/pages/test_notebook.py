"""Reports in notebooks.

A report in one line and as a cell, progress, the executed notebook of the documentation.
"""

import json
import sys
from pathlib import Path

import pytest

import gradestack
from gradestack import Progress
from gradestack_plugins.pages.notebook import progress

NOTEBOOK = Path("docs/notebook.ipynb")


def test_a_report_is_one_line_and_a_cell(tmp_path, monkeypatch):
    """Names that came from data are escaped; the link leads from here to the page."""
    monkeypatch.chdir(tmp_path)
    samples = []
    for at in range(9):
        predicted = "x" if at else "y"
        samples.append({"id": f"{at}", "predicted": predicted, "expected": "y"})
    output = tmp_path / "out"
    report = gradestack.grade(samples, name="<b>it</b>", output=output, reports=["html"])
    expected_text = f"Report('<b>it</b>', 9 samples, {tmp_path / 'out'})"
    assert repr(report) == expected_text
    cell = report._repr_html_()
    expected = cell.replace("<b>&lt;b&gt;it&lt;/b&gt;</b>", "")
    assert "<b>it</b>" not in expected
    assert "Exact match: 1 of 9 runs" in cell
    assert "<td>other text</td><td>8</td>" in cell
    assert 'href="out/report.html"' in cell
    failed = report.samples.failed()
    assert failed["id"] == [f"{at}" for at in range(1, 9)]


def test_progress_is_a_line_that_changes(monkeypatch):
    shown = []
    line = type("Line", (), {"update": lambda _, data, raw: shown.append(data["text/plain"])})()
    display = type("Display", (), {"display": staticmethod(lambda *_, **__: line)})
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    show = progress()
    for share in (0.25, 0.5, 1.0):
        samples = int(1000 * share)
        show(Progress(samples=samples, share=share))
    assert shown == ["250 samples, 25% of the input", "1,000 samples"]


@pytest.mark.slow
def test_the_notebook_shows_what_running_it_shows(tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    notebook = nbformat.read(NOTEBOOK, 4)
    results_path = tmp_path / "results.json"
    results_path.write_bytes(Path("examples/airline/results.json").read_bytes())
    metadata = {"path": str(tmp_path)}
    resources = {"metadata": metadata}
    nbclient.NotebookClient(notebook, resources=resources, kernel_name="python3").execute()
    text = NOTEBOOK.read_text(encoding="utf-8")
    written = json.loads(text)
    document = json.loads(nbformat.writes(notebook))
    cells = document["cells"]
    for was, now in zip(written["cells"], cells, strict=True):
        outputs = was.get("outputs", ())
        expected = [output.get("data") for output in outputs]
        assert [output.get("data") for output in now.get("outputs", ())] == expected
