"""The conformance kit: planted mistakes, each found with the line to change; what it is handed."""

import pytest
from click.testing import CliRunner

from gradestack.errors import ConfigError
from gradestack.hooks import Component
from gradestack.registry import Plugin, Registry
from gradestack.suites.code import load_file
from gradestack.testing import check_reader, checks, upgrade
from gradestack.testing.packages import _without_panels
from gradestack_plugins.reporters.commands import plugins
from tests.core.outcomes import data

HEAD = "import attrs\nfrom gradestack import *\nfrom gradestack import Component, hookimpl\n"


def found_in(file, law):
    """Run the checks of a file, and return their failures as text."""
    messages = []
    for check in checks(str(file)):
        if law is None and check.name.endswith("hash seed"):
            continue
        try:
            check()
        except (AssertionError, ConfigError) as error:
            messages.append(str(error))
    return "\n".join(messages)


@pytest.mark.parametrize("case", data(__file__, "kit.yaml"), ids=lambda case: case["name"])
def test_a_planted_mistake_is_found_with_its_line(tmp_path, monkeypatch, case):
    monkeypatch.delenv("GRADESTACK_MINE", raising=False)
    file = tmp_path / "mine.py"
    file.write_text(HEAD + case["code"])
    lines = file.read_text().splitlines()
    line = 1 + next(at for at, text in enumerate(lines) if "# here" in text)
    law = case.get("law")
    findings = found_in(file, law)
    one_lines = findings.splitlines()
    assert any(
        case["said"] in one_line and f"mine.py:{line}" in one_line for one_line in one_lines
    ), findings


BOTH = '''
@attrs.frozen(kw_only=True)
class Loud(Grader):
    """One."""
    limit: float
    def grade(self, sample):
        return self.limit


@attrs.frozen(kw_only=True)
class Quiet(Aggregator):
    """One."""
    limit: float
    def compute(self, grades):
        return {"limit": self.limit}


@hookimpl
def gradestack_components():
    kinds = {"aggregator": "Quiet", "grader": "Loud"}
    return [Component(kind, "mine", f"{__name__}:{name}", "Mine") for kind, name in kinds.items()]
'''


def test_examples_are_given_to_components_of_their_kind(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(HEAD + BOTH)
    module = load_file(file)
    loud = module.Loud(limit=0.5)
    quiet_reporter = module.Quiet(limit=0.5)
    for examples in (
        {"mine": [loud, quiet_reporter]},
        {"grader mine": [loud], "aggregator mine": [quiet_reporter]},
    ):
        named = []
        for check in checks(str(file), examples=examples):
            named.append(check.name)
        assert "aggregator mine: rules" in named
        assert "grader mine: rules" in named
        assert not [name for name in named if "example" in name]


FOLDERS = '''
class Folders(RecordReader):
    """Folders of JSON Lines."""
    keys = frozenset({"id"})
    takes_directories = True

    @classmethod
    def sniff(cls, path, head):
        return float((path / "all.jsonl").is_file())

    def index(self, inputs):
        return Inputs(data=tuple(each.below("all.jsonl") for each in inputs.data))

    def plan(self, inputs, index):
        return super().plan(index, None)

    def sample_of(self, record, source):
        return Sample(id=record["id"], source=source)
'''


def test_a_reader_of_folders_is_given_a_folder(tmp_path):
    file, folder, scratch = (tmp_path / name for name in ("mine.py", "data", "scratch"))
    file.write_text(HEAD + FOLDERS)
    for folder_path in (folder, scratch):
        folder_path.mkdir()
    all_path = folder / "all.jsonl"
    all_path.write_text('{"id": "a"}\n{"id": "b"}\n')
    folders = load_file(file).Folders()
    check_reader(folders, folder, scratch=scratch)
    paths = scratch.glob("*/all.jsonl")
    assert len([*paths]) == 5


def test_panels_of_other_packages_are_left_out_of_a_check():
    panel, stack = (Component(kind, "x", "m:X", "X") for kind in ("panel", "stack"))
    mine, other = (Plugin(name, name, "1", (panel, stack)) for name in ("mine", "other"))
    checked_plugins = _without_panels(Registry([mine, other]), [mine]).plugins
    components = [plugin.components for plugin in checked_plugins]
    assert components == [(panel, stack), (stack,)]


def test_an_indented_table_has_all_its_rows():
    rows = "reader a :A One\n      that goes on\n  grader b :B Two"
    indented = Component.table("m", f"\n  {rows}\n")
    assert [(row.kind, row.summary) for row in indented] == [
        ("reader", "One that goes on"),
        ("grader", "Two"),
    ]
    with pytest.raises(ValueError, match="'grader b :B Two' of a table is indented"):
        Component.table("m", "reader a :A One\n    grader b :B Two")


@pytest.mark.parametrize("case", data(__file__, "upgrade.yaml"), ids=lambda case: case["name"])
def test_words_of_earlier_contracts_are_put_into_those_of_today(tmp_path, case):
    """Comments and forms of all else stay; what has no rule is said and left."""
    file = tmp_path / "mine.py"
    file.write_text(case["old"])
    dry = upgrade(file, dry_run=True)
    assert file.read_text() == case["old"]
    done = CliRunner().invoke(plugins, ["upgrade", str(file), "--dry-run"])
    expected = 4 if "left" in case else 0
    assert done.exit_code == expected
    changed, left = upgraded = upgrade(tmp_path)
    lines = done.output.splitlines()
    assert lines == [*changed, *(f"by hand: {line}" for line in left)]
    assert upgraded == dry
    assert file.read_text() == case.get("new", case["old"])
    for lines_printed, texts in ((changed, case.get("changed", [])), (left, case.get("left", []))):
        assert [text.partition("mine.py:")[2] for text in lines_printed] == texts
