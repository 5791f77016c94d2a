"""What either profile does, row by row of the tables of docs/profiles.md."""

import json
import re
from pathlib import Path

import pytest

from tests.core.outcomes import data, write_records

CASES = data(__file__, "profiles.yaml")
PAGE = (Path(__file__).parents[3] / "docs/profiles.md").read_text(encoding="utf-8")
ROWS = [
    line.strip("| ")
    for table in PAGE.split("\n\n")[3:]
    for line in re.findall(r"(?m)^\|.*$", table)[2:]
]


def test_every_row_of_the_page_has_a_case():
    for row in ROWS:
        assert any(row.startswith(case["row"]) for case in CASES), row
    assert not [
        case["row"] for case in CASES if not any(row.startswith(case["row"]) for row in ROWS)
    ]


def _value(file, path):
    found = json.loads(
        file.read_text().splitlines()[0] if file.suffix == ".jsonl" else file.read_text()
    )
    for key in path.split("/"):
        found = found[int(key)] if isinstance(found, list) else found.get(key, "absent")
    return found


@pytest.mark.parametrize("profile", ["documented", "upstream"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["row"])
def test_either_profile(command, here, case, profile):
    lines = [
        each if "uuid" in each else {"id": str(number), "predicted": "x", **each}
        for number, each in enumerate(case["records"])
    ]
    for name, each in {"records.jsonl": lines, "dataset.jsonl": case.get("dataset", [])}.items():
        write_records(here / name, each)
    suite = {
        "name": "s",
        "target": {"paths": ["records.jsonl"]},
        "graders": {"quality": "toy"},
        "reader": "jsonl",
    }
    (here / "suite.yaml").write_text(json.dumps({**suite, "reports": [], **case.get("suite", {})}))
    said, meant = (
        command("run", "suite.yaml", "-o", "out", "--profile", profile),
        dict(case[profile]),
    )
    assert said.code == meant.pop("code", 0), said
    assert set(meant.pop("lines", [])) <= set(said.out.splitlines()), said.out
    assert {
        place: _value(here / "out" / file, path)
        for place in meant
        for file, path in [place.split(": ")]
    } == meant
