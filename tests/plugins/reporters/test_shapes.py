import pytest

from gradestack_plugins.reporters.estimates import amount, figure, interval
from gradestack_plugins.reporters.shapes import blocks_of

SPREAD = "± 0.030 (standard error)"


def only(metrics):
    (block,) = blocks_of(metrics)
    return block


def test_plain_figures_stand_together_in_order():
    """Numbers, truths and short words come first, well-known ones ahead, in one block."""
    block = only({"zeta": 1, "min": 0.25, "average": 0.5, "rule": "file", "exact": True})
    assert block.kind == "figures"
    assert [(item.label, item.value) for item in block.items] == [
        ("Average", "0.500"),
        ("Min", "0.250"),
        ("Exact", "yes"),
        ("Rule", "file"),
        ("Zeta", "1"),
    ]


@pytest.mark.parametrize(
    "metrics",
    [
        {"rate": None, "rate_reason": "no case"},
        {"rate": None, "undefined": {"rate": "no case"}},
        {"rate": None, "reasons": {"rate": "no case"}},
        {"rate": {"value": None, "reason": "no case"}},
    ],
)
def test_undefined_is_said_with_its_reason(metrics):
    """A null figure reads "n/a" with the reason given beside it, and never as zero."""
    (item,) = only(metrics).items
    assert (item.value, item.note, item.defined) == ("n/a", "no case", False)


def test_reasons_reach_nested_figures():
    """A dotted path in ``undefined`` explains a figure further down."""
    metrics = {"inner": {"rate": None, "other": None}, "undefined": {"inner.rate": "no case"}}
    assert [(item.label, item.note) for item in only(metrics).items] == [("Rate", "no case"), ("Other", "")]


@pytest.mark.parametrize(
    ("fields", "spread", "between"),
    [
        (
            {"mean": 0.596, "stderr": 0.03, "ci95": [0.54, 0.65]},
            SPREAD,
            "95% interval 0.540 – 0.650",
        ),
        ({"value": 0.596, "se": 0.03}, SPREAD, ""),
        ({"estimate": 0.596, "ci_low": 0.5, "ci_high": 0.7}, "", "interval, confidence not given: 0.500 – 0.700"),
        ({"rate": 0.596, "ci": {"low": 0.5, "high": 0.7}, "confidence": 0.9}, "", "90% interval 0.500 – 0.700"),
        (
            {"rate": 0.596, "interval": {"low": 0.5, "high": 0.7, "confidence": 0.999}},
            "",
            "99.9% interval 0.500 – 0.700",
        ),
    ],
)
def test_estimates_become_one_figure_with_error_bars(fields, spread, between):
    """A value with its standard error or interval is one figure, and both say what they are."""
    item = figure("Mean", fields)
    assert (item.value, item.spread, item.interval) == ("0.596", spread, between)


def test_what_stands_beside_a_figure_as_its_interval_belongs_to_it():
    """A figure and its ``_interval`` are one, with the standard error; so is each figure of an object of figures."""
    ends = {"low": 0.5, "high": 0.7, "confidence": 0.95, "method": "logit_t"}
    (item,) = only({"mean": 0.596, "stderr": 0.03, "mean_interval": ends}).items
    assert (item.value, "0.030" in item.spread, "0.500 – 0.700" in item.interval) == ("0.596", True, True)
    series = only({"pass^k": {"1": 0.5, "2": 0.25}, "pass^k_interval": {"1": ends, "2": {"reason": "one task"}}})
    assert "0.500 – 0.700" in str(series)
    assert "reason" not in str(series)
    assert len(blocks_of({"span_interval": {"a": 1}})) == 1


def test_an_undefined_interval_is_no_interval():
    """Null error bars leave the value standing alone."""
    item = figure("Mean", {"mean": 0.5, "stderr": None, "ci95": None, "n": 1})
    assert (item.value, item.spread, item.interval, item.note) == ("0.500", "", "", "n 1")
    assert interval({"ci95": None}) == (None, None)


def test_amounts_are_read_from_figures_and_estimates():
    """The number behind a figure is found in both forms."""
    assert (amount(0.5), amount({"mean": 0.25}), amount(None), amount("x")) == (0.5, 0.25, None, None)


