import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(monkeypatch):
    benchmarks_folder = ROOT / "benchmarks"
    monkeypatch.syspath_prepend(str(benchmarks_folder))
    return importlib.import_module


@pytest.fixture
def workload(bench):
    return bench("workload")
