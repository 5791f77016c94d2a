"""Results of which no file can be read."""

import pytest

import gradestack
from gradestack import DataError


def test_strict_stops_at_the_first_file_that_cannot_be_read(tmp_path):
    """Such a file is a failed run, as the original counts it; strict takes it for the bad record it is: exit code 3."""
    results = tmp_path / "results"
    results.mkdir()
    (results / "a_out.json").write_text("{broken")
    (results / "b_out.json").write_text("[]")
    report = gradestack.grade_files(results, output=tmp_path / "out")
    assert report.metrics["total"] == 2
    with pytest.raises(DataError, match=r"results/a_out\.json record 0: not JSON: ") as caught:
        gradestack.grade_files(results, output=tmp_path / "strict", strict=True)
    assert caught.value.exit_code == 3
    assert not (tmp_path / "strict").exists()
