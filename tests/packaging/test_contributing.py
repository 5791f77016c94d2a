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
        assert max(map(len, text.splitlines())) <= 140


def test_fragments_come_to_a_section():
    draft = " ".join(_tool("towncrier", "build", "--draft", "--version", "1.2.3").split())
    assert "## [1.2.3] - " in draft
    for path in FRAGMENTS:
        section = path.name.split(".")[1].capitalize()
        after = draft.partition(f"### {section} ")[2].partition(" ### ")[0]
        assert f"- {' '.join(path.read_text(encoding='utf-8').split())}" in after


def test_make_test_installs_what_its_tests_import():
    """A test that is skipped for a library not installed would be skipped on every
    fresh machine.
    """
    files = [path for path in (ROOT / "tests").rglob("*.py") if "oracles" not in path.parts]
    requirements = {
        name
        for path in files
        for name in re.findall(r'importorskip\("(\w+)', path.read_text(encoding="utf-8"))
    }
    lacking = {name for name in requirements if find_spec(name) is None}
    assert lacking <= {"compression"}, (
        "tests would be skipped; the extra 'dev' installs what they import"
    )


def test_the_changelog_has_a_place_for_them():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    above, _, below = text.partition(PROJECT["tool"]["towncrier"]["start_string"])
    assert "\n## " not in above
    assert "\n## [0.1.0]" in below


def test_hooks_run_what_lint_runs():
    """Each is a part of `make lint`, in the project's environment; nothing is fetched."""
    _tool("pre_commit", "validate-config", HOOKS)
    (repository,) = yaml.safe_load(HOOKS.read_text(encoding="utf-8"))["repos"]
    assert repository["repo"] == "local"
    (parts,) = re.findall(
        r"^lint: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    commands = [hook["entry"].split() for hook in repository["hooks"]]
    assert {command[0] for command in commands} == {"make"}
    assert {"style", "types"} <= {command[1] for command in commands} <= set(parts.split())
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}


def test_every_promise_of_security_has_its_test():
    named = re.findall(
        r"`((?:tests/[\w/]+\.py)|(?:test_\w+))`", (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    )
    assert len(named) > 15
    written = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")
    )
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
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(r"^\t.*/pytest .*$", makefile, re.MULTILINE)
    assert len(commands) > 5
    of_slow_tests = [
        command for command in commands if SLOW_FOLDERS & set(re.findall(r"\btests/(\w+)", command))
    ]
    assert of_slow_tests
    assert [command for command in of_slow_tests if " -m " not in command] == []


def test_the_newest_section_of_the_changelog_is_short():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.split(r"^(?=## \[)", text, flags=re.MULTILINE)[1]
    assert len(newest.splitlines()) <= 60
    assert "\n### Removed\n" in newest
    assert "\n| old name | new name |\n" in newest
