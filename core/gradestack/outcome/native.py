"""Native artefacts: pieces of all shards joined, and every exporter given the figures of its input."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from gradestack.api import Exporter, ExportSummary, GraderSummary, Input
from gradestack.errors import error_text, storage_failed
from gradestack.grading.merging import Merging
from gradestack.grading.metrics import in_all
from gradestack.grading.plan import named_graders
from gradestack.interpreter import step
from gradestack.suites.spec import Suite

_CHUNK = 1 << 20
Chunks = Mapping[tuple[str, str], list[Path]]


def write_native(suite: Suite, run: Merging, chunks: Chunks, place: Path) -> None:
    """Join native parts and let every exporter finish, once per input."""
    merged = run.merged
    several = len(suite.inputs.data) > 1
    for stage in suite.exporters:
        exporter: Exporter = stage.component
        for given in suite.inputs.data:
            if not merged.table.of_input(given.name) or stage.name in merged.broken:
                continue
            out = place / "native" / (given.name if several else "")
            try:
                with step(f"exporter {stage.name} ({stage.distribution}): finish"):
                    _write(suite, run, chunks, stage.name, exporter, given, out)
            except (Exception, SystemExit) as error:  # a native file is a convenience; the run is not lost for it
                if storage_failed(error):
                    raise
                merged.broken.setdefault(stage.name, error_text(error).replace(f"{place}/", ""))


def _write(suite: Suite, run: Merging, chunks: Chunks, name: str, exporter: Exporter, given: Input, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    rows = run.merged.table.of_input(given.name)
    aggregates, counts = run.figures(rows), run.counts(rows)
    summary = ExportSummary(
        input=given,
        reader=suite.reader.component,
        profile=suite.profile,
        dataset=suite.inputs.dataset,
        max_samples=suite.max_samples or None,
        graders={
            name: GraderSummary(
                key=stage.key,
                grader=stage.component,
                states=in_all(counts[stage.key].values()).states,
                aggregates=aggregates[stage.key],
            )
            for name, stage in named_graders(exporter, suite.graders).items()
        },
    )
    for (owner, artefact), parts in sorted(chunks.items()):
        exporter_name, _, file_name = artefact.partition("/")
        if (owner, exporter_name) == (given.name, name):
            head, tail = exporter.frame(file_name, summary)
            with (out / Path(file_name).name).open("wb") as to:
                to.write(head.encode("utf-8", "surrogatepass"))
                for number, part in enumerate(parts):
                    to.write(exporter.separator.encode() if number else b"")
                    with part.open("rb") as file:
                        shutil.copyfileobj(file, to, _CHUNK)
                to.write(tail.encode("utf-8", "surrogatepass"))
    for file_name, text in exporter.finish(summary).items():
        (out / Path(file_name).name).write_text(text, encoding="utf-8", newline="", errors="surrogatepass")
