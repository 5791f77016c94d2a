"""Every example and every published file against every reader.

A file goes to the reader of its own format.
"""

import os
from pathlib import Path

import pytest

from gradestack import discover
from tests.core.outcomes import data
from tests.plugins.chat_files import certainties, written

DATA = data(__file__, "sniffing.yaml")

EXAMPLES = Path(__file__).parents[2] / "examples"
OWNERS = DATA["owners"]
NEW = {"openai", "anthropic", "records"}
"""Readers of messages and of tables: what most other formats hold as well."""


def _owner(path):
    certainty_by_reader = certainties(path)
    if certainty_by_reader:
        return max(certainty_by_reader, key=certainty_by_reader.get)
    return None


def _files(root):
    paths = root.rglob("*")
    return sorted(path for path in paths if path.is_file() and path.stat().st_size)


@pytest.mark.parametrize(
    "path", _files(EXAMPLES), ids=lambda path: path.relative_to(EXAMPLES).as_posix()
)
def test_an_example_goes_to_its_own_reader(path):
    """And to no reader of chat logs or tables, none of which is among the examples."""
    owner = _owner(path)
    assert owner not in NEW
    relative_path = path.relative_to(EXAMPLES)
    folder, *rest = relative_path.parts
    if rest and "/".join(rest) in OWNERS.get(folder, {}):
        expected = OWNERS[folder]["/".join(rest)]
        assert owner == expected


@pytest.mark.parametrize(
    ("more", "owner"), DATA["a_conversation_with_an_id_is_a_log_unless_it_says_what_was_expected"]
)
def test_a_conversation_with_an_id_is_a_log_unless_it_says_what_was_expected(tmp_path, more, owner):
    """The jsonl form has messages too; a log has keys of its own, and no reference."""
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    path = written(tmp_path, [{"id": "a", "messages": talk, **more}])
    assert _owner(path) == owner


@pytest.mark.parametrize(
    ("more", "owner"),
    [
        ({}, "openai"),
        ({"expected": []}, "jsonl"),
        ({"predicted": "x"}, "jsonl"),
        ({"instructions": "i"}, "openai"),
    ],
)
def test_a_model_and_an_input_are_a_request_unless_it_says_what_was_expected(tmp_path, more, owner):
    """The jsonl form has both keys too."""
    path = written(tmp_path, [{"id": "a", "model": "m", "input": "hi", **more}])
    assert _owner(path) == owner


@pytest.mark.parametrize("name", DATA["beginnings"])
def test_the_beginning_of_a_very_long_record_is_enough(name):
    """A reader knows its format by the names there, where the rest cannot be read."""
    beginning = DATA["beginnings"][name].encode()
    head = beginning + b"x" * 70_000
    reader = discover(limit="").load("reader", name)
    assert reader.sniff(Path("gone.json"), head[:65_536]) > 0


PUBLISHED = DATA["published"]
"""Folder of published files -> the reader of its files.

No reader takes a file of another folder.
"""
MIXED = ("own_data/", "hostile/", "reports/", "truth/")
"""Folders of files as people bring them, of many formats in one folder."""


@pytest.mark.slow
@pytest.mark.parametrize("every", [20, pytest.param(1, marks=pytest.mark.proof)])
def test_published_files_go_to_their_own_reader(every):
    """Every file against every reader.

    Nobody but the reader of its format takes it, and that takes at least one.
    """
    root = os.environ.get("GRADESTACK_REFERENCE_DATA")
    if not root:
        pytest.skip("GRADESTACK_REFERENCE_DATA is not set")
    met = set()
    root_path = Path(root)
    files = _files(root_path)
    for number, path in enumerate(files):
        relative_path = path.relative_to(root).as_posix()
        more = relative_path.startswith("orchestrationbench/") and number % every
        if more or relative_path.startswith(MIXED) or path.name == "expected.json":
            continue
        certainty_by_reader = certainties(path)
        readers = {name for name, sure in certainty_by_reader.items() if sure}
        records = certainty_by_reader.get("records", 0)
        if records < max(certainty_by_reader.values(), default=0):
            readers.discard(
                "records"
            )  # lists of any form look like records; a reader of the format is surer
        owners = set()
        for folder, owner in PUBLISHED.items():
            if f"{relative_path}/".startswith(f"{folder}/"):
                owners.add(owner)
        assert readers <= owners, relative_path
        met |= readers
    published = set(PUBLISHED.values())
    assert met == published
