"""Python files that are named where pages are written again."""

import pytest

from gradestack import ConfigError, PluginError, discover
from gradestack.reporter import panels_of
from gradestack.suites.code import with_files

PANEL = """
from gradestack import Panel, Reporter, hookimpl

@hookimpl
def gradestack_panels():
    return [Panel(name="p", place="overview", title="P", target=f"{__name__}:p")]

class Line(Reporter):
    def write(self, report, out):
        return ()
"""


def test_what_a_file_offers_is_added(tmp_path):
    """Its panels by their hook, its components as classes; a file may have both, or panels alone."""
    (tmp_path / "shown.py").write_text(PANEL)
    (tmp_path / "alone.py").write_text(PANEL.partition("class ")[0])
    files = [str(tmp_path / name) for name in ("shown.py", "alone.py")]
    found = with_files(discover(limit=""), files, allow_code=True)
    assert "line" in found.names("reporter")
    assert [(each.plugin, each.name) for plugin in found.plugins[-2:] for each in plugin.panels] == [
        ("shown.py", "p"),
        ("alone.py", "p"),
    ]


def test_two_files_of_one_name_are_told_apart(tmp_path):
    """Their panels have ids and files of their own."""
    files = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "shown.py").write_text(PANEL.partition("class ")[0])
        files.append(str(tmp_path / folder / "shown.py"))
    panels = panels_of(with_files(discover(limit=""), files, allow_code=True))
    assert [panel.plugin for panel in panels[-2:]] == ["shown.py", "shown.py-2"]


def test_code_has_to_be_allowed_and_sound(tmp_path):
    """A file is not looked at without --allow-code; what is wrong in it is said with its name."""
    with pytest.raises(ConfigError, match=r"gone\.py is Python code; pass --allow-code"):
        with_files(discover(limit=""), ["gone.py"], allow_code=False)
    with pytest.raises(ConfigError, match=r"gone\.py: no such Python file"):
        with_files(discover(limit=""), ["gone.py"], allow_code=True)
    (tmp_path / "wrong.py").write_text(PANEL.replace('"overview"', '"somewhere"').partition("class ")[0])
    with pytest.raises(ConfigError, match=r"wrong\.py: panel 'p' has unknown place 'somewhere'"):
        with_files(discover(limit=""), [str(tmp_path / "wrong.py")], allow_code=True)
    (tmp_path / "taken.py").write_text(PANEL.replace("class Line", "class Html"))
    with pytest.raises(PluginError, match=r"html"):
        with_files(discover(limit=""), [str(tmp_path / "taken.py")], allow_code=True)
