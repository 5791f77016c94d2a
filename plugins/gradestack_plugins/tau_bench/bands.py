"""Score bands: words for partial scores. For interpretation only; no figure is computed from them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs


@attrs.frozen
class Band:
    """A range of partial scores, its lower bound included."""

    lower: float
    upper: float
    """Excluded, except that the topmost band is the single value 1.0 (and whatever lies above)."""
    label: str
    meaning: str


BANDS: tuple[Band, ...] = (
    Band(1.0, 1.0, "perfect", "every expected call was made with the expected arguments"),
    Band(0.9, 1.0, "near miss", "the right tools, a minor difference in the arguments"),
    Band(0.4, 0.9, "partial success", "right tools with wrong arguments, or some of several expected calls missing"),
    Band(0.0, 0.4, "wrong approach", "most of the expected tools were not called"),
)
"""Best first. With several expected calls the words are a rule of thumb: one call right and three missing is 0.25."""


def described(counts: Sequence[int]) -> list[dict[str, float | int | str]]:
    """Return the bands as JSON, each with the number of samples in it."""
    return [
        {
            "lower": band.lower,
            "upper": band.upper,
            "text": f"{band.label}: {band.meaning}",
            "samples": count,
        }
        for band, count in zip(BANDS, counts, strict=True)
    ]


_LOWERS = tuple(band.lower for band in BANDS)


def band_index(score: float) -> int:
    """Return the index in :data:`BANDS` of the band a score falls in; scores below 0 count as the lowest band."""
    for index, lower in enumerate(_LOWERS):
        if score >= lower:
            return index
    return len(BANDS) - 1
