"""Templates compiled for good: kept beside ours as Python keeps its modules, and never trusted beyond their text."""

import sys
from pathlib import Path

import jinja2
import pytest

from gradestack_plugins.pages import environment as module

PAGE = module.environment().get_template("_begin.html").render(policy="none")


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "kept"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    def new():
        monkeypatch.setattr(module, "_COMPILED", module._Kept())
        return module.environment

    return new, tmp_path / "kept"


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def refuse(monkeypatch):
    monkeypatch.setattr(jinja2.Environment, "compile", lambda *_, **__: pytest.fail("it was compiled again"))


def test_a_template_is_compiled_once_for_all_processes(kept, monkeypatch):
    new, folder = kept
    assert new()().get_template("_begin.html").render(policy="none") == PAGE
    assert [path.name.partition(".")[0] for path in files(folder)] == ["_begin"]
    environment = new()
    refuse(monkeypatch)
    assert environment().get_template("_begin.html").render(policy="none") == PAGE


DAMAGE = {"empty": lambda _: b"", "cut": lambda data: data[:-20], "another version": lambda data: b"0" + data}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_code_that_is_not_of_this_text_is_made_anew(kept, damage):
    new, folder = kept
    new()().get_template("_begin.html")
    (path,) = files(folder)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert new()().get_template("_begin.html").render(policy="none") == PAGE
    assert path.read_bytes() == whole


def test_what_python_may_not_write_is_not_kept(kept, monkeypatch):
    new, folder = kept
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    new()().get_template("_begin.html")
    assert files(folder) == []


def test_a_full_disk_leaves_nothing_behind(kept, monkeypatch):
    new, folder = kept

    def full(path, data):
        path.write_text(repr(data[:10]))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert new()().get_template("_begin.html").render(policy="none") == PAGE
    assert folder.is_dir()
    assert files(folder) == []


def test_templates_of_others_are_not_kept(kept, tmp_path):
    new, folder = kept
    own, theirs = tmp_path / "own", tmp_path / "theirs"
    for place in (own, theirs):
        place.mkdir()
        (place / "mine.html").write_text("{{ 1 + 1 }}")
    assert new()(own).get_template("mine.html").render() == "2"
    assert new()(folders={"shout": [theirs]}).get_template("shout/mine.html").render() == "2"
    assert files(folder) == []
