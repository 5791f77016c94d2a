"""OpenTelemetry: traces of agents in every dialect of attributes, and grades as evaluation events."""

from __future__ import annotations

from gradestack import Component, hookimpl


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return readers and exporter."""
    return (
        Component(
            kind="reader",
            name="otel",
            target="gradestack_plugins.otel.reader:Traces",
            summary="OpenTelemetry traces: OTLP JSON, Tempo, Jaeger; GenAI, OpenInference, Traceloop, ADK",
        ),
        Component(
            kind="reader",
            name="mlflow",
            target="gradestack_plugins.otel.mlflow:MlflowTraces",
            summary="MLflow traces, with their feedback and expectations",
        ),
        Component(
            kind="exporter",
            name="otel_evaluation",
            target="gradestack_plugins.otel.exporter:OtelEvaluation",
            summary="grades as gen_ai.evaluation.result events: OTLP JSON Lines, beside the spans they judge",
        ),
    )