def test_bins_become_a_histogram():
    """Counts and shares are exact, heights relative to the tallest bar, and the last bin is closed."""
    bins = [{"lower": 0, "upper": 0.5, "count": 3}, {"lower": 0.5, "upper": 1, "count": 12}]
    block = only({"histogram": bins})
    assert [(bar.label, bar.count, bar.share, bar.height) for bar in block.bars] == [
        ("[0,\u00a00.5)", 3, "20.0%", 25.0),
        ("[0.5,\u00a01]", 12, "80.0%", 100.0),
    ]


def test_named_bins_are_read_too():
    """Bins that only have a name are labelled and shaded by the numbers in it."""
    block = only({"histogram": [{"bin": "[0.2-0.4)", "count": 0}, {"bin": "[1.0]", "count": 0}]})
    assert [(bar.label, bar.share, bar.height, bar.shade) for bar in block.bars] == [
        ("[0.2,\u00a00.4)", "n/a", 0.0, "q2"),
        ("1", "n/a", 0.0, "q10"),
    ]


def test_bands_become_a_table_of_meanings():
    """Ranges with words are score bands; a label its text repeats is left out."""
    bands = [
        {"low": 1.0, "high": 1.0, "label": "perfect", "text": "perfect: all right", "samples": 2},
        {"low": 0.0, "high": 1.0, "label": "wrong", "text": "wrong: not all right", "samples": 3},
    ]
    block = only({"bands": bands})
    assert block.bands
    assert block.columns == ("Meaning", "Samples")
    assert [(name, [cell.text for cell in cells]) for name, cells in block.rows] == [
        ("1", ["perfect: all right", "2"]),
        ("[0,\u00a01)", ["wrong: not all right", "3"]),
    ]


def test_bands_without_an_upper_end_are_bands_too():
    """A band that only says where it begins reads "from there on"."""
    block = only({"bands": [{"band": "good", "from": 0.75}, {"band": "poor", "from": 0.0}]})
    assert block.bands
    assert [(name, [cell.text for cell in cells]) for name, cells in block.rows] == [
        ("≥ 0.75", ["good"]),
        ("≥ 0", ["poor"]),
    ]


def test_numbered_keys_become_a_series():
    """pass^k over k is drawn over k in numeric order, with its axis from 0 to 1."""
    block = only({"pass_hat_k": {"10": 0.2, "2": 0.5, "1": 1.0}})
    assert block.kind == "series"
    assert [(point.label, point.value) for point in block.points] == [("1", "1.000"), ("2", "0.500"), ("10", "0.200")]
    assert [point.x for point in block.points] == [0.0, 11.11, 100.0]
    assert [point.y for point in block.points] == [0.0, 50.0, 80.0]
    assert block.ticks == ((0.0, "1.000"), (50.0, "0.500"), (100.0, "0.000"))


def test_series_carry_error_bars_and_gaps():
    """Estimates in a series keep their interval; an undefined point has no place in the plot."""
    block = only({"by_k": {"k=1": {"value": 0.4, "ci95": [0.3, 0.5]}, "k=2": {"value": None, "reason": "one trial"}}})
    first, second = block.points
    assert (first.interval, first.low, first.high) == ("95% interval 0.300 – 0.500", 40.0, 0.0)
    assert (second.value, second.y) == ("n/a", None)


def test_counts_over_a_number_depend_on_what_they_share_out():
    """``tasks_by_successes`` shares out the tasks and is a histogram; ``tasks_at_k`` does not and is a table."""
    block = only({"tasks_by_successes": {"0": 14, "1": 12, "2": 10}})
    assert [(bar.label, bar.count) for bar in block.bars] == [("0", 14), ("1", 12), ("2", 10)]
    assert only({"tasks_at_k": {"1": 50, "2": 48}}).kind == "table"


def test_a_matrix_keeps_label_order_and_shades_counts():
    """A confusion matrix has gold rows and predicted columns in the order of the label set."""
    block = only({"labels": ["yes", "no"], "confusion_matrix": {"no": {"no": 8, "yes": 0}, "yes": {"no": 1, "yes": 2}}})
    assert block.columns == ("yes", "no")
    assert [(name, [(cell.text, cell.shade) for cell in cells]) for name, cells in block.rows] == [
        ("yes", [("2", "h2"), ("1", "h1")]),
        ("no", [("0", "h0"), ("8", "h8")]),
    ]


