"""Panels of plugins on the pages, themes, and templates that stand before ours."""

import copy

import attrs
import pytest

from gradestack import Component, ConfigError, PluginError, Registry
from gradestack.jsonio import dumps
from gradestack.outcome.pages import Pages, with_broken_pages
from gradestack.registry import Plugin
from gradestack_plugins.pages import blocks, testing
from gradestack_plugins.pages.comparison import markdown_page
from gradestack_plugins.pages.draw import draw_block
from gradestack_plugins.pages.html import HtmlReporter
from gradestack_plugins.pages.index import index_of
from gradestack_plugins.pages.markdown import MarkdownReporter
from tests.core.outcomes import data
from tests.golden.pages import check_golden_file
from tests.placed import panel_of, with_panels

DATA = data(__file__, "panels.yaml")


def plugin_of(*components):
    return Plugin(name="mine", distribution="d", version="1", components=components)


MARKUP = "<b onclick=x>bold</b>"
NODE = blocks.Node


def every_kind(report):
    figure = blocks.Figure(MARKUP, 0.25, (0.125, 0.5), MARKUP)
    figures = blocks.Figures(
        [figure, blocks.Figure("none", None), blocks.Figure("word", MARKUP)], MARKUP
    )
    interval = blocks.Interval([figure, blocks.Figure("off", 7.0)], MARKUP)
    matrix = blocks.Matrix([MARKUP, "b"], ["x", MARKUP], [[3, 1], [None, 4]], MARKUP, MARKUP)
    node = NODE(MARKUP)
    graph = blocks.Graph([node, NODE("after", [MARKUP, "gone"], [MARKUP])], title=MARKUP)
    return [
        figures,
        interval,
        matrix,
        graph,
        blocks.Graph([NODE("a")], made=[NODE("a"), NODE(MARKUP, ["a"])]),
        blocks.Distribution({MARKUP: [0, 0.5, 1, 2, float("nan")], "b": [-1]}, MARKUP),
        blocks.Counts({MARKUP: 3}, MARKUP),
        blocks.Curve({MARKUP: {1: figure, 2: blocks.Figure("2", None)}}, MARKUP),
        blocks.Curve({"": {k: blocks.Figure(str(k), 1 / k) for k in range(1, 41)}}, "Long"),
        blocks.Table([MARKUP], {MARKUP: [MARKUP], "none": [None]}, MARKUP, MARKUP),
        blocks.Words(MARKUP, MARKUP),
        blocks.Link(MARKUP, search="a&b", model="m", reason=("g", "code", "tool", "")),
        blocks.Section(MARKUP, [blocks.Words(MARKUP)]),
    ]


def cells(report):
    figure = blocks.Figure("f", 0.25, (0.125, 0.5))
    row = [
        figure,
        blocks.Figure("off", 7.0, (6.0, 8.0)),
        blocks.Link(MARKUP, position=2),
    ]
    table = blocks.Table(["share", "off", "sample"], {"row": [*row]}, "Cells")
    words = blocks.Words("bare")
    section = blocks.Section(MARKUP, [blocks.Words("inside")], folded=True)
    return [
        words,
        table,
        section,
    ]


def of_sample(row):
    return [blocks.Words(f"run {row['run']}")]


def of_comparison(data):
    return [blocks.Words(data["sentence"])]


def nothing(_):
    return []


def broken(_):
    raise KeyError("no figure")


class Bare(BaseException):
    """A raised object that is no Exception, and no wish of the user to stop either."""


def bare(_):
    raise Bare("mine alone")


def stopped(_):
    raise KeyboardInterrupt


def meddling(report):
    """Change the report that was passed, its summary, header and messages."""
    report.summary["metrics"]["total"] = 10**6
    report.header["version"] = "changed"
    report.warnings.append("changed")
    return [blocks.Words(f"index {id(index_of(report))}")]


def meddling_comparison(data):
    data["runs"][0]["name"] = data["sentence"] = "changed"
    return [blocks.Words("w")]


def odd(row):
    if row["run"] == 0:
        raise ValueError("not the first run")
    return [blocks.Words("another run")]


