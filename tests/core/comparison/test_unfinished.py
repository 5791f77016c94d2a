"""A comparison with a run that ended before all of it was graded says so."""

import json

import gradestack
from gradestack.cli import main

REASON = "interrupted: the figures cover the runs graded before"


def test_a_run_that_is_not_complete_is_named(tmp_path, capsys):
    for name in ("whole", "part"):
        output = tmp_path / name
        gradestack.run(
            "examples/quickstart/suite.yaml",
            output=output,
            overrides=["reports=[]", "gates=[]"],
        )
    path = tmp_path / "part/summary.json"
    text = path.read_text(encoding="utf-8")
    summary = json.loads(text)
    path.write_text(json.dumps({**summary, "incomplete": REASON}), encoding="utf-8")
    part_folder = tmp_path / "part"
    main(["compare", str(tmp_path / "whole"), str(part_folder)])
    written = capsys.readouterr()
    expected = written.out + written.err
    assert f"warning: part is not complete: {REASON}" in expected
