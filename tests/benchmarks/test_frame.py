"""What benchmark scripts share: tables, ratios within rounds, and items that fail alone."""

import json

import pytest


@pytest.fixture
def frame(bench):
    return bench("frame")


def runs(frame, *walls):
    return frame.Runs([{"wall": wall} for wall in walls])


@pytest.mark.parametrize(
    ("measured", "lower", "verdict"),
    [(0.7, False, "aim"), (0.5, False, "must"), (0.3, False, "missed"), (1.0, True, "missed"), (0.4, True, "must")],
)
def test_a_figure_meets_the_aim_the_must_or_neither(frame, measured, lower, verdict):
    """Bounds are inclusive, and may be upper ones."""
    must, aim = (0.4, 0.3) if lower else (0.4, 0.6)
    assert frame.reached("x", must, aim, measured, lower=lower).verdict == verdict


def test_without_a_figure_the_reason_is_told(frame):
    found = frame.reached("x", 1, 2, None, runs(frame, 1.0), frame.Runs(failed="exit code 1"))
    assert found.verdict == "not measured: exit code 1"
    assert not found.met(1)


def test_ratios_are_taken_within_a_round(frame):
    """The median of 2, 4 and 3 is not the ratio of the medians, 20 / 10."""
    assert frame.ratio(runs(frame, 20, 40, 9), runs(frame, 10, 10, 3)) == 3
    assert frame.ratio(frame.Runs(failed="no"), runs(frame, 1)) is None


def test_items_take_turns_and_fail_alone(frame):
    """Every other round is in reverse order; an item that failed is not asked again."""
    asked = []

    def item(name):
        def work():
            asked.append(name)
            if name == "bad":
                raise frame.ChildFailed("no such thing")
            return {"wall": 1.0}

        return work

    found = frame.take_turns({name: item(name) for name in ("a", "bad", "b")}, 3)
    assert asked == ["a", "bad", "b", "b", "a", "a", "b"]
    assert found["bad"].failed == "no such thing"
    assert found["bad"].median("wall") is None
    assert len(found["a"].rounds) == len(found["b"].rounds) == 3
    assert frame.failures(found) == ["bad: no figure, no such thing."]


def test_a_table_survives_json_and_is_shown_in_both_forms(frame):
    """Figures are aligned to the right, a bar in a cell does not end it."""
    table = frame.Table(
        title="Speed",
        columns=["who", "s"],
        rows=[["a|b", "1.25"], ["long name", "–"]],
        notes=["Two rows."],
        reach=[frame.Reach(what="a", must=1, aim=2, measured=1.25)],
    )
    again = frame.table_of(json.loads(json.dumps(table.json())))
    assert again.text() == table.text()
    assert table.text().splitlines() == [
        "Speed",
        "",
        "who           s",
        "---------  ----",
        "a|b        1.25",
        "long name     –",
        "",
        "Two rows.",
        "a: 1.25 (must)",
    ]
    assert again.markdown() == "| who | s |\n| --- | --- |\n| a\\|b | 1.25 |\n| long name | – |\n\nTwo rows."


def test_messages_keep_no_address_and_no_path(frame):
    """They end up in a published file."""
    said = "cannot fetch scheme://some.host/index/x from /home/someone/place: ratio 1/2"
    assert frame.without_places(said) == "cannot fetch … from …: ratio 1/2"


def test_a_failed_process_says_the_last_thing_it_said(frame):
    """The benchmark goes on with the reason."""
    with pytest.raises(frame.ChildFailed, match=r"exit code 1: KeyError: 'no such job'"):
        frame.child({"job": "no such job"})