@pytest.fixture
def panel():
    def make(function, place="overview", **options):
        title = f"About {function}"
        options = {"name": function, "title": title} | options
        return panel_of(globals()[function], place, **options)

    return make


@pytest.fixture
def report(fake):
    return lambda *panels: with_panels(
        fake.make_report(fake.realistic_rows(tasks=2, trials=2)), *panels
    )


@pytest.mark.parametrize("kind", [HtmlReporter, MarkdownReporter])
def test_golden_page_of_panels(report, panel, tmp_path, kind):
    """Every kind of block, in the overview, in samples and on a page of its own.

    A panel that raises costs only itself, and the page says so.
    """
    panels = [panel(name) for name in ("every_kind", "cells", "nothing", "broken")]
    made = report(
        *panels,
        *[panel(name, "sample") for name in ("of_sample", "odd")],
        *[panel(name, "page", name=f"page_{name}") for name in ("every_kind", "broken")],
    )
    for path in kind().write(made, tmp_path):
        text = path.read_text(encoding="utf-8")
        assert "<b onclick" not in text
        check_golden_file(f"panels_{path.name}", text)


def test_golden_page_of_a_comparison(report, panel, tmp_path):
    """Differences on an axis around zero, names that are escaped, panels of comparisons."""
    panels = [panel("of_comparison", "compare"), panel("broken", "compare")]
    made = report(*panels, panel("every_kind", "page"))
    comparison = copy.deepcopy(DATA["comparison"])
    (path,) = HtmlReporter().write_comparison(comparison, made, tmp_path)
    text = path.read_text(encoding="utf-8")
    check_golden_file("comparison.html", text)
    page = markdown_page(comparison, made.shared["panels"])
    check_golden_file("comparison.md", page)


def test_a_panel_that_cannot_be_loaded_costs_only_itself(report, html):
    offered = (Component(kind="panel", name="x", target="no_such_module:Panel", summary=""),)
    missing = attrs.evolve(report(), shared={}, registry=Registry([plugin_of(*offered)]))
    html(missing)
    notice = "panel 'x' of plugin mine is left out: PluginError: panel 'x' of plugin mine"
    first_warning = missing.warnings[0]
    assert first_warning.startswith(notice)
    assert "cannot be loaded: ModuleNotFoundError" in missing.warnings[0]


@pytest.mark.parametrize(
    "block",
    [
        blocks.Matrix(["a"], ["b"], [[1, 2]]),
        blocks.Matrix(["a", "b"], ["b"], [[1]]),
        blocks.Table(["a"], {"r": []}),
        blocks.Interval([], low=1, high=1),
        blocks.Graph([NODE("a"), NODE("a")]),
        blocks.Distribution({}, edges=[1, 0]),
    ],
    ids=lambda block: type(block).__name__,
)
def test_parts_that_do_not_fit_are_refused(block):
    with pytest.raises(ValueError, match=r".+"):
        list(draw_block(block))


@pytest.mark.parametrize("place", ["overview", "page", "sample"])
def test_a_panel_that_raises_no_exception_costs_only_itself(report, panel, html, place):
    fake = panel("bare", place)
    made = report(fake, panel("every_kind"))
    expected = html(made).values("id")
    assert "panel-mine-every_kind" in expected
    warning_count = len(made.warnings)
    assert warning_count == 1
    first_warning = made.warnings[0]
    assert first_warning.startswith("panel 'bare' of plugin mine is left out")
    assert "Bare: mine alone (placed.py:" in made.warnings[0]
    with pytest.raises(KeyboardInterrupt):
        html(report(panel("stopped", place)))


def test_a_panel_cannot_change_the_run(report, panel, html):
    fake = panel("meddling")
    made = report(fake)
    before = dumps([made.summary, made.header])
    page = html(made)
    text = dumps([made.summary, made.header])
    assert text == before
    assert made.warnings == []
    expected_text = f"index {id(index_of(made))}"
    assert expected_text in page.text


def test_a_panel_cannot_change_a_comparison(report, panel, tmp_path):
    data = copy.deepcopy(DATA["comparison"])
    (path,) = HtmlReporter().write_comparison(
        data, report(panel("meddling_comparison", "compare")), tmp_path
    )
    assert data == DATA["comparison"]
    text = path.read_text(encoding="utf-8")
    assert ">changed" not in text


