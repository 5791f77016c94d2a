"""A package that breaks the contract in every way we know: what is said of it.

And nobody else's figures change.
"""

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.core.outcomes import write_records

ROOT = Path(__file__).parents[2]
WAYS = yaml.safe_load((ROOT / "tests/third_party/gradestack-nasty/ways.yaml").read_text())
HEAD = "from gradestack import *\nfrom gradestack import hookimpl, Component\n"
HOOK = (
    "\n@hookimpl\ndef gradestack_components():\n    return [Component(*each) for each in OFFERS]\n"
)
CALL = {"name": "book", "arguments": {"city": "Oslo", "seats": 2}}
OTHER = {"name": "book", "arguments": {"city": "Bergen", "seats": 2}}
RECORDS = [
    {"id": f"t{n}", "expected": [CALL], "predicted": [CALL if n % 3 else OTHER], "facets": {"n": n}}
    for n in range(12)
]


def installed(way, distribution, *, documented=False):
    """Install the package that breaks in this way, and return its folder."""
    offers = [offer.split() for offer in way.get("offers", ["grader bad Bad"])]
    targets = []
    for kind, name, target in offers:
        targets.append((kind, name, f"nasty_one:{target}", "Nasty"))
    if documented:
        code = re.sub(r"(?m)^class .*:$", r"\g<0>\n    'Nasty.'", way["code"])
    else:
        code = way["code"]
    text = f"{HEAD}{code}\nOFFERS = {targets}\n{HOOK}"
    return distribution("gradestack-nasty", {"nasty": "nasty_one"}, {"nasty_one": text})


def grades_of(out):
    rows = []
    results_path = out / "results.jsonl"
    text = results_path.read_text()
    for line in text.splitlines():
        document = json.loads(line)
        rows.append(document)
    return [row["grades"]["tau_partial"] for row in rows]


@pytest.fixture(scope="module")
def plain():
    """Scores by the grader beside the nasty one."""
    import gradestack

    stream = gradestack.stream(RECORDS, ["tau_partial"])
    return [grade["tau_partial"].score for _, grade in stream]


CASES = [
    pytest.param(
        way,
        engine,
        id=f"{way['name']}, {engine}",
        marks=[pytest.mark.proof] if number or at % 8 else [],
    )
    for at, way in enumerate(WAYS)
    for number, engine in enumerate(way.get("engines", ["serial", "processes", "dask"]))
]


@pytest.mark.parametrize(("way", "engine"), CASES)
def test_what_breaks_is_named_and_costs_nobody_else(
    spawn, distribution, tmp_path, plain, way, engine
):
    path = tmp_path / "runs.jsonl"
    write_records(path, RECORDS)
    arguments = way.get(
        "run", ["--grader", "bad", "--grader", "tau_partial", "--set", "outcome=tau_partial"]
    )
    engines = ["--engine", engine, *([] if engine == "serial" else ["--workers", 2])]
    paths = [installed(way, distribution)]
    done = spawn(
        "grade",
        "runs.jsonl",
        *arguments,
        *engines,
        "-o",
        "out",
        paths=paths,
    )
    output = f"{done.out}{done.err}"
    assert done.code == way.get("exit", 0), output
    assert "Traceback" not in output
    for text in way.get("says", ()):
        assert text in " ".join(output.split()), output
    if "rows" in way:
        results_path = tmp_path / "out/results.jsonl"
        assert way["rows"] in results_path.read_text()
    if (tmp_path / "out/results.jsonl").exists():
        # a record that ends its worker is graded by nobody
        ungraded = way.get("ungraded", {})
        ended = ungraded.get(engine)
        expected = []
        for record in RECORDS:
            expected.append("graded" if record["id"] != ended else "failed")
        out_folder = tmp_path / "out"
        grades = grades_of(out_folder)
        states = [grade["state"] for grade in grades]
        assert states == expected
        scores = []
        for grade in grades:
            if grade["state"] == "graded":
                scores.append(grade["score"])
        pairs = zip(plain, RECORDS, strict=True)
        assert scores == [score for score, record in pairs if record["id"] != ended]


FOUND = [
    pytest.param(
        way,
        id=way["name"],
        marks=[pytest.mark.proof] if number % 16 or "for ever" in way["name"] else [],
    )
    for number, way in enumerate(way for way in WAYS if "kit" in way)
]
"""What is wrong only now and then, or ends the process, the kit cannot find."""


@pytest.mark.parametrize("way", FOUND)
def test_the_kit_finds_it(spawn, distribution, tmp_path, way):
    path = tmp_path / "runs.jsonl"
    write_records(path, RECORDS)
    offers = way.get("offers")
    if offers == ["reader bad Bad"]:
        reader = ["--reader", "bad"]
    else:
        reader = []
    site = installed(way, distribution, documented=True)
    done = spawn(
        "plugins", "check", "gradestack-nasty", "--on", "runs.jsonl", *reader, paths=[site]
    )
    output = f"{done.out}{done.err}"
    assert "Traceback" not in output
    assert done.code == 4, output
    lines = output.splitlines()
    assert any(way["kit"] in line for line in lines if "FAILED: " in line or "error: " in line), (
        output
    )
