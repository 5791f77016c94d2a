"""OpenTelemetry: grades as evaluation events."""

from __future__ import annotations

from gradestack import Component, hookimpl


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the exporter."""
    return (
        Component(
            kind="exporter",
            name="otel_evaluation",
            target="gradestack_plugins.otel.exporter:OtelEvaluation",
            summary="grades as gen_ai.evaluation.result events: OTLP JSON Lines, beside the spans they judge",
        ),
    )