def test_pages_written_again_say_the_same(report, panel, tmp_path):
    pages = []
    fake = panel("broken")
    made = report(fake, panel("odd", "sample"))
    for _ in range(2):
        HtmlReporter().write(made, tmp_path)
        MarkdownReporter().write(made, tmp_path)
        contents = [(tmp_path / name).read_bytes() for name in ("report.html", "report.md")]
        pages.append(contents)
        warnings = made.summary["warnings"]
        summary = {
            **made.summary,
            "warnings": [*warnings, *dict.fromkeys(made.warnings)],
        }
        made = attrs.evolve(made, summary=summary, warnings=[])
    assert pages[0] == pages[1]


@pytest.mark.parametrize(("wrong", "message"), DATA["a_wrong_panel_is_refused_where_it_is_written"])
def test_a_wrong_panel_is_refused_where_it_is_written(wrong, message):
    with pytest.raises(PluginError, match=message):
        panel_of(nothing, **wrong)


def test_a_theme_colours_the_page_and_nothing_else(report, html, tmp_path):
    file = tmp_path / "theme.yaml"
    file.write_text(
        "{accent: '#123456', dark: {accent: 'rgb(1 2 3 / 50%)'}, sans: '\"My Font\", serif'}"
    )
    page = html(report(), theme=file)
    assert ':root { --accent: #123456; --sans: "My Font", serif; }' in page.html
    assert "--accent: rgb(1 2 3 / 50%);" in page.html
    assert html(report(), theme={"accent": "red"}).html != html(report()).html


@pytest.mark.parametrize("theme", DATA["a_theme_cannot_break_out"])
def test_a_theme_cannot_break_out(theme):
    with pytest.raises(ValueError, match="theme: "):
        HtmlReporter(theme=theme)


@pytest.mark.parametrize(
    "text", ["*hush", "!hush x", "hush: 1", "accent: 1 hush", "accent: {hush: 1}", "- hush", "hush"]
)
def test_nothing_of_the_file_of_a_theme_is_said(tmp_path, text):
    theme_path = tmp_path / "theme.yaml"
    theme_path.write_text(text)
    with pytest.raises(ValueError, match="theme: ") as caught:
        HtmlReporter(theme=tmp_path / "theme.yaml")
    assert "hush" not in str(caught.value)


def test_blocks_of_the_page_are_replaced_by_a_folder(report, tmp_path, html, markdown):
    folder = tmp_path / "house"
    folder.mkdir()
    base = "{% extends 'gradestack/report.html' %}"
    names = DATA["blocks_of_the_page"]
    report_path = folder / "report.html"
    report_path.write_text(
        base
        + "".join(
            f"{{% block {name} %}}{{{{ super() }}}}<!--{name}-->{{% endblock %}}" for name in names
        )
    )
    style_path = folder / "style.css"
    style_path.write_text(".card { border: 0 }")
    (folder / "report.md").write_text("{% macro head() %}# Mine {{ view.name|md }}{% endmacro %}")
    page = html(report(), templates=folder)
    before = html(report())
    assert [name for name in names if f"<!--{name}-->" not in page.html] == []
    assert ".card { border: 0 }" in page.html
    assert before.text in page.text
    text = markdown(report(), templates=folder)
    assert text.startswith("# Mine ")
    assert "<summary>Graders</summary>" in text


@pytest.mark.parametrize("template", DATA["templates_of_a_suite_run_no_code"])
def test_templates_of_a_suite_run_no_code(report, tmp_path, template):
    folder = tmp_path / "house"
    folder.mkdir()
    secret_path = tmp_path / "secret.html"
    secret_path.write_text("secret")
    (folder / "report.html").write_text(template)
    with pytest.raises(ConfigError, match=r"templates: .*report\.html"):
        list(HtmlReporter(templates=folder).write(report(), tmp_path))
    report_path = tmp_path / "report.html"
    assert not report_path.exists()


