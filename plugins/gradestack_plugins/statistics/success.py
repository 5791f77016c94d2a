"""The scores that are successes."""


def is_success(score: float, tolerance: float) -> bool:
    """Return whether a score is within ``tolerance`` of 1, both bounds included."""
    return 1.0 - tolerance <= score <= 1.0 + tolerance
