"""Samples by the values of their facets, in the index and on the page."""

from gradestack_plugins.pages.amounts import facets_of
from gradestack_plugins.pages.index import index_of


def rows(fake, facets):
    made_rows = []
    for number, facet in enumerate(facets):
        row = fake.graded_row(number, 0, "m")
        made_rows.append({**row, "passed": number % 2 == 0, "facets": facet})
    return made_rows


def counted(report):
    index = index_of(report)
    counts = index.facets.counts().items()
    return {
        name: {
            value: (outcomes.total(), outcomes[True], outcomes[False])
            for value, outcomes in values.items()
        }
        for name, values in counts
    }


def test_samples_are_counted_by_value(fake):
    facets = [
        {"kind": "ä", "level": 1},
        {"kind": "b", "level": 2},
        {"kind": "ä", "level": 1},
        {"kind": "ä"},
        {},
    ]
    made = [
        *rows(fake, facets),
        {**fake.ungraded_row(2, 1, "m", "failed"), "facets": {"kind": ["b"], "level": [1, None]}},
    ]
    kinds = {"ä": (3, 2, 1), "b": (2, 0, 1)}
    wanted = {"kind": kinds, "level": {"1": (2, 2, 0), "2": (1, 0, 1), "[1, null]": (1, 0, 0)}}
    report = fake.make_report(made)
    mixed = fake.make_report(made)
    assert counted(report) == wanted
    text = mixed.row_buffer.getvalue()
    assert text.count(b'"\\u00e4"') == 3
    mixed.row_buffer.truncate(0)
    mixed.row_buffer.seek(0)
    mixed.row_buffer.write(text.replace(b'"\\u00e4"', '"ä"'.encode(), 1))
    assert counted(mixed) == wanted


def test_facets_of_one_or_many_values_group_nothing(fake):
    facets = []
    for number in range(21):
        two = str(number % 2)
        facets.append({"id": f"u{number}", "all": "same", "two": two})
    report = fake.make_report(rows(fake, facets))
    assert set(counted(report)) == {"two"}
    assert set(counted(fake.make_report(rows(fake, facets[:20])))) == {"id", "two"}
    assert counted(fake.make_report(rows(fake, [["a"], "b", 7, None]))) == {}


def test_categories_of_two_models_are_a_matrix(fake):
    """Each cell is the share of one model, its row ends in their difference."""
    made = []
    for number, model in enumerate(["a", "a", "a", "b", "b", "b"]):
        passed = number != 0
        graded_row = fake.graded_row(number, 0, model)
        row = {**graded_row, "passed": passed}
        kind = "odd"
        if number % 2 == 0:
            kind = "even"
        made.append({**row, "facets": {"kind": kind}})
    report = fake.make_report(made)
    index = index_of(report)
    (facet,) = facets_of(index, {"passed": "passed"})
    assert facet.block.rows == ["even", "odd"]
    assert facet.block.columns == ["a", "b"]
    assert facet.block.values == [[0.5, 1.0], [1.0, 1.0]]
    assert [figure.value for figure in facet.block.differences] == [0.5, 0.0]
    search = facet.block.search.format(row="even", column="b")
    assert search == 'facet:"kind=even" model:"b"'
