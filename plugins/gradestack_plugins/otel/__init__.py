"""OpenTelemetry: traces of agents in every dialect of attributes, and grades as evaluation events."""

from __future__ import annotations

from gradestack import Component, hookimpl

_TABLE = """
reader otel .reader:Traces OpenTelemetry traces: OTLP JSON, Tempo, Jaeger; GenAI, OpenInference, Traceloop, ADK
reader mlflow .mlflow:MlflowTraces MLflow traces, with their feedback and expectations
exporter otel_evaluation .exporter:OtelEvaluation grades as gen_ai.evaluation.result events: OTLP JSON Lines, beside the
    spans they judge
"""


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return readers and exporter."""
    return Component.table(__name__, _TABLE)
