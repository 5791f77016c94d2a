"""Python files that are named where pages are written again."""

import pytest

from gradestack import ConfigError, discover
from gradestack.suites.code import with_files
from gradestack_plugins.pages.panel import panels_of
from tests.core.outcomes import data

DATA = data(__file__, "files_of_reports.yaml")


PANEL = DATA["panel"]


def test_what_a_file_offers_is_added(tmp_path):
    shown_path = tmp_path / "shown.py"
    shown_path.write_text(PANEL)
    registry = with_files(discover(limit=""), [str(tmp_path / "shown.py")], allow_code=True)
    names = registry.names("reporter")
    assert "line" in names
    panels = panels_of(registry).placed[-1:]
    assert [(panel.plugin, panel.name) for panel in panels] == [("shown.py", "card")]


def test_code_has_to_be_allowed_and_sound(tmp_path):
    with pytest.raises(ConfigError, match=r"gone\.py is Python code; pass --allow-code"):
        with_files(discover(limit=""), ["gone.py"], allow_code=False)
    with pytest.raises(ConfigError, match=r"gone\.py: no such Python file"):
        with_files(discover(limit=""), ["gone.py"], allow_code=True)
    wrong_path = tmp_path / "wrong.py"
    panel = PANEL.replace('"overview"', '"somewhere"')
    wrong_path.write_text(panel.partition("class Line")[0])
    with pytest.raises(ConfigError, match=r"panel 'P' has unknown place 'somewhere'"):
        with_files(discover(limit=""), [str(tmp_path / "wrong.py")], allow_code=True)
