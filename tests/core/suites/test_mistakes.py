"""Everything wrong with a suite is told at once, each mistake with its place.

Most are in ``bad_suites.yaml``.
"""

import re
from typing import get_args

import pytest

from gradestack import ConfigError, DataError, PluginError, Registry
from gradestack.hooks import Kind
from gradestack.registry import Plugin
from tests.core.outcomes import data
from tests.core.toy_components import BASE

CASES = [
    pytest.param(
        group["suite"].replace("CASE", str(case)), overrides, messages, id=f"{number}-{case}"
    )
    for number, group in enumerate(data(__file__, "bad_suites.yaml"))
    for case, overrides, messages in [
        *((case, (), messages) for case, messages in group.get("cases", {}).items()),
        *(("", (override,), messages) for override, messages in group.get("set", {}).items()),
    ]
]


@pytest.mark.parametrize(("text", "overrides", "messages"), CASES)
def test_what_is_wrong_is_told_with_its_place(load, with_echo, text, overrides, messages):
    wanted = [messages] if isinstance(messages, str) else messages
    problems = []
    for problem in refused(load, text, *overrides, using=with_echo):
        problems.append(problem.removeprefix("suite.yaml:").strip())
    assert len(problems) == len(wanted), problems
    assert all(any(problem.startswith(start) for problem in problems) for start in wanted), problems


def refused(load, text, *overrides, using=None, error=ConfigError):
    with pytest.raises(error) as caught:
        load(text, *overrides, using=using)
    return [re.sub(r"^\S*/(?=suite\.yaml:)", "", problem) for problem in caught.value.problems]


def test_mistakes_in_the_suite_are_told_before_missing_inputs(load):
    """A typo is exit 2, even when the input is not there yet.

    Without mistakes the input is the problem.
    """
    refused_count = len(refused(load, "target: {paths: [gone.jsonl]}\ngraders: {quality: toi}\n"))
    assert refused_count == 1
    with pytest.raises(DataError, match=r"gone\.jsonl: no such file"):
        load("target: {paths: [gone.jsonl]}\ngraders: {quality: toy}\n")
    with pytest.raises(DataError, match=r"gone\.jsonl: no such file"):
        load("target: {paths: [gone.jsonl]}\n")


def test_a_broken_plugin_is_told_with_the_place_that_uses_it(load, make_registry_, toys):
    """Alone it is a plugin error.

    Beside mistakes of the suite, a configuration error that lists it too.
    """
    component = toys.component("grader", "sick", "Missing")
    using = make_registry_(component)
    text = BASE + ""
    (problem,) = refused(load, text, "graders.quality=sick", using=using, error=PluginError)
    assert problem.startswith(
        "--set graders.quality: grader 'sick' of plugin toys cannot be loaded: AttributeError"
    )
    both = refused(load, BASE + "nmae: y\n", "graders.quality=sick", using=using)
    assert len(both) == 2
    plugin = Plugin(name="p", distribution="d", version="1", error="boom")
    with_broken = Registry([*using.plugins, plugin])
    (unknown,) = refused(
        load, BASE, "graders.quality=whatever", using=with_broken, error=PluginError
    )
    assert "plugin p (d 1): boom" in unknown


def test_no_component_is_loaded_that_the_suite_does_not_name(
    load, make_registry_, toys, tmp_path, monkeypatch
):
    raising_plugin_path = tmp_path / "raising_plugin.py"
    raising_plugin_path.write_text("raise RuntimeError('loaded')\n")
    monkeypatch.syspath_prepend(tmp_path)
    kinds = get_args(Kind)
    using = make_registry_(
        *(
            toys.component(kind, "raising", "x")._replace(target="raising_plugin:X")
            for kind in kinds
        )
    )
    load(BASE + "reader: jsonl\n", using=using)
    for text in (BASE + "reader: raising\n", BASE + "reader: jsonl\nstack: raising\n"):
        with pytest.raises(PluginError, match="RuntimeError: loaded"):
            load(text, using=using)
