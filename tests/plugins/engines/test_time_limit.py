"""Grades that take too long: cut short, or found by ending the process they keep."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import attrs
import pytest

import gradestack
from gradestack import IN_PROGRESS, Grade, Grader, Sample
from gradestack.grading import worker
from gradestack.interpreter import POLLS, time_limit
from tests.core.outcomes import data

DATA = data(__file__, "time_limit.yaml")


pytestmark = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="this system has no such timer"
)
SAID = "took longer than 0.2 s (limits.seconds_per_grade)"
LIMITS = {"seconds_per_grade": 0.2}


def spin():
    for _ in itertools.count():
        pass


def stubborn():
    """Take no notice, once."""
    try:
        spin()
    except BaseException:  # noqa: BLE001 - as bad graders do
        spin()


HANGS = {
    "loop": spin,
    "sleep": lambda: time.sleep(1000),
    "pattern": lambda: re.match(r"(a+)+$", "a" * 60 + "b"),
    "read": lambda: os.read(os.pipe()[0], 1),
    "lock": lambda: threading.Semaphore(0).acquire(),
    "stubborn": stubborn,
}


@attrs.frozen(kw_only=True)
class Hangs(Grader):
    """Does what the sample says, else gives 1."""

    def grade(self, sample):
        HANGS.get(sample.text, int)()
        return Grade(score=1.0)


def samples(*texts):
    return [Sample(id=f"t{number}", text=text) for number, text in enumerate(texts)]


def states(report):
    rows = report.rows()
    return [row["state"] for row in rows]


@pytest.mark.parametrize("how", HANGS)
def test_a_grade_that_takes_too_long_fails(how):
    sample = samples("", how, "", how)
    report = gradestack.grade(sample, [Hangs()], limits=LIMITS)
    assert IN_PROGRESS == {}
    assert states(report) == ["graded", "failed", "graded", "failed"]
    rows = list(report.rows())
    fault = rows[1]["grade"]["fault"]
    assert fault["code"] == "timed_out"
    assert fault["message"] == SAID
    assert fault["type"] == "TimedOut"
    timed_out = report.header["timed_out"]
    assert timed_out == 2
    (warning,) = report.header["warnings"]
    assert warning.startswith(
        "2 grades or records took longer than 0.2 s (limits.seconds_per_grade) and failed, or "
        "have no reasons:"
    )


@pytest.mark.parametrize("position", [0, 1, 2])
def test_only_the_grader_that_takes_too_long_fails(position, monkeypatch):
    monkeypatch.setattr(worker, "QUICK_BLOCK", 1e9)

    def quick(sample):
        return 0.5

    graders = dict.fromkeys("abc", quick) | {"abc"[position]: Hangs()}
    report = gradestack.grade(samples(*[""] * 40, "loop", *[""] * 40), graders, limits=LIMITS)
    for key, counts in report.states.items():
        assert counts["failed"] == (key == "abc"[position])
        expected = 81 - counts["failed"]
        assert counts["graded"] == expected


def test_an_extractor_is_held_like_its_grader(monkeypatch):
    """A pattern on hostile text is nobody's to wait for.

    Texts and grades stay beside each other.
    """

    def extract(self, sample):
        HANGS.get(sample.text, int)()
        return f"said {sample.id}"

    monkeypatch.setattr("gradestack_plugins.extractors.extractors.LastAssistant.extract", extract)
    samples = []
    for n, text in enumerate(TEXTS):
        expected = {"text": f"said t{n}"}
        samples.append({"id": f"t{n}", "predicted": text, "expected": expected})
    report = gradestack.grade(samples, ["exact_match"], limits=LIMITS)
    assert states(report) == ["graded", "failed", "graded", "graded"]
    rows = report.rows()
    submissions = [row["submission"] for row in rows]
    assert submissions == ["said t0", "", "said t2", "said t3"]


TEXTS = ["x", "pattern", "y", "z"]


@pytest.mark.parametrize("seconds", ["none", None])
def test_there_may_be_no_limit(seconds):
    sample = samples("")
    header = gradestack.grade(sample, [Hangs()], limits={"seconds_per_grade": seconds}).header
    assert not header.get("timed_out")
    suite = gradestack.load_suite(
        {
            "target": {"paths": ["examples/quickstart/runs.jsonl"]},
            "limits": {"seconds_per_grade": seconds},
        }
    )
    assert suite.limits.seconds_per_grade is None


def test_a_strict_run_ends_with_the_grade():
    with pytest.raises(gradestack.PluginError, match=r"grader 'Hangs' .* raised on t1") as caught:
        gradestack.grade(samples("", "loop"), [Hangs()], limits=LIMITS, strict=True)
    expected_text = f"TimedOut: {SAID}"
    assert caught.value.problems == (expected_text,)


def test_what_takes_long_outside_a_grade_is_not_cut():
    def slowly():
        for sample in samples("", ""):
            time.sleep(0.3)
            yield sample

    report = gradestack.grade(slowly(), [Hangs()], limits=LIMITS)
    assert states(report) == ["graded", "graded"]


def test_many_grades_may_take_long_together():
    def slow(sample):
        time.sleep(0.05)
        return 1.0

    report = gradestack.grade(samples(*[""] * 8), slow, limits=LIMITS)
    assert states(report) == ["graded"] * 8


def test_whoever_uses_the_timer_keeps_it():
    """A caller's own alarm goes off, and a grader's; what was set up is as it was."""
    before = signal.getsignal(signal.SIGALRM)
    assert before is signal.SIG_DFL
    with time_limit(60):
        assert signal.getitimer(signal.ITIMER_REAL)[1] == 60 / POLLS
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)

    def mine(*_):
        """Nothing."""

    signal.signal(signal.SIGALRM, mine)
    try:
        with time_limit(60):
            assert signal.getsignal(signal.SIGALRM) is mine
            assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_other_threads_are_left_to_themselves():
    """There is no such timer for them, and no limit in the caller's own process."""
    signals = []

    def run():
        def slow(sample):
            time.sleep(0.6)
            return 1.0

        report = gradestack.grade(samples(""), slow, limits=LIMITS)
        signals.extend(states(report))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert signals == ["graded"]


NATIVE = DATA["native"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "how"),
    [
        ("processes", "lock held"),
        pytest.param("processes", "lock free", marks=pytest.mark.faults),
        pytest.param("dask", "lock held", marks=pytest.mark.faults),
        pytest.param("dask", "lock free", marks=pytest.mark.faults),
    ],
)
def test_native_code_that_never_returns(tmp_path, engine, how):
    native_path = tmp_path / "native.py"
    native_path.write_text(NATIVE)
    texts = ["", "", how, "", ""]
    rows = []
    for number, text in enumerate(texts):
        rows.append(json.dumps({"id": f"t{number}", "predicted": text}))
    runs_path = tmp_path / "runs.jsonl"
    runs_path.write_text("".join(f"{row}\n" for row in rows))
    subprocess.run([sys.executable, "native.py", engine], cwd=tmp_path, check=True)
    path = tmp_path / "out"
    report = gradestack.load_report(path)
    assert states(report) == ["graded", "graded", "failed", "graded", "graded"]
    codes = []
    for row in report.rows():
        if row["state"] == "failed":
            code = row["grade"]["fault"]["code"]
            codes.append(code)
    assert codes == ["timed_out"]
    timed_out = report.header["timed_out"]
    assert timed_out == 1
