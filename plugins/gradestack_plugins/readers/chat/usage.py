"""Tokens of a request as the APIs and libraries record them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from gradestack import Usage
from gradestack.jsonio import as_amount

_INPUT: Final = (
    "prompt_tokens",
    "input_tokens",
    "promptTokenCount",
    "prompt_token_count",
    "inputTokens",
    "promptTokens",
    "request_tokens",
    "prompt",
    "input",
    "tokens_sent",
)
_OUTPUT: Final = (
    *("completion_tokens", "output_tokens", "candidatesTokenCount", "candidates_token_count"),
    *("outputTokens", "completionTokens", "response_tokens"),
    *("completion", "output", "tokens_received"),
)
_READ: Final = (
    *("cached_tokens", "cache_read", "cache_read_input_tokens", "cachedContentTokenCount"),
    *("cached_content_token_count", "input_cached_tokens", "cachedInputTokens"),
    *("cache_read_tokens", "cacheReadInputTokens", "cacheReadTokens", "input_tokens_cache_read"),
)
_WRITTEN: Final = (
    "cache_write_tokens",
    "cache_creation",
    "cache_creation_input_tokens",
    "cacheWriteInputTokens",
    "cacheWriteTokens",
    "input_tokens_cache_write",
)
_APART: Final = frozenset(
    {
        *("cache_read_input_tokens", "cache_creation_input_tokens"),
        *("cacheReadInputTokens", "cacheWriteInputTokens"),
        *(_READ[-1], _WRITTEN[-1]),
    }
)
"""Keys of Anthropic's API, of Bedrock's and of inspect_ai, beside which the input tokens leave out
what a cache has.
"""
_MEASURED: Final = {
    **{name: name for name in ("cost_usd", "seconds", "first_token_seconds")},
    "instance_cost": "cost_usd",
}
"""Keys of measures, and the field of each."""
_THOUGHT: Final = (
    *(
        "reasoning_tokens",
        "reasoningTokens",
        "thinking_tokens",
        "reasoning",
        "thoughtsTokenCount",
        "thoughts_token_count",
    ),
    "output_reasoning_tokens",
)


def count_of(value: Any) -> int | None:
    """Return a whole number of at least 0 as it is, None for anything else."""
    return value if type(value) is int and as_amount(value) is not None else None


def _first(names: Iterable[str], *places: Mapping[str, Any]) -> int | None:
    for place in filter(None, places):
        for name in names:
            if name in place and (found := count_of(place[name])) is not None:
                return found
    return None


def usage_of(raw: Any) -> Usage | None:
    """Return the usage of one request, None where none is recorded in a form that is known.

    Input tokens hold those read from and written to a cache, output tokens those of reasoning: they
    are added where they are kept apart, as by Anthropic and inspect_ai the former, by Gemini the
    latter, and by Langfuse both, whose total says so.
    """
    if not isinstance(raw, dict):
        return None
    if isinstance(raw.get("tokens"), dict):
        raw = _without_levels(raw)
    asked, said = (next(filter(raw.__contains__, names), "") for names in (_INPUT, _OUTPUT))
    into, out = count_of(raw.get(asked)), count_of(raw.get(said))
    if into is None and out is None:
        return None
    of_input = _details(raw, asked)
    read, written = _first(_READ, of_input, raw), _first(_WRITTEN, of_input, raw)
    thought = _first(_THOUGHT, _details(raw, said), raw)
    if asked in {"input_tokens", "inputTokens"} and _APART & raw.keys():
        into = None if into is None else into + (read or 0) + (written or 0)
    if asked == "input" and raw.get("total") == sum(
        filter(None, (into, out, read, written, thought))
    ):
        into = None if into is None else into + (read or 0) + (written or 0)
        out = None if out is None else out + (thought or 0)
    if said in {"candidatesTokenCount", "candidates_token_count"}:
        out = None if out is None else out + (thought or 0)
    measured = {
        name: raw[key]
        for key, name in _MEASURED.items()
        if type(raw.get(key)) in {int, float} and raw[key] >= 0
    }
    requests = count_of(raw.get("api_calls"))
    return Usage(
        requests=1 if requests is None else requests,
        input_tokens=into,
        cached_input_tokens=read,
        cache_write_tokens=written,
        output_tokens=out,
        reasoning_tokens=thought,
        **measured,
    )


def _without_levels(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics of Cline's messages (``tokens``, and ``cost`` in USD) as one object."""
    tokens = metrics["tokens"]
    measured = {"cost_usd": metrics["cost"]} if "cost" in metrics else {}
    cached = {"cached_tokens": tokens["cached"]} if "cached" in tokens else {}
    return {**tokens, **cached, **measured}


def _details(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return what stands beside a count.

    ``input_tokens_details``, ``input_token_details``, ``prompt_details``.
    """
    for key in (f"{name}_details", f"{name.removesuffix('s')}_details"):
        if isinstance(raw.get(key), dict):
            return raw[key]  # type: ignore[no-any-return]
    return {}


def added(usages: Iterable[Usage | None]) -> Usage | None:
    """Return the usage of several requests together; what none of them records stays None."""
    given = [each for each in usages if each is not None]
    if len(given) < 2:
        return given[0] if given else None
    sums = {}
    columns = zip(*map(msgspec.structs.astuple, given), strict=True)
    for name, column in zip(Usage.__struct_fields__, columns, strict=True):
        if (
            held := [value for value in column if value is not None]
        ) and name != "first_token_seconds":
            sums[name] = sum(held)
    return Usage(**sums)


def said_usage(given: Sequence[Any]) -> dict[str, Any]:
    """Return the fields of a sample that hold what the answers of a conversation say of their
    usage.
    """
    return {
        "usage": added(map(usage_of, given)),
        "agent_usage": given[0] if len(given) == 1 else given,
    }
