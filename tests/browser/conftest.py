"""A headless Chromium, where there is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.chromium import Tab, browser, chromium


@pytest.fixture(scope="session")
def tab() -> Iterator[Tab]:
    found = browser()
    if found is None:
        pytest.skip("no Chromium here; install one or name it in GRADESTACK_CHROMIUM")
    with chromium(found) as opened:
        yield opened
