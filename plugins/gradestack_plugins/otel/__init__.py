"""OpenTelemetry: traces of agents in every dialect of attributes, and grades as
evaluation events.
"""

from gradestack import Component, hookimpl

_TABLE = """
reader otel .reader:Traces OpenTelemetry traces: OTLP JSON, Tempo, Jaeger; GenAI, OpenInference,
    Traceloop, ADK
reader mlflow .mlflow:MlflowTraces MLflow traces, with their feedback and expectations
exporter otel_evaluation .exporter:OtelEvaluation grades as gen_ai.evaluation.result events: OTLP
    JSON Lines, beside the
    spans they judge
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))
