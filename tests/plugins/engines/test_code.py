"""Code of the user's own on a cluster."""

import logging

import pytest

import gradestack
from gradestack_plugins.engines.dask_cluster import _scheduler
from gradestack_plugins.engines.dask_local import LocalWorkers
from tests.core.outcomes import data

DATA = data(__file__, "code.yaml")


CODE = DATA["code"]


@pytest.mark.slow
def test_a_cluster_loads_the_code_of_each_run(tmp_path):
    """By file and name, the module beside it too.

    Workers that stay take what has changed since the last run.
    """
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    mine_path = tmp_path / "mine.py"
    mine_path.write_text(CODE)
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_text('{"id": "a", "predicted": "x"}\n')
    one_path = tmp_path / "one.jsonl"
    two_path = tmp_path / "two.jsonl"
    files = [one_path, two_path]
    graders = [f"{tmp_path}/mine.py:Mine", f"{tmp_path}/mine.py:alone"]
    (tmp_path / "workers").mkdir()
    with _scheduler() as address:
        workers_folder = tmp_path / "workers"
        workers = LocalWorkers(address, 1, None, workers_folder)
        workers.tend()
        try:
            for score in (0.25, 0.5):
                beside_path = tmp_path / "beside.py"
                beside_path.write_text(f"SCORE = {score}\n")
                overrides = [f"engine={{kind: dask, address: {address}}}", "reports=[]"]
                output = tmp_path / "out"
                report = gradestack.grade_files(
                    files,
                    graders=graders,
                    output=output,
                    overrides=overrides,
                    allow_code=True,
                )
                scores = []
                for row in report.rows():
                    for key in ("mine", "alone"):
                        grade = row["grades"][key]
                        scores.append(grade["score"])
                assert scores == [score] * 4
        finally:
            workers.close()
