"""Which samples count: the first tasks, certain tags, the last of several duplicates."""

import pytest

from gradestack import Sample
from gradestack.grading.selection import Selection, digests, tags_of


@pytest.mark.parametrize(
    ("tags", "expected"),
    [(None, set()), ("x", {"x"}), (["x", 5, None, "y"], {"x", "y"}), (("x",), {"x"}), ({"x": 1}, set()), (5, set())],
)
def test_tags(tags, expected):
    assert tags_of(Sample(id="a", facets={"tags": tags})) == expected


def test_identities():
    made = [
        Sample(id="a"),
        Sample(id="a", run=1),
        Sample(id="a", run="1"),
        Sample(id="a", model="m"),
        Sample(id="a", model=""),
        Sample(id="\ud800"),
        Sample(id='a", null'),
    ]
    assert len(set(digests(made))) == len(made)
    assert len(set(digests([Sample(id="a", text="x"), Sample(id="a", text="y")]))) == 1


def test_without_limits_everything_is_taken():
    assert Selection().takes(Sample(id="a"), (0, 0))


class Name(str):
    """A text of a class of its own, as some libraries return them."""

    __slots__ = ()


@pytest.mark.parametrize("text", ["a", "é\u2028\x7f", '"\\/\n\x1f', "\ud800", "x\udfff"])
@pytest.mark.parametrize("run", [None, 0, -(10**30), 2**64, "0"])
def test_one_identity_has_one_digest(text, run):
    (plain,) = digests([Sample(id=text, model=text, run=run)])
    assert digests([Sample(id=Name(text), model=Name(text), run=run)]) == [plain]
    assert 0 <= plain < 2**64
    assert plain not in digests([Sample(id=text, model=None, run=run), Sample(id=text, model=text, run="1")])
