"""Tokens of a request as the APIs and libraries record them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from gradestack import Usage
from gradestack.jsonio import as_amount

_INPUT: Final = tuple(
    """
    prompt_tokens input_tokens promptTokenCount prompt_token_count inputTokens promptTokens
    request_tokens prompt input tokens_sent
    """.split()  # noqa: SIM905
)
_OUTPUT: Final = tuple(
    """
    completion_tokens output_tokens candidatesTokenCount candidates_token_count outputTokens
    completionTokens response_tokens completion output tokens_received
    """.split()  # noqa: SIM905
)
_CACHE_READ: Final = tuple(
    """
    cached_tokens cache_read cache_read_input_tokens cachedContentTokenCount
    cached_content_token_count input_cached_tokens cachedInputTokens cache_read_tokens
    cacheReadInputTokens cacheReadTokens input_tokens_cache_read
    """.split()  # noqa: SIM905
)
_CACHE_WRITTEN: Final = tuple(
    """
    cache_write_tokens cache_creation cache_creation_input_tokens cacheWriteInputTokens
    cacheWriteTokens input_tokens_cache_write
    """.split()  # noqa: SIM905
)
_REASONING: Final = tuple(
    """
    reasoning_tokens reasoningTokens thinking_tokens reasoning thoughtsTokenCount
    thoughts_token_count output_reasoning_tokens
    """.split()  # noqa: SIM905
)
_PARTS: Final = frozenset((*_CACHE_READ, *_CACHE_WRITTEN, *_REASONING))
"""Keys of counts that are parts of the input or of the output."""
_WITHOUT_CACHE: Final = frozenset(
    """
    cache_read_input_tokens cache_creation_input_tokens cacheReadInputTokens cacheWriteInputTokens
    input_tokens_cache_read input_tokens_cache_write
    """.split()  # noqa: SIM905
)
"""Keys of Anthropic's API, of Bedrock's and of inspect_ai, beside which the input tokens leave out
the tokens of a cache.
"""
_WITHOUT_REASONING: Final = frozenset({"candidatesTokenCount", "candidates_token_count"})
"""Keys of output tokens, of Gemini's, that leave out the tokens of reasoning."""
_MEASURED: Final = {
    **{name: name for name in ("cost_usd", "seconds", "first_token_seconds")},
    "instance_cost": "cost_usd",
}
"""Key of a measure -> its field."""


def count_of(value: Any) -> int | None:
    """Return a whole number of at least 0 as it is, None for anything else."""
    if type(value) is int and as_amount(value) is not None:
        return value
    return None


def _first_count(names: Iterable[str], *holders: Mapping[str, Any]) -> int | None:
    """Return the first count under some names in objects, one object after the other."""
    for holder in holders:
        for name in filter(holder.__contains__, names) if holder else ():
            count = count_of(holder[name])
            if count is not None:
                return count
    return None


def _sum(*counts: int | None) -> int:
    return sum(filter(None, counts))


def usage_of(raw: Any) -> Usage | None:
    """Return the usage of one request, None where none is recorded in a form that is known.

    Input tokens hold those read from and written to a cache, output tokens those of reasoning. They
    are added where a format counts them separately: Anthropic and inspect_ai those of caches,
    Gemini those of reasoning, Langfuse both, whose total says so.
    """
    if not isinstance(raw, dict):
        return None
    if isinstance(raw.get("tokens"), dict):
        raw = _without_levels(raw)
    in_key = next(filter(raw.__contains__, _INPUT), "")
    out_key = next(filter(raw.__contains__, _OUTPUT), "")
    n_input = count_of(raw.get(in_key))
    n_output = count_of(raw.get(out_key))
    if n_input is None and n_output is None:
        return None
    of_input, of_output = _details(raw, in_key), _details(raw, out_key)
    read = written = reasoning = None
    if of_input or of_output or not _PARTS.isdisjoint(raw):
        read = _first_count(_CACHE_READ, of_input, raw)
        written = _first_count(_CACHE_WRITTEN, of_input, raw)
        reasoning = _first_count(_REASONING, of_output, raw)
    total = _sum(n_input, n_output, read, written, reasoning)
    is_split = in_key == "input" and raw.get("total") == total
    leaves_out_cache = in_key in {"input_tokens", "inputTokens"} and _WITHOUT_CACHE & raw.keys()
    if n_input is not None and (is_split or leaves_out_cache):
        n_input = _sum(n_input, read, written)
    if n_output is not None and (is_split or out_key in _WITHOUT_REASONING):
        n_output = _sum(n_output, reasoning)
    requests = count_of(raw.get("api_calls"))
    measures = _measures_in(raw)
    return Usage(
        requests=1 if requests is None else requests,
        input_tokens=n_input,
        cached_input_tokens=read,
        cache_write_tokens=written,
        output_tokens=n_output,
        reasoning_tokens=reasoning,
        **measures,
    )


def _measures_in(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cost and the times of a request."""
    measures = {}
    for key in filter(raw.__contains__, _MEASURED):
        value = raw[key]
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            measures[_MEASURED[key]] = value
    return measures


def _without_levels(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics of Cline's messages (``tokens``, and ``cost`` in USD) as one object."""
    tokens = dict(metrics["tokens"])
    if "cached" in tokens:
        tokens["cached_tokens"] = tokens["cached"]
    if "cost" in metrics:
        tokens["cost_usd"] = metrics["cost"]
    return tokens


def _details(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the details of a count, as ``input_tokens_details`` or ``prompt_details``."""
    for key in (f"{name}_details", f"{name.removesuffix('s')}_details"):
        if isinstance(raw.get(key), dict):
            return raw[key]  # type: ignore[no-any-return]
    return {}


def added(usages: Iterable[Usage | None]) -> Usage | None:
    """Return the usage of several requests together; amounts that none of them records are None."""
    recorded = [usage for usage in usages if usage is not None]
    if len(recorded) < 2:
        return recorded[0] if recorded else None
    sums = {}
    columns = zip(*map(msgspec.structs.astuple, recorded), strict=True)
    for name, column in zip(Usage.__struct_fields__, columns, strict=True):
        is_known = column.count(None) < len(column)
        if is_known and name != "first_token_seconds":
            sums[name] = sum([amount for amount in column if amount is not None])
    return Usage(**sums)


def said_usage(recorded: Sequence[Any]) -> dict[str, Any]:
    """Return the fields of a sample that hold the usage of the answers of a conversation."""
    usage = added(map(usage_of, recorded))
    if len(recorded) == 1:
        agent_usage = recorded[0]
    else:
        agent_usage = recorded
    return {
        "usage": usage,
        "agent_usage": agent_usage,
    }
