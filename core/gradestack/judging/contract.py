"""The contract of graders whose verdict is a model's: what to ask, and what to make of replies. Neither opens a socket.

`gradestack judge` sends the requests whose replies are not on record; `run` and `grade` read the record alone.
"""

from __future__ import annotations

import abc
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import msgspec
from typing_extensions import override

from gradestack.api import Grader
from gradestack.jsonio.values import dumps
from gradestack.judging.journal import Journal, Reply
from gradestack.model import JSON, Grade, Sample

_canonical = msgspec.json.Encoder(order="sorted").encode


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a model: all of it, and nothing of who answers at which address or in which form."""

    model: str
    messages: tuple[Mapping[str, str], ...]
    """``role`` and ``content`` each."""
    schema: Mapping[str, JSON]
    """JSON Schema of the reply."""
    params: Mapping[str, JSON] = msgspec.field(default_factory=dict)
    """Sent beside it: ``temperature``, ``max_tokens`` …"""
    identity: str | None = None
    """Tells apart what one name of a model stood for at two times."""

    @property
    def key(self) -> str:
        """SHA-256 of its canonical JSON (sorted keys, no spaces, UTF-8) with ``v``: 1."""
        asked = {"v": 1, **msgspec.structs.asdict(self)}
        try:
            text = _canonical(asked)
        except UnicodeEncodeError:  # lone surrogates
            text = dumps(asked).encode()
        return hashlib.sha256(text).hexdigest()

    def body(self, vote: int, mode: str) -> dict[str, Any]:
        """Return what is sent, in a form of reply; ``seed`` is another one for each vote."""
        body: dict[str, Any] = {"model": self.model, "messages": list(self.messages), **self.params}
        if isinstance(body.get("seed"), int):
            body["seed"] += vote
        if mode == "json_schema":
            body["response_format"] = {"type": mode, mode: {"name": "verdict", "strict": True, "schema": self.schema}}
        elif mode == "json_object":
            body["response_format"] = {"type": mode}
        return body


def most_tokens(request: Request) -> tuple[int, int]:
    """Return how many tokens a request may take at most, in and out: one for three bytes is more than any has."""
    size = sum(len(each["content"].encode(errors="replace")) for each in request.messages)
    longest: Any = request.params.get("max_tokens") or 0
    return -(-size // 3), longest


def cost(price: Mapping[str, float] | None, tokens_in: int, tokens_out: int) -> float:
    """Return what tokens cost, in US dollars; 0 without a price."""
    return (tokens_in * price["input"] + tokens_out * price["output"]) / 1e6 if price else 0.0


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a grader's file would have its requests sent; counts only as far as the command line confirms it."""

    base_url: str | None = None
    api_key_env: str | None = None
    headers_env: Mapping[str, str] = msgspec.field(default_factory=dict)
    price: Mapping[str, float] | None = None
    """US dollars for a million tokens: ``input`` and ``output``."""


def _named(_: Judged, __: Any, path: Path | None) -> None:
    if path is None:
        raise ValueError(
            "`judgements` is missing: the file in which `gradestack judge` keeps what a model says; "
            "to use a grade that the recording holds, write `kind: recorded` with `metric: KEY`"
        )


@attrs.frozen(kw_only=True)
class Judged(Grader):
    """Base of graders whose verdict is a model's: ``requests`` and ``verdict``, both pure."""

    judgements: Path = attrs.field(default=None, validator=_named)
    """The journal: replies by the key of their request."""
    journal: Journal = attrs.field(init=False, eq=False, repr=False)

    @journal.default
    def _journal(self) -> Journal:
        return Journal(self.judgements or Path())

    @abc.abstractmethod
    def requests(self, sample: Sample) -> Sequence[Request]:
        """Return what to ask about a sample; the same request again is another vote. None where it does not apply."""

    @abc.abstractmethod
    def verdict(self, sample: Sample, replies: Sequence[Reply | None]) -> Grade:
        """Return the grade by the replies to ``requests``, in their order; None is not on record.

        Never raises, whatever a reply says.
        """

    def problem(self, request: Request, reply: Reply) -> str | None:
        """Return the code of what is wrong with one reply, None for nothing.

        ``malformed`` and ``wrong_check`` are asked again at once, in the next form of reply.
        """
        return None

    @property
    def endpoint(self) -> Endpoint:
        """Where requests would be sent."""
        return Endpoint()

    @override
    def grade(self, sample: Sample) -> Grade:
        return self.verdict(sample, self.journal.replies([each.key for each in self.requests(sample)]))
