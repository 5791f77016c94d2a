"""The rules by which the result of a call is an error, and the page that lists them."""

import re
from pathlib import Path

import pytest

from gradestack_plugins.readers.chat import results

PAGE = (Path(__file__).parents[3] / "docs/trajectory.md").read_text(encoding="utf-8")
EXAMPLES = {
    "json_success": {"success": False, "message": "no seat"},
    "json_is_error": {"isError": True},
    "json_error": {"error": "no seat"},
    "json_status": {"status": "failed"},
    "json_code": {"status_code": 503},
    "text_error": "Error: no seat",
    "text_error_tag": "<error>no seat</error>",
    "text_exception": "ValueError: no seat",
    "text_traceback": "Traceback (most recent call last)",
    "text_error_occurred": "An error occurred while booking",
    "text_failed": "Failed to book",
    "text_http": "HTTP 503",
    "text_status": "404 Not Found",
}


@pytest.mark.parametrize(("rule", "result"), EXAMPLES.items())
def test_a_rule_tells_that_a_result_is_an_error(rule, result):
    error_form = results.error_form(result)
    assert error_form.rule == rule


def test_the_page_lists_every_rule():
    file_path = Path(results.__file__)
    source = file_path.read_text(encoding="utf-8")
    matches = re.findall(r'"((?:text|json)_\w+)"', source)
    rules = set(matches)
    section = PAGE.partition("## Failed calls")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE)) == rules == set(EXAMPLES)