def test_figures_per_class_become_one_table():
    """Objects of figures with common keys share a table; a missing cell is empty, a null one undefined."""
    block = only({"per_class": {"a": {"f1": 0.95, "support": 3}, "b": {"f1": None, "support": 0, "extra": 1}}})
    assert block.columns == ("Extra", "F1", "Support")
    assert [[cell.text for cell in cells] for _, cells in block.rows] == [["", "0.950", "3"], ["1", "n/a", "0"]]
    assert block.wordy == (False, False, False)


def test_lists_of_objects_become_records_and_are_cut():
    """Interesting cases are a table; beyond its length the rest is counted."""
    block = only({"first": [{"id": "t1", "score": 0.5}] * 75})
    assert (block.columns, len(block.rows), block.left_out) == (("Id", "Score"), 60, 15)
    assert block.wordy == (False, False)


def test_lists_of_values_become_a_line():
    """Plain lists are written in a line, long ones with the number left out."""
    assert only({"values": [1, 0.5, "x"]}).text == "1, 0.500, x"
    assert only({"values": list(range(70))}).text.endswith("59 … and 10 more")
    assert only({"values": []}).text == "none"


def test_nested_objects_become_sections_and_end_somewhere():
    """Objects inside objects are sections; very deep ones end in a line of JSON."""
    deep = {"x": 1, "y": [1]}
    for _ in range(12):
        deep = {"in": deep, "n": 1}
    kinds, block = [], blocks_of(deep)[-1]
    while block.kind == "section":
        kinds.append([each.kind for each in block.blocks])
        block = block.blocks[-1]
    assert kinds == [["figures", "section"]] * 3 + [["figures", "words"]]
    assert block.text.startswith('{"in": ')


def test_odd_metrics_never_raise():
    """Whatever an aggregator returns, something is shown."""
    odd = {"": None, "a": {}, "b": [[1, 2], [3]], "c": "x" * 5000, "d": {"1": "text", "2": {}}, "e": float("inf")}
    assert blocks_of(odd)
    assert blocks_of({}) == ()


def test_errors_kept_apart_join_their_values():
    """Standard errors in an object of their own stand beside the figures they belong to."""
    block = only({"a": 0.5, "b": None, "c": 2, "stderr": {"a": 0.125, "b": None}, "b_reason": "no case"})
    assert [(item.label, item.value, item.spread, item.note) for item in block.items] == [
        ("A", "0.500", "± 0.125 (standard error)", ""),
        ("B", "n/a", "", "no case"),
        ("C", "2", "", ""),
    ]
    kept = blocks_of({"a": 0.5, "stderr": {"z": 1.0}})
    assert [block.title for block in kept] == ["", "Standard error"]


def test_figures_per_label_become_rows():
    """Figures whose keys end in the labels are one table, in the order of the labels."""
    metrics = {
        "labels": ["yes", "no"],
        "entropy": 0.5,
        "entropy_gold_no": None,
        "entropy_gold_yes": 0.25,
        "only_yes": 1,
        "undefined": {"entropy_gold_no": "no task"},
    }
    figures, table = blocks_of(metrics)
    assert [item.label for item in figures.items] == ["Entropy", "Only yes"]
    assert (table.title, table.columns) == ("By label", ("yes", "no"))
    assert [(name, [cell.text for cell in cells]) for name, cells in table.rows] == [("Entropy", ["0.250", "n/a"])]


def test_figures_by_class_stay_one_table_with_their_intervals():
    """What stands beside a figure as its interval is shown in its cell."""
    sure = {"low": 0.25, "high": 0.75, "confidence": 0.95}
    row = {"recall": 0.5, "recall_interval": sure, "support": 3}
    (table,) = blocks_of({"per_class": {"a": row, "b": row}})
    assert [cells[0].text for _, cells in table.rows] == ["0.500 [0.250 – 0.750]"] * 2


def test_of_very_many_objects_the_first_are_shown():
    """A run with hundreds of tools has sixty of them on its page, and says where the others are."""
    tools = {f"tool {number}": {"made": number, "arguments": {"/x": {"right": 1}}} for number in range(75)}
    shown = only({"tools": tools})
    assert [block.title for block in shown.blocks[:2]] == ["Tool 0", "Tool 1"]
    assert len(shown.blocks) == 61
    assert shown.blocks[-1].text == "15 more are in summary.json."
    one_more = only({"tools": dict(list(tools.items())[:61])})
    assert one_more.blocks[-1].text == "1 more is in summary.json."
    few = only({"tools": dict(list(tools.items())[:60])})
    assert len(few.blocks) == 60
