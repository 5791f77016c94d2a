"""Result files of other tools: the published ones, as a user names them."""

import json

import pytest

from gradestack import testing
from tests.core.outcomes import data
from tests.plugins.chat_files import certainties, reference
from tests.plugins.described_samples import agrees, described
from tests.plugins.test_published_forms import REGISTRY, samples_of

DATA = data(__file__, "archives.yaml")


@pytest.mark.parametrize("folder", ["adk", "atif"])
def test_a_published_file_gives_its_samples(folder):
    """Every field of expected.json; of a data set only what it expects."""
    sample_folder = reference("formats") / folder
    expected_path = sample_folder / "expected.json"
    text = expected_path.read_text(encoding="utf-8")
    document = json.loads(text)
    for name, content in document.items():
        samples = samples_of(sample_folder / name)
        sample_count = len(content["samples"])
        assert len(samples) == sample_count
        for sample, expected in zip(samples, content["samples"], strict=True):
            wanted = {
                key: value for key, value in expected.items() if value not in ("any", "none_made")
            }
            calls = [{"requestor": None, **call} for call in wanted.pop("expected_calls", ())]
            expected_calls = described(sample, {"expected_calls": calls})["expected_calls"]
            assert calls == expected_calls
            assert agrees(sample, wanted), (sample, wanted)
            assert expected["calls"] != "none_made" or sample.calls is None


@pytest.mark.parametrize(
    ("folder", "name", "reader"),
    DATA["a_published_file_is_one_reader_s"],
)
def test_a_published_file_is_one_reader_s(folder, name, reader, tmp_path):
    """It alone is sure of it, and keeps the laws of readers on it, cut off and garbled."""
    testing.check_reader(
        REGISTRY.load("reader", reader)(), reference(folder) / name, scratch=tmp_path
    )
    path = reference(folder) / name
    certainty_by_reader = certainties(path)
    assert max(certainty_by_reader, key=certainty_by_reader.__getitem__) == reader
    assert [
        value for value, sure in certainty_by_reader.items() if sure == certainty_by_reader[reader]
    ] == [reader]


@pytest.mark.parametrize("name", ["../hush.json", "ABOVE/hush.json", "link.json", "t.json"])
def test_a_trajectory_names_nothing_outside_its_folder(tmp_path, name):
    """Files that a trajectory names are counted, and not read."""
    folder = tmp_path / "agent"
    folder.mkdir()
    trajectory = {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {}}
    steps = [{"source": "user", "message": "Go"}, {"source": "agent", "message": "hush"}]
    hush_path = tmp_path / "hush.json"
    text = json.dumps({**trajectory, "steps": steps})
    hush_path.write_text(text)
    link_path = folder / "link.json"
    link_path.symlink_to("../hush.json")
    record = {**trajectory, "steps": steps[:1]}
    record["continued_trajectory_ref"] = name.replace("ABOVE", str(tmp_path))
    t_path = folder / "t.json"
    t_path.write_text(json.dumps(record))
    (sample,) = samples_of(folder / "t.json")
    shown = repr(sample.turns)
    assert "hush" not in shown
    continued_trajectory_ref = sample.remarks["continued_trajectory_ref"]
    assert continued_trajectory_ref == 1