@pytest.mark.parametrize(("file", "template", "message"), DATA["wrong_templates_of_a_suite"])
def test_a_wrong_template_of_a_suite_is_told_with_its_line(
    report, tmp_path, file, template, message
):
    folder = tmp_path / "house"
    folder.mkdir()
    (folder / file).write_text(template)
    kind = MarkdownReporter if file.endswith(".md") else HtmlReporter
    with pytest.raises(ConfigError) as caught:
        list(kind(templates=folder).write(report(), tmp_path))
    assert str(caught.value).startswith(f"templates: house/{file}:{message}")


def test_a_folder_cannot_begin_the_page_in_another_way(report, tmp_path):
    begin_path = tmp_path / "_begin.html"
    begin_path.write_text("<!doctype html>\n<html lang='en'>\n<head>\n")
    with pytest.raises(ConfigError, match="put nothing before that"):
        list(HtmlReporter(templates=tmp_path).write(report(), tmp_path))
    report_path = tmp_path / "report.html"
    assert not report_path.exists()


def test_links_in_a_folder_lead_nowhere(report, tmp_path):
    folder = tmp_path / "house"
    folder.mkdir()
    secret_path = tmp_path / "secret.html"
    secret_path.write_text("secret")
    link_path = folder / "link.html"
    link_path.symlink_to(tmp_path / "secret.html")
    banner_path = folder / "_banner.html"
    banner_path.write_text("{% include 'link.html' %}")
    with pytest.raises(ConfigError, match=r"link\.html"):
        list(HtmlReporter(templates=folder).write(report(), tmp_path))
    (folder / "_banner.html").unlink()
    style_path = folder / "style.css"
    style_path.symlink_to(tmp_path / "secret.html")
    with pytest.raises(ValueError, match="leads out of its folder"):
        list(HtmlReporter(templates=folder).write(report(), tmp_path))


def test_no_script_or_style_of_a_folder_is_taken_for_ours(report, tmp_path, html):
    report_path = tmp_path / "report.js"
    report_path.write_text("alert(1)")
    (tmp_path / "report.css").write_text("/* theirs */")
    page = html(report(), templates=tmp_path)
    assert "alert(1)" not in page.html
    assert "/* theirs */" not in page.html
    style_path = tmp_path / "style.css"
    style_path.write_text("</style>")
    with pytest.raises(ValueError, match=r"style\.css must hold no <"):
        html(report(), templates=tmp_path)
    with pytest.raises(ValueError, match=r"templates: .*gone is no directory"):
        HtmlReporter(templates=tmp_path / "gone")


def test_the_kit_accepts_sound_panels(report, panel):
    for made in (panel("every_kind"), panel("every_kind", "page"), panel("of_sample", "sample")):
        testing.check_panel(made.panel, report())
    made = panel("of_comparison", "compare")
    testing.check_panel(made.panel, report(), comparison=DATA["comparison"])
    with pytest.raises(AssertionError, match="hand over the content of one"):
        testing.check_panel(made.panel, report())


CALLS = []


def counting(_):
    CALLS.append(1)
    call_count = str(len(CALLS))
    return [blocks.Words(call_count)]


def changing(report):
    report.summary["suite"] = "mine"
    return [blocks.Words("w")]


@pytest.mark.parametrize(("function", "message"), DATA["the_kit_finds_what_is_wrong"])
def test_the_kit_finds_what_is_wrong(report, panel, function, message):
    with pytest.raises((AssertionError, KeyError), match=message):
        testing.check_panel(panel(function).panel, report())


def test_a_panel_of_an_earlier_contract_is_refused_with_todays_words():
    with pytest.raises(PluginError, match=r"panel Old is a class, .* under @blocks.panel\(TITLE"):

        class Old(blocks.Panel):
            pass


@pytest.mark.parametrize(("strict", "broken"), [(True, {"panels": "left out"}), (False, None)])
def test_a_panel_that_is_left_out_breaks_a_strict_run(strict, broken):
    pages = Pages(warnings=["left out"])
    checked = with_broken_pages({"warnings": []}, pages, strict=strict)
    assert checked.get("broken") == broken
    assert checked["warnings"] == ["left out"]
