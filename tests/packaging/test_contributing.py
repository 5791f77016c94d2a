"""Tests of the tools that contributors rely on.

Changelog fragments that are taken up, hooks that run what `make lint` runs.
"""

import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import yaml

from tests.conftest import SLOW_FOLDERS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
KINDS = [kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"]]
FRAGMENTS = sorted(path for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md")
HOOKS = ROOT / ".pre-commit-config.yaml"


def _tool(*arguments):
    command = [sys.executable, "-m", *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True
    ).stdout


def test_fragments_are_named_by_their_kind_and_hold_whole_sentences():
    """`+a-few-words.KIND.md`; a fragment of another name would be left out without a word."""
    for path in FRAGMENTS:
        assert re.fullmatch(rf"\+[a-z0-9]+(-[a-z0-9]+)*\.({'|'.join(KINDS)})\.md", path.name)
        text = path.read_text(encoding="utf-8")
        assert re.fullmatch(r"[A-Z`].*[.`]\n", text, re.DOTALL), (
            "a sentence, no bullet, one line break at its end"
        )
        assert "\n\n" not in text
        lines = map(len, text.splitlines())
        assert max(lines) <= 140


def test_fragments_come_to_a_section():
    tool = _tool("towncrier", "build", "--draft", "--version", "1.2.3")
    draft = " ".join(tool.split())
    assert "## [1.2.3] - " in draft
    for path in FRAGMENTS:
        section = path.name.split(".")[1].capitalize()
        after = draft.partition(f"### {section} ")[2].partition(" ### ")[0]
        expected_text = f"- {' '.join(path.read_text(encoding='utf-8').split())}"
        assert expected_text in after


def test_make_test_installs_what_its_tests_import():
    """A test that is skipped for a library not installed would be skipped on every
    fresh machine.
    """
    tests_folder = ROOT / "tests"
    paths = tests_folder.rglob("*.py")
    files = [path for path in paths if "oracles" not in path.parts]
    requirements = set()
    for path in files:
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r'importorskip\("(\w+)', text):
            requirements.add(name)
    lacking = {name for name in requirements if find_spec(name) is None}
    assert lacking <= {"compression"}, (
        "tests would be skipped; the extra 'dev' installs what they import"
    )


def test_the_changelog_has_a_place_for_them():
    changelog_path = ROOT / "CHANGELOG.md"
    text = changelog_path.read_text(encoding="utf-8")
    start_string = PROJECT["tool"]["towncrier"]["start_string"]
    above, _, below = text.partition(start_string)
    assert "\n## " not in above
    assert "\n## [0.1.0]" in below


def test_hooks_run_what_lint_runs():
    """Each is a part of `make lint`, in the project's environment; nothing is fetched."""
    _tool("pre_commit", "validate-config", HOOKS)
    text = HOOKS.read_text(encoding="utf-8")
    (repository,) = yaml.safe_load(text)["repos"]
    assert repository["repo"] == "local"
    makefile_folder = ROOT / "Makefile"
    (parts,) = re.findall(
        r"^lint: (.*)$", makefile_folder.read_text(encoding="utf-8"), re.MULTILINE
    )
    commands = [hook["entry"].split() for hook in repository["hooks"]]
    assert {command[0] for command in commands} == {"make"}
    expected = {command[1] for command in commands}
    assert {"style", "types"} <= expected <= set(parts.split())
    languages = {hook["language"] for hook in repository["hooks"]}
    assert languages == {"system"}


def test_every_promise_of_security_has_its_test():
    security_path = ROOT / "SECURITY.md"
    text = security_path.read_text(encoding="utf-8")
    named = re.findall(r"`((?:tests/[\w/]+\.py)|(?:test_\w+))`", text)
    assert len(named) > 15
    tests_folder = ROOT / "tests"
    paths = tests_folder.rglob("test_*.py")
    written = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    lacking = [
        test_name
        for test_name in named
        if not (
            (ROOT / test_name).is_file() if "/" in test_name else f"def {test_name}(" in written
        )
    ]
    assert lacking == []


def test_targets_that_name_slow_folders_select_their_tests():
    """Without ``-m`` pytest runs no slow test, and ends with an error or with fewer tests."""
    makefile_folder = ROOT / "Makefile"
    makefile = makefile_folder.read_text(encoding="utf-8")
    commands = re.findall(r"^\t.*/pytest .*$", makefile, re.MULTILINE)
    assert len(commands) > 5
    of_slow_tests = [
        command for command in commands if SLOW_FOLDERS & set(re.findall(r"\btests/(\w+)", command))
    ]
    assert of_slow_tests
    assert [command for command in of_slow_tests if " -m " not in command] == []


def test_the_newest_section_of_the_changelog_is_short():
    changelog_path = ROOT / "CHANGELOG.md"
    text = changelog_path.read_text(encoding="utf-8")
    newest = re.split(r"^(?=## \[)", text, flags=re.MULTILINE)[1]
    lines = newest.splitlines()
    line_count = len(lines)
    assert line_count <= 60
    assert "\n### Removed\n" in newest
    assert "\n| old name | new name |\n" in newest
