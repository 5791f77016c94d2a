"""Prices of models' tokens, from a file the user names: none are known here."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import attrs

from gradestack import Usage, suggest, yaml_data
from gradestack.jsonio import as_number, compact

_KEYS: Final = ("input", "cached_input", "cache_write", "output")
_MILLION: Final = 1_000_000


@attrs.frozen(kw_only=True)
class Price:
    """Dollars for a million tokens; cached and written ones cost what other input costs where nothing else is said."""

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None

    def cost(self, usage: Usage) -> float | None:
        """Return what a run cost in dollars; None where its tokens are not recorded, or cannot be what was used.

            cost = sum of tokens * price, over cached, written and other input, and output

        Exact, rounded once. Cached and written tokens that are not recorded are taken for other input.
        """
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached, written = usage.cached_input_tokens or 0, usage.cache_write_tokens or 0
        others = usage.input_tokens - cached - written
        if min(others, cached, written, usage.output_tokens) < 0:
            return None
        total = others * Fraction(self.input) + usage.output_tokens * Fraction(self.output)
        total += cached * Fraction(self.input if self.cached_input is None else self.cached_input)
        total += written * Fraction(self.input if self.cache_write is None else self.cache_write)
        try:
            return float(total / _MILLION)
        except OverflowError:
            return None


def read_prices(path: Path) -> dict[str, Price]:
    """Return the prices of a YAML or JSON file, by model.

    Raises:
        ValueError: It cannot be read, or is not of the form; the message says where.
    """
    try:
        data = yaml_data(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: neither YAML nor JSON: {error}") from error
    except Exception as error:
        told = " ".join(str(error).split())
        raise ValueError(f"{path}: neither YAML nor JSON: {told}") from error
    models = data.get("models") if isinstance(data, Mapping) else None
    if not isinstance(models, Mapping) or not models or set(data) != {"models"}:
        form = "models: {NAME: {input: 2.5, output: 10}}"
        raise ValueError(f"{path}: expected prices in dollars for a million tokens, as {form} and nothing else")
    return {str(name): _price(each, f"{path}: models.{name}") for name, each in models.items()}


def _price(given: Any, where: str) -> Price:
    if not isinstance(given, Mapping):
        raise ValueError(f"{where}: expected {', '.join(_KEYS)}, found {compact(given)[:60]}")  # noqa: TRY004
    found: dict[str, float] = {}
    for key, value in given.items():
        if key not in _KEYS:
            hint = suggest(str(key), _KEYS) or f"; there are {', '.join(_KEYS)}"
            raise ValueError(f"{where}: unknown key {key!r}{hint}")
        number = as_number(value)
        if number is None or number < 0:
            raise ValueError(f"{where}.{key}: expected a number of dollars of at least 0, found {compact(value)[:60]}")
        found[key] = number
    if missing := [key for key in ("input", "output") if key not in found]:
        raise ValueError(f"{where}: {' and '.join(missing)} missing")
    return Price(**found)
