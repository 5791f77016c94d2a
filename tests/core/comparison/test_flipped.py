"""The tasks that changed between two runs, with what both did."""

import gradestack
from gradestack.comparison.compared import flipped


def graded(right, names=(0, 1)):
    samples = [
        {"id": f"t{task}", "run": run, "expected": "x", "predicted": "x" if right(task, run) else f"y{run}"}
        for task in range(8)
        for run in names
    ]
    return gradestack.grade(samples, graders={"exact": {"kind": "exact_match"}})


def test_a_trial_of_each_side_is_shown():
    """Of one number where such a pair changed, the tasks that changed most first; five at most, no conversation."""
    before = graded(lambda task, run: task == 0 or (task == 1 and run == 0))
    after = graded(lambda task, run: task == 2 or (task == 3 and run == 1))
    found = flipped(gradestack.compare(before, after))
    assert [(each["task"], each["a"], each["b"]) for each in found] == [
        ("t0", "2/2", "0/2"),
        ("t2", "0/2", "2/2"),
        ("t1", "1/2", "0/2"),
        ("t3", "0/2", "1/2"),
    ]
    runs = [[(side["row"]["run"], side["passed"]) for side in each["sides"]] for each in found]
    assert runs == [[(0, True), (0, False)], [(0, False), (0, True)], [(0, True), (0, False)], [(1, False), (1, True)]]
    assert all("trajectory" not in side["row"] for each in found for side in each["sides"])
    assert [side["position"] for side in found[3]["sides"]] == [7, 7]
    many = flipped(gradestack.compare(graded(lambda *_: True), graded(lambda *_: False)))
    assert [each["task"] for each in many] == ["t0", "t1", "t2", "t3", "t4"]


def test_runs_of_other_numbers_are_still_put_side_by_side():
    """Where no number is common the first pair with two verdicts is taken; equal runs have nothing to show."""
    one, other = graded(lambda task, _: task > 0), graded(lambda *_: True, names=(7, 8))
    (only,) = flipped(gradestack.compare(one, other))
    assert [(side["row"]["run"], side["passed"]) for side in only["sides"]] == [(0, False), (7, True)]
    assert flipped(gradestack.compare(one, one)) == []


def test_pages_have_both_sides(tmp_path):
    one, other = graded(lambda task, _: task > 0), graded(lambda *_: True)
    for name in ("first", "second"):
        gradestack.compare(one, other, output=tmp_path / name)
    pages = [(tmp_path / name / "comparison.html").read_bytes() for name in ("first", "second")]
    assert pages[0] == pages[1]
    assert b'id="flipped"' in pages[0]
    assert b"y0" in pages[0]
    assert b"flipped" not in (tmp_path / "first" / "comparison.json").read_bytes()
    gradestack.compare(one, one, output=tmp_path / "same")
    assert b'id="flipped"' not in (tmp_path / "same" / "comparison.html").read_bytes()
