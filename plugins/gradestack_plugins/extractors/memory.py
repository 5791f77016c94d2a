"""Extractor of an agent's memory."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from typing_extensions import override

from gradestack import JSON, Extractor, Sample

PLACES: tuple[tuple[str, ...], ...] = (
    ("memory_blocks",),
    ("agent_state", "memory", "blocks"),
    ("agent_state", "blocks"),
)
"""Where ``Sample.recorded`` may hold memory: a list of ``{label, value}`` or an object, label -> value."""


@attrs.frozen(kw_only=True)
class MemoryBlock(Extractor):
    """Takes a memory block of the agent's final state, "" when the agent has no block of that label.

    The state is not part of a recorded result as letta-evals writes it: it was read from the live agent. So extraction
    fails, sample by sample, unless the recording carries the memory: ``memory_blocks`` or ``agent_state`` in its
    ``recorded`` values, as a list of ``{"label": ..., "value": ...}`` or as an object label -> value.

    Attributes:
        block_label: Label of the block.
    """

    block_label: str

    @override
    def extract(self, sample: Sample) -> str:
        """Return the block's text."""
        for place in PLACES:
            blocks = _at(sample.recorded, place)
            if isinstance(blocks, list | tuple):
                return _in_list(blocks, self.block_label)
            if isinstance(blocks, Mapping):
                value = blocks.get(self.block_label)
                return value if isinstance(value, str) else ""
        raise LookupError(
            f"memory block {self.block_label!r} needs the agent's state, which this recording does not hold; "
            "record it as memory_blocks or extract from messages instead"
        )


def _at(value: JSON, place: tuple[str, ...]) -> JSON:
    for step in place:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _in_list(blocks: list[JSON] | tuple[JSON, ...], label: str) -> str:
    for block in blocks:
        if isinstance(block, Mapping) and block.get("label") == label:
            value = block.get("value")
            return value if isinstance(value, str) else ""
    return ""
