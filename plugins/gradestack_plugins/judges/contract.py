"""The contract of graders whose verdict is a model's: requests, and the grade by their replies.

Neither opens a socket.

`gradestack judge` sends the requests without a stored reply; `run` and `grade` read the
record alone.
"""

from __future__ import annotations

import abc
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import attrs
import msgspec
from msgspec import Meta
from typing_extensions import override

from gradestack import JSON, Fault, Grade, Grader, Sample, check_grade, compile_later
from gradestack.jsonio import dumps
from gradestack_plugins.judges.journal import Journal, Reply

_canonical = msgspec.json.Encoder(order="sorted").encode
_HIDDEN = compile_later(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
"""Characters a person does not see: control, bidi, zero-width, variation selectors, tags."""
_FENCE = compile_later(r"```\w*[ \t]*\r?\n(.*?)\r?\n?```", re.DOTALL)
_FINISHES = {"content_filter": "filtered", "length": "truncated", "tool_calls": "tool_calls"}


_ODD = (None, "", "null", "[]", '{"check": 1}', "NaN", "\ud800", "[" * 100_000, "9" * 5000)
_ODD_REPLIES = (
    *(Reply(content=text) for text in _ODD),
    Reply(finish="length"),
    Reply(finish=""),
    Reply(refusal="no"),
)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a model.

    All of it, and nothing of who answers at which address or in which form.
    """

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
        fields = {"v": 1, **msgspec.structs.asdict(self)}
        try:
            text = _canonical(fields)
        except UnicodeEncodeError:  # lone surrogates
            text = dumps(fields).encode()
        return hashlib.sha256(text).hexdigest()

    def body(self, vote: int, mode: str) -> dict[str, Any]:
        """Return the body that is sent, in a form of reply; each vote has its own ``seed``."""
        messages = list(self.messages)
        body: dict[str, Any] = {"model": self.model, "messages": messages, **self.params}
        if isinstance(body.get("seed"), int):
            body["seed"] += vote
        if mode == "json_schema":
            body["response_format"] = {
                "type": mode,
                mode: {"name": "verdict", "strict": True, "schema": self.schema},
            }
        elif mode == "json_object":
            body["response_format"] = {"type": mode}
        return body

    @property
    def most_tokens(self) -> tuple[int, int]:
        """The most tokens it may take, in and out (0: no limit).

        One for three bytes is more than any has.
        """
        sizes = [len(message["content"].encode(errors="replace")) for message in self.messages]
        max_tokens = self.params.get("max_tokens")
        longest: Any = max_tokens or 0
        return -(-sum(sizes) // 3), longest


def visible(text: str) -> str:
    """Return a text whose hidden characters are written by their number, in braces after a
    backslash and ``u``.
    """
    if text.isascii() and "\x7f" not in text:  # JSON escapes the others
        return text
    return _HIDDEN.sub(lambda hidden: f"\\u{{{ord(hidden[0]):x}}}", text)


def fault_of(code: str) -> Fault:
    """Return why there is no verdict, by the code of the reply."""
    known = {"not_judged": "no judgement is on record: `gradestack judge` asks for it"}
    message = known.get(code, f"the judge gave no verdict: {code}")
    return Fault(category="grading", code=code, message=message)


def marked(question: str, data: str) -> tuple[str, str]:
    """Return a nonce, which no data can hold as it is their hash, and data between
    marks with it.
    """
    digest = hashlib.sha256((question + data).encode(errors="replace")).hexdigest()
    nonce = digest[:16]
    return nonce, f"<<<DATA {nonce}>>>\n{data}\n<<<END {nonce}>>>\nThe data have ended."


def reply_text(reply: Reply | None) -> tuple[str, str | None]:
    """Return the text of a reply without its fence, or the code of the problem if it has none."""
    if reply is None:
        return "", "not_judged"
    if reply.refusal or reply.finish in _FINISHES:
        return "", "refused" if reply.refusal else _FINISHES[reply.finish]
    text = (reply.content or "").strip()
    fenced = _FENCE.fullmatch(text)
    return fenced[1] if fenced else text, None


def schema_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an object with exactly these properties."""
    required = [*properties]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


_Price = Annotated[float, Meta(ge=0, le=1e9)]
_Number = Annotated[int, Meta(ge=0, le=100)] | Annotated[float, Meta(ge=0, le=100)]


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a grader's file would have its requests sent.

    Counts only as far as the command line confirms it.
    """

    base_url: str | None = None
    api_key_env: str | None = None
    headers_env: dict[str, str] = {}
    price: Annotated[dict[Literal["input", "output"], _Price], Meta(min_length=2)] | None = None
    """US dollars for a million tokens."""

    def __post_init__(self) -> None:
        if re.search(r"//[^/?#]*@|[?#]", self.base_url or ""):
            problem = "a key is never written to a file"
            raise ValueError(f"base_url: {problem}; name the variable: --api-key-env NAME")
        headers_env = self.headers_env.values()
        names = (self.api_key_env or "_", *headers_env)
        if not all(name.isascii() and name.isidentifier() for name in names):
            rule = "letters, digits and _, never a key itself"
            raise ValueError(f"api_key_env and headers_env name variables: {rule}")

    def cost(self, tokens_in: int, tokens_out: int) -> float:
        """Return the cost of tokens, in US dollars; 0 without a price."""
        if not self.price:
            return 0.0
        output = self.price["output"]
        cost = tokens_in * self.price["input"] + tokens_out * output
        return cost / 1e6


class JudgeModel(Endpoint, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model that is asked, and its parameters; those that are null are not sent."""

    model: Annotated[str, Meta(pattern=r"\S")]
    identity: str | None = None
    temperature: _Number | None = 0
    top_p: _Number | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = 1024
    seed: int | None = None
    reasoning_effort: str | None = None
    votes: Annotated[int, Meta(ge=1, le=99)] = 1

    def request(self, system: str, user: str, schema: Mapping[str, JSON]) -> Request:
        """Return a request of two messages."""
        names = ("temperature", "top_p", "max_tokens", "seed", "reasoning_effort")
        params = {name: value for name in names if (value := getattr(self, name)) is not None}
        messages = ({"role": "system", "content": system}, {"role": "user", "content": user})
        return Request(
            model=self.model,
            messages=messages,
            schema=schema,
            params=params,
            identity=self.identity,
        )


def _check_judgements(of: Judged, _: Any, path: Path | None) -> None:
    """Refuse a grader without a file of judgements, unless only a part of it is judged."""
    if path is None and not isinstance(of, PartlyJudged):
        problem = (
            "`judgements` is missing: the file in which `gradestack judge` keeps what a model says"
        )
        advice = (
            "to use a grade that the recording holds, write `kind: recorded` with `metric: KEY`"
        )
        raise ValueError(f"{problem}; {advice}")


@attrs.frozen(kw_only=True, slots=False)  # beside other bases that have options
class Judged(Grader):
    """Base of graders whose verdict is a model's: ``requests`` and ``verdict``, both pure."""

    judgements: Path = attrs.field(default=None, validator=_check_judgements)
    """The journal: replies by the key of their request."""

    @cached_property
    def journal(self) -> Journal:
        """The replies on record."""
        return Journal(self.judgements or Path())

    @abc.abstractmethod
    def requests(self, sample: Sample) -> Sequence[Request]:
        """Return the requests about a sample; the same request again is another vote.

        None where it does not apply.
        """

    @abc.abstractmethod
    def verdict(self, sample: Sample, replies: Sequence[Reply | None]) -> Grade:
        """Return the grade by the replies to ``requests``, in their order; None is a missing reply.

        Never raises, whatever a reply says.
        """

    def problem(self, request: Request, reply: Reply) -> str | None:
        """Return the code of what is wrong with one reply, None for nothing.

        ``malformed`` and ``wrong_check`` are asked again at once, in the next form of reply.
        """
        return None

    @property
    def endpoint(self) -> Endpoint:
        """Where requests would be sent: what ``judge`` says, where a grader has that."""
        endpoint: Endpoint = getattr(self, "judge", Endpoint())
        return endpoint

    @override
    def grade(self, sample: Sample) -> Grade:
        keys = [request.key for request in self.requests(sample)]
        replies = self.journal.replies(keys)
        return self.verdict(sample, replies)

    def contract_problem(self, sample: Sample) -> str | None:
        """Return the fault that the kit finds: other requests, or a reply without a sound grade."""
        from gradestack.testing import fresh  # noqa: PLC0415 - for the kit alone

        requests = self.requests(sample)
        repeated = self.requests(fresh(sample)[0])
        keys = [request.key for request in requests]
        if keys != [request.key for request in repeated]:
            return "two times the same sample, two different requests"
        for reply in (None, *_ODD_REPLIES):
            replies = [reply] * len(requests)
            problem = check_grade(self.verdict(sample, replies))
            if problem is not None:
                return f"the verdict: {problem}"
        return None


def _one_vote(_: PartlyJudged, __: Any, judge: JudgeModel) -> None:
    """Refuse a judge whose settings are out of range, or that votes more than once."""
    try:
        msgspec.convert(
            msgspec.to_builtins(judge), JudgeModel
        )  # suites know types, not their limits
    except msgspec.ValidationError as error:
        raise ValueError(f"judge: {error}".replace("`$.", "`")) from None
    if judge.votes != 1:
        raise ValueError("judge.votes: this grader asks once; `kind: judged` takes several votes")


@attrs.frozen(kw_only=True, slots=False)
class PartlyJudged(Judged):
    """Base of graders that ask for some samples only.

    Without ``judgements`` ``verdict`` gets no replies.
    """

    judge: JudgeModel = attrs.field(default=JudgeModel(model="gpt-4o-mini"), validator=_one_vote)
    """Which model is asked, as `judge` of a rubric."""

    def request(self, system: str, data: Mapping[str, JSON], schema: Mapping[str, JSON]) -> Request:
        """Return a request about data, which it puts between marks.

        ``system`` has ``{nonce}`` for these.
        """
        text = visible(dumps(data))
        nonce, between = marked(system, text)
        return self.judge.request(
            system.replace("{nonce}", nonce), f"{between} Answer as you were told above.", schema
        )
