"""The list of all samples a page carries, and why points were lost in them."""

import base64
import json
import zlib

import pytest

from gradestack.jsonio import dumps, loads
from gradestack_plugins.pages.chunks import island, listing
from gradestack_plugins.pages.figures import words_of
from gradestack_plugins.pages.index import RowIndex


def index_of(fake, rows):
    return RowIndex.of(
        ((0, 0, dumps(row).encode()) for row in rows), lambda _, line: loads(line), "partial"
    )


def read(text):
    decompressed = zlib.decompress(base64.b64decode(text), wbits=-15)
    return json.loads(decompressed)


def test_hidden_characters_are_visible_in_the_list(fake):
    row = fake.graded_row(1, 0, "m\u202e")
    row["sample"]["id"] = "\x1bid"
    index = index_of(fake, [row])
    words = words_of({})
    text = listing(index, words, {}, {})
    read_list = read(text)
    assert read_list["ids"] == ["␛id"]
    assert read_list["models"] == ["m⟨U+202E⟩"]


def test_clusters_are_no_ids_of_the_list(fake):
    rows = [fake.graded_row(number, 0, "m") for number in (3, 1, 3)]
    for listed_row in rows:
        listed_row["cluster"] = "all"
    lines = ((0, 0, dumps(listed_row).encode()) for listed_row in rows)
    index = RowIndex.of(lines, lambda _, line: loads(line), "partial", ["partial", "x"])
    words = words_of({})
    text = listing(index, words, {}, {})
    read_list = read(text)
    sample = rows[0]["sample"]
    expected = [str(sample["id"]), str(rows[1]["sample"]["id"])]
    assert read_list["ids"] == expected
    assert read_list["i"] == [0, 1, 0]


@pytest.mark.parametrize("text", ["plain", 'é "quoted"\n', "\ud800", "\x00\x7f/"])
def test_texts_of_a_page_come_back_as_they_were(text):
    assert read(island({"a": text})) == {"a": text}
