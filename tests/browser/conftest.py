"""A headless Chromium, where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gradestack
from benchmarks.chromium import Tab, browser, chromium


@pytest.fixture(scope="session")
def tab() -> Iterator[Tab]:
    running_browser = browser()
    if running_browser is None:
        pytest.skip("no Chromium here; install one or name it in GRADESTACK_CHROMIUM")
    with chromium(running_browser) as opened:
        yield opened


@pytest.fixture(scope="session")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Give the page of an example's run, which is made once."""
    pages: dict[str, Path] = {}

    def page(family: str) -> Path:
        if family not in pages:
            file_path = Path(__file__)
            examples_folder = file_path.parents[2] / "examples"
            suite = examples_folder / family / "suite.yaml"
            out = tmp_path_factory.mktemp(family) / "run"
            path = gradestack.run(suite, output=out, engine="serial").path
            pages[family] = path / "report.html"
        return pages[family]

    return page
