"""A comparison with a run that ended before all of it was graded says so."""

import json

import gradestack
from gradestack.cli import main

REASON = "interrupted: the figures cover the runs graded before"


def test_a_run_that_is_not_complete_is_named(tmp_path, capsys):
    for name in ("whole", "part"):
        gradestack.run(
            "examples/quickstart/suite.yaml",
            output=tmp_path / name,
            overrides=["reports=[]", "gates=[]"],
        )
    path = tmp_path / "part/summary.json"
    summary = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**summary, "incomplete": REASON}), encoding="utf-8")
    main(["compare", str(tmp_path / "whole"), str(tmp_path / "part")])
    written = capsys.readouterr()
    assert f"warning: part is not complete: {REASON}" in written.out + written.err
