"""A made-up run, and a strict reader of the pages made from it."""

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gradestack_plugins.pages.html import HtmlReporter
from gradestack_plugins.pages.markdown import MarkdownReporter

_VOID = {"meta", "link", "input", "br", "rect", "line", "circle", "wbr"}


class Page(HTMLParser):
    """A parsed page: its tags in order, the text outside script and style, and whether every tag
    was closed.
    """

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html = html
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.words.append(data)

    @property
    def text(self) -> str:
        """All visible text, white space collapsed."""
        return " ".join(" ".join(self.words).split())

    def count(self, tag: str, css: str = "") -> int:
        """Number of elements of a tag that have a class."""
        return sum(
            name == tag and (not css or css in (attributes.get("class") or "").split())
            for name, attributes in self.tags
        )

    def values(self, attribute: str) -> list[str]:
        """Every value of an attribute."""
        return [
            value for _, attributes in self.tags if (value := attributes.get(attribute)) is not None
        ]

    def check(self) -> None:
        """Assert what holds for every page.

        Closed tags, unique ids, links that lead somewhere, nothing active.
        """
        assert self.open == []
        counts = Counter(self.values("id")).items()
        repeated = [name for name, number in counts if number > 1]
        assert repeated == []
        ids = set(self.values("id"))
        links = [
            link
            for link in self.values("href")
            if not re.match(r"#q=|#sample=|#view=|data:,|#s\d+$", link)
        ]
        assert [link for link in links if link[1:] not in ids] == []
        labels = [name for value in self.values("aria-labelledby") for name in value.split()]
        assert set(labels) <= ids
        names = {name for _, attributes in self.tags for name in attributes}
        assert not {name for name in names if name.startswith("on")} | (
            names & {"style", "src", "srcset", "action"}
        )
        scripts = []
        for tag, attributes in self.tags:
            if tag == "script":
                scripts.append(attributes.get("type"))
        assert scripts.count(None) == 2
        assert set(scripts) <= {None, "application/json"}
        tags = {tag for tag, _ in self.tags}
        assert not tags & {"img", "iframe", "object", "embed", "base"}


@pytest.fixture
def html(tmp_path: Path) -> Any:
    def write(report: Any, **options: Any) -> Page:
        html_reporter = HtmlReporter(**options)
        paths = list(html_reporter.write(report, tmp_path))
        report_path = tmp_path / "report.html"
        assert paths == [report_path]
        page = Page(paths[0].read_bytes().decode("utf-8"))
        page.check()
        return page

    return write


@pytest.fixture
def markdown(tmp_path: Path) -> Any:
    def write(report: Any, **options: Any) -> str:
        markdown_reporter = MarkdownReporter(**options)
        paths = list(markdown_reporter.write(report, tmp_path))
        report_path = tmp_path / "report.md"
        assert paths == [report_path]
        return paths[0].read_bytes().decode("utf-8")

    return write
