"""Our templates are compiled once for all processes, and never trusted beyond their text."""

import sys

import jinja2
import pytest

from gradestack_plugins.pages import environment as module

PAGE = module.environment().get_template("_begin.html").render(policy="none")


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """Return a function that returns an environment as in another process, and where compiled
    templates are kept.
    """
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    def new(*given, **options):
        kept_folder = tmp_path / "kept"
        monkeypatch.setattr(module, "_COMPILED", module._Compiled(str(kept_folder), "%s.jinja"))
        return module.environment(*given, **options)

    return new, tmp_path / "kept"


def test_a_template_is_compiled_once_for_all_processes(fresh, monkeypatch):
    new, folder = fresh
    assert new().get_template("_begin.html").render(policy="none") == PAGE
    paths = list(folder.iterdir())
    path_count = len(paths)
    assert path_count == 1
    monkeypatch.setattr(
        jinja2.Environment, "compile", lambda *_, **__: pytest.fail("it was compiled again")
    )
    assert new().get_template("_begin.html").render(policy="none") == PAGE


@pytest.mark.parametrize(
    "damage", [lambda _: b"", lambda data: data[:-20], lambda data: b"0" + data]
)
def test_code_that_is_not_of_this_text_is_made_anew(fresh, damage):
    new, folder = fresh
    new().get_template("_begin.html")
    (path,) = folder.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert new().get_template("_begin.html").render(policy="none") == PAGE


def test_only_ours_are_kept_and_only_where_python_writes(fresh, tmp_path, monkeypatch):
    new, folder = fresh
    own_folder = tmp_path / "own"
    own_folder.mkdir()
    mine_path = own_folder / "mine.html"
    mine_path.write_text("{{ 1 + 1 }}")
    assert new(own_folder).get_template("mine.html").render() == "2"
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    new().get_template("_begin.html")
    assert not folder.exists()
