"""Python files under `plugins`: used as if they were installed."""

import pytest

import gradestack
from gradestack import ConfigError
from tests.core.code_samples import METRIC, average, grader_text
from tests.core.outcomes import data

DATA = data(__file__, "plugin_files.yaml")


def plugin_suite(*files, graders, **more):
    """Return a suite that uses components of these plugin files."""
    plugins = [*files]
    return {
        "name": "x",
        "target": {"paths": ["runs.jsonl"]},
        "plugins": plugins,
        "graders": graders,
        "reports": [],
        **more,
    }


def test_a_file_is_used_as_if_it_were_installed(here, registry):
    """Each component class defined in it, under its name in snake case.

    None that is imported, abstract or private.
    """
    base_path = here / "base.py"
    base_path.write_text("from gradestack import Grader\nclass Base(Grader):\n    pass\n" + METRIC)
    (here / "graders.py").write_text(
        "from base import Base, FewCalls\nfrom gradestack import Grade\n"
        "class HTTPStatus2xx(Base):\n    def grade(self, sample):\n        return "
        "Grade(score=0.5)\n"
        "class _Hidden(HTTPStatus2xx):\n    pass\n"
        "class Abstract(Base):\n    pass\n"
    )
    suite = load = plugin_suite("./graders.py", graders={"q": "http_status2xx"})
    report = gradestack.run(load, output="out", allow_code=True, registry=registry)
    assert average(report, "q") == 0.5
    config = report.summary["config"]
    assert config["plugins"] == ["graders.py"]
    graders_path = here / "graders.py"
    expected = [
        str(here / "base.py"),
        str(graders_path),
    ]
    code_files = report.header["code"]
    paths = [code_file["path"] for code_file in code_files]
    assert paths == expected
    for name in ("few_calls", "hidden", "abstract"):
        match = f"unknown grader '{name}'"
        with pytest.raises(ConfigError, match=match):
            gradestack.run({**suite, "graders": {"q": name}}, allow_code=True, registry=registry)


def test_a_file_with_a_hook_says_itself_what_it_offers(here, registry):
    hook = (
        "from gradestack import Component, Grade, Grader, hookimpl\n"
        + grader_text("Mine", 0.5)
        + "@hookimpl\ndef gradestack_components():\n"
        "    return [Component(kind='grader', name='other', target=f'{__name__}:Mine', "
        "summary='s')]\n"
    )
    (here / "hooked.py").write_text(hook)
    suite = plugin_suite("hooked.py", graders={"q": "other"})
    assert (
        average(gradestack.run(suite, output="out", allow_code=True, registry=registry), "q") == 0.5
    )
    hooked_path = here / "hooked.py"
    hooked_path.write_text(hook.replace("@hookimpl\n", ""))
    with pytest.raises(
        ConfigError,
        match=r"plugins\[0\]: hooked.py: it implements no .* \(is @hookimpl missing\?\)",
    ):
        gradestack.run(suite, allow_code=True, registry=registry)


def test_a_plugin_file_that_cannot_be_used(here, registry):
    empty_path = here / "empty.py"
    empty_path.write_text("VALUE = 1\n")
    clash_path = here / "clash.py"
    clash_path.write_text("from gradestack import Grade, Grader\n" + grader_text("TauPartial", 1.0))
    abstract_path = here / "abstract.py"
    abstract_path.write_text(
        "from gradestack import Grader\nclass Mine(Grader):\n    def graed(self, sample): ...\n"
    )
    wrong = "abstract.py has no component: Mine has no method grade"
    for file, problem in (
        ("empty.py", "has no component"),
        ("abstract.py", wrong),
        ("gone.py", "no such Python file"),
    ):
        with pytest.raises(ConfigError, match=problem):
            gradestack.run(
                plugin_suite(file, graders={"q": "toy"}), allow_code=True, registry=registry
            )
    suite = gradestack.load_suite(
        plugin_suite("clash.py", graders={"q": "tau_partial"}), allow_code=True, registry=registry
    )
    first_warning = suite.warnings[0]
    assert first_warning.endswith(
        "write gradestack:tau_partial or local:tau_partial: the first is used"
    )
    assert registry.conflicts == []


@pytest.mark.parametrize(
    "entry", DATA["a_path_holds_no_nul_character"], ids=["plugin", "reference", "function"]
)
def test_a_path_holds_no_nul_character(here, registry, entry):
    suite = {"target": {"paths": ["runs.jsonl"]}, "graders": {"q": "toy"}, **entry}
    with pytest.raises(
        ConfigError,
        match=r"suite: (plugins\[0\]|graders\.q(\.file)?): a path holds no NUL character",
    ):
        gradestack.load_suite(suite, allow_code=True, registry=registry)
