"""What is on record of an unfinished run, and the hidden directory it is kept in."""

import json
import os
import signal
import threading

import attrs
import msgspec
import pytest

from gradestack import ConfigError, Input, Shard
from gradestack.grading.result import ShardResult
from gradestack.rundir import journal, place
from gradestack.rundir.header import differences, range_mark
from gradestack.rundir.journal import from_json, to_json
from gradestack.rundir.pieces import Parts
from gradestack.rundir.place import Staging


def test_a_result_survives_its_record(tmp_path):
    result = ShardResult(
        ordinal=3,
        input="in",
        samples=2,
        parts=Parts(tmp_path / "rows", {"e/a.json": tmp_path / "parts-x/3.native"}),
        table=bytes(range(256)),
        bad=1,
        bad_listed=[{"file": "f", "line": 1, "ordinal": 0, "reason": "x"}],
        remarks={"part:image": [2, "f:1"]},
        ids={"number": "f:1"},
        keys=bytearray(range(16)),
        superseded=["f:1"],
        seen={("m", "a", "1"), ("", "b", "")},
        broken={"e": "said"},
        timings={"g": 0.5},
    )
    assert set(ShardResult.__struct_fields__) == {
        *journal._PLAIN,
        "keys",
        "table",
        "seen",
        "parts",
        "tracebacks",
        "interrupted",
    }
    back = from_json(json.loads(json.dumps(to_json(result, tmp_path))), tmp_path)
    assert back == msgspec.structs.replace(result, parts=Parts(None, result.parts.native))


@pytest.mark.parametrize(
    "state",
    [
        {"sum": [1e16, 0.1 + 0.2, -0.0, 5e-324, 1.0, 1], "n": 2**64 - 1, "text": "é\u2028\x7f", "more": [True, None]},
        {"n": 2**70},
        {"text": "\ud800"},
        {"highest": float("inf"), "lowest": float("-inf")},
        {"pair": (1, 2.5)},
        {1: "a key that is no text"},
        {"nested": [[{"a": (1,)}]]},
    ],
)
def test_a_line_holds_what_the_standard_library_would_write(state):
    """The quick encoder writes only what comes back as it was, to the bit; everything else is the library's."""
    content = {"ordinal": 1, "states": {"g/m": state}}
    assert repr(journal._parsed(journal._line(content))) == repr(json.loads(json.dumps(content)))


@pytest.mark.parametrize("state", [{1, 2}, b"bytes", object(), Shard])
def test_what_is_not_json_is_refused(state):
    """The quick encoder would have a form for some of them."""
    with pytest.raises(TypeError):
        journal._line({"states": {"g/m": state}})


def test_what_changed_is_named():
    old = {"same": 1, "version": "1", "grader a": {"x": 1}, "gone": 1}
    new = {"same": 1, "version": "2", "grader a": {"x": 2}, "more": 1}
    assert differences(old, new) == [
        "version: was 1, is 2",
        "grader a: changed",
        "gone: not there any more",
        "more: was not there",
    ]
    assert differences(old, old) == []


def test_the_mark_of_a_range(tmp_path):
    """Depends on what it is and on both its ends, not on its middle or what is around it."""
    path = tmp_path / "f"
    path.write_bytes(b"a" * 300_000)
    shard = Shard(ordinal=0, input=Input(path=path, name="f", shown="f"), start=1000, end=299_000)
    mark = range_mark(shard)
    assert mark != range_mark(attrs.evolve(shard, ordinal=1))
    for at, same in ((0, True), (1000, False), (150_000, True), (298_999, False), (299_000, True)):
        data = bytearray(b"a" * 300_000)
        data[at] = ord("b")
        path.write_bytes(data)
        assert (range_mark(shard) == mark) is same


def test_ctrl_c_comes_after_a_thread_has_begun(tmp_path, monkeypatch):
    """What was waiting to be written is, and the journal can be closed."""

    class Late(threading.Thread):
        def start(self):
            os.kill(os.getpid(), signal.SIGINT)
            super().start()

    monkeypatch.setattr(journal.threading, "Thread", Late)
    staging = Staging(tmp_path / "out")
    kept = journal.Journal(staging, {}, "now")
    kept._waiting.append((b"{}\n", []))
    with pytest.raises(KeyboardInterrupt):
        kept._start()
    assert kept.close() == 1
    assert staging.journal.read_bytes() == b"{}\n"


def test_two_runs_cannot_share_a_place(tmp_path, monkeypatch):
    monkeypatch.setattr(place, "PATIENCE", 0.1)
    monkeypatch.setattr(place.lock, "__defaults__", (0.1,))
    first = Staging(tmp_path / "out")
    with pytest.raises(ConfigError, match="another run is writing it"):
        Staging(tmp_path / "out")
    first.write_json("x.json", 1)
    assert first.commit() == tmp_path / "out"
    assert (tmp_path / "out/x.json").is_file()


def test_somebody_elses_hidden_directory_is_left_alone(tmp_path):
    (tmp_path / ".out.unfinished").mkdir()
    (tmp_path / ".out.unfinished/thesis.tex").touch()
    with pytest.raises(ConfigError, match=r"holds thesis\.tex, which is not ours"):
        Staging(tmp_path / "out")
    assert (tmp_path / ".out.unfinished/thesis.tex").exists()


def test_an_earlier_run_is_back_when_replacing_it_was_killed(tmp_path):
    """Between the two renames the place is empty for a moment."""
    old = tmp_path / ".out.unfinished/old"
    old.mkdir(parents=True)
    (old / "header.json").write_text(json.dumps({"generator": "gradestack"}))
    Staging(tmp_path / "out").discard()
    assert (tmp_path / "out/header.json").is_file()
