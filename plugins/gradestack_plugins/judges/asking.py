"""Asking a model over HTTP: nothing else here has a network.

Any address that speaks as OpenAI's does.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import attrs
import msgspec

from gradestack import (
    JSON,
    ConfigError,
    GradestackError,
    compile_later,
    library,
)
from gradestack.jsonio import JsonProblem, as_list, as_map, as_text, dumps, loads
from gradestack_plugins.judges.contract import Endpoint, Judged, Request, reply_text, visible
from gradestack_plugins.judges.journal import Reply, Tokens
from gradestack_plugins.judges.session import REPLY_CODES, Recorder

MODES = ("json_schema", "json_object", "plain")
"""Forms of reply, each for servers that do not know the one before."""
REPAIRED = ("malformed", "wrong_check")
_RETRIED = (408, 409, 425, 429)
_NO_REPLY, _NOT_SENT = 0, -1
"""In place of a status: sent but not answered, which may cost, and no server was reached."""
_LONGEST_WAIT, _LONGEST_BACKOFF = 60.0, 30.0  # of a Retry-After that is followed, and of our own
_LARGEST = 1 << 24  # bytes of a reply
_GIVEN_UP = 3  # before any was answered: no more are sent
_FORMLESS = 5  # replies without the form asked for, before any has it: no more are sent
_LONGEST_SHOWN = 200  # characters of a reply that is shown
_SHORTEST_SECRET = 8  # characters; shorter ones are in ordinary words
_FINISHES = ("stop", "length", "content_filter", "tool_calls")
_SHOWN_EVERY = 10.0
_REDIRECTS = range(300, 400)
_FORM = compile_later("response_format|json_schema|json_object")
_REFUSED = {
    401: "the key is refused",
    403: "the key may not do this",
    404: "no such address or model",
}


class Connection(msgspec.Struct, frozen=True):
    """Where requests go, as the caller has confirmed it."""

    url: str
    headers: Mapping[str, str]
    secrets: re.Pattern[str]  # never shown and never written
    local: bool  # whether it is this machine's: no proxy stands before it


def connection_to(
    endpoint: Endpoint, base_url: str | None, api_key_env: str | None, headers: tuple[str, ...]
) -> Connection:
    """Return where to send a grader's requests, as the command line says.

    What only the rubric names does not count: it is a file from somebody, who might have keys sent
    to himself.
    """
    pairs = [pair.partition("=") for pair in headers]
    variables = {header: variable for header, _, variable in pairs}
    if not all([*variables, *variables.values()]):
        raise ConfigError("--header-env: expected HEADER=NAME, the name of a variable")
    try:
        Endpoint(api_key_env=api_key_env, headers_env=variables)
    except ValueError as error:
        options = "--api-key-env and --header-env"
        problem = str(error).replace("api_key_env and headers_env", options)
        raise ConfigError(problem) from None
    _check_trust("the address", "--base-url", endpoint.base_url, base_url)
    _check_trust("the variable", "--api-key-env", endpoint.api_key_env, api_key_env)
    for header, name in endpoint.headers_env.items():
        what = f"the header {header} from the variable"
        stated = variables.get(header)
        _check_trust(what, "--header-env", f"{header}={name}", stated)
    if base_url is None:
        raise ConfigError("no address to ask at: name it with --base-url URL")
    local = _is_local(base_url)
    if api_key_env is not None:
        variables = {**variables, "Authorization": api_key_env}
    values = {header: _value_of(header, name) for header, name in variables.items()}
    longest_first = sorted(values.values(), key=len, reverse=True)
    secret = [_in_any_form(value) for value in longest_first if len(value) >= _SHORTEST_SECRET]
    secrets = re.compile("|".join(secret) or "(?!)")
    if api_key_env is not None:
        values["Authorization"] = f"Bearer {values['Authorization']}"
    return Connection(f"{base_url.rstrip('/')}/chat/completions", values, secrets, local)


def _check_trust(subject: str, option: str, written: str | None, stated: str | None) -> None:
    """Refuse an address or a variable that the rubric names and the command line does not."""
    if written is not None and stated is None:
        trust = f"if you trust it, pass {option} {written[:200]}"
        raise ConfigError(f"the rubric names {subject} {written[:200]!r}; {trust}")


def _value_of(header: str, name: str) -> str:
    """Return the value of a variable, which a header is to have."""
    value = os.environ.get(name, "")
    if not value:
        raise ConfigError(f"the variable {name} is not set; it is to hold the key")
    is_clean = value.isascii() and value.isprintable() and value == value.strip()
    if not is_clean or not re.fullmatch(r"[A-Za-z0-9-]+", header):
        raise ConfigError(f"the variable {name} holds characters that no header may have")
    return value


def _is_local(base: str) -> bool:
    """Return whether an address is this machine's; refuse one that others could read along with."""
    try:
        parts = urlsplit(base)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError as error:
        raise ConfigError("--base-url: not an address") from error
    match = re.fullmatch(r"localhost|::1|127(\.\d{1,3}){3}", host)
    local = match is not None
    if parts.username is not None or parts.password is not None:
        problem = "--base-url holds a name or password"
        raise ConfigError(f"{problem}; name a variable with --api-key-env instead")
    if parts.query or parts.fragment or not host or parts.scheme not in ("http", "https"):
        raise ConfigError("--base-url: expected an address such as https://api.openai.com/v1")
    if parts.scheme == "http" and not local:
        problem = f"--base-url: {host} is not this machine"
        raise ConfigError(f"{problem}; keys and data are sent over https only")
    return local


def _in_any_form(secret: str) -> str:
    """Return a pattern of a secret, whose characters may be escaped as in JSON, also more than
    once.
    """
    return "".join(rf"\\*(?:{re.escape(sign)}|(?i:u{ord(sign):04x}))" for sign in secret)


class _GivenUp(Exception):
    """A request was tried as often as it may be, or no budget is left for it."""


@attrs.define(kw_only=True, slots=False)
class Asker:
    """Sends requests, so many at a time, and gives every reply to ``record`` as soon as it is
    there.

    Options are those of `gradestack judge`. ``counts`` are requests, what was judged or given up,
    and codes of replies; ``stopped`` is why no more are sent, "" while they are.
    """

    connect: Callable[[Endpoint], Connection]
    echo: Callable[[str], None]
    max_cost: float | None = None
    max_requests: int | None = None
    concurrency: int = 16
    rpm: float | None = None
    timeout: float = 60.0
    retries: int = 6
    backoff: float = 1.0
    repairs: int = 1
    counts: Counter[str] = attrs.Factory(Counter)
    stopped: str = ""
    last: str = ""

    def __attrs_post_init__(self) -> None:
        self._spent = 0.0
        self._reserved = 0.0
        self._mode = 0
        self._open_at = 0.0
        self._slot = 0.0
        self._shown = time.monotonic()
        self._stop: GradestackError | None = None
        self._has_form, self._formless = False, 0

    @property
    def spent_text(self) -> str:
        """The money that was spent, as far as prices are known."""
        if self._endpoint.price:
            return f", cost {self._spent:.4f} USD"
        return ""

    def __call__(
        self, judged: Judged, todo: Iterator[tuple[Request, int]], record: Recorder
    ) -> str:
        """Ask for a judge's requests; return why some have no reply."""
        self._judged = judged
        self._record = record
        self._endpoint = judged.endpoint
        if self.max_cost is not None and not self._endpoint.price:
            price = "judge.price: {input: …, output: …} per million tokens"
            raise ConfigError(f"--max-cost needs the rubric's {price}")
        self._connection = self.connect(self._endpoint)
        self._httpx = library("httpx", extra="judge")
        before = self.counts.copy()
        self._has_form, self._formless = False, 0
        asyncio.run(self._all(todo))
        if self._stop is not None:
            raise self._stop
        done = self.counts - before  # those before are another judge's
        codes = [f"{done[code]:,} {code}" for code in sorted(REPLY_CODES) if done[code]]
        listed = ""
        if codes:
            listed = f" ({', '.join(codes)})"
        requests = f"{done['requests']:,} requests{self.spent_text}"
        self.echo(f"{done['judged']:,} judged{listed}, {requests}")
        if self.stopped:
            return f"not asked: {self.stopped}"
        if not self.last:
            return "given up"
        advice = "" if self._has_form else self._address_advice
        return f"given up, the last for {self.last}{advice}"

    async def _all(self, todo: Iterator[tuple[Request, int]]) -> None:
        """Ask everything: one request at a time until one has succeeded, then several at once."""
        httpx = self._httpx
        async with httpx.AsyncClient(
            headers={**self._connection.headers, "Content-Type": "application/json"},
            limits=httpx.Limits(max_connections=self.concurrency),
            timeout=httpx.Timeout(self.timeout, pool=None),
            trust_env=not self._connection.local,
        ) as self._client:
            for request, vote in todo:  # alone: a wrong key or form costs one request
                await self._ask(request, vote)
                if self._has_form or self._over:
                    break
                if self.counts["given up"] >= _GIVEN_UP:
                    return
            await asyncio.gather(*(self._work(todo) for _ in range(self.concurrency)))

    async def _work(self, todo: Iterator[tuple[Request, int]]) -> None:
        while not self._over:
            request = next(todo, None)
            if request is None:
                return
            await self._ask(*request)

    @property
    def _over(self) -> bool:
        return self._stop is not None or bool(self.stopped)

    async def _ask(self, request: Request, vote: int) -> None:
        """Ask once, and once more for each repair."""
        rejected: list[dict[str, str | None]] = []
        mode = self._mode
        try:
            while True:
                reply, mode = await self._reply(request, vote, mode)
                code = self._judged.problem(request, reply)
                if code not in REPAIRED:
                    self._has_form = True
                    break
                self._note_formless(reply.content or "")
                if len(rejected) >= self.repairs or self._over:
                    break
                if reply.content is None:
                    content = None
                else:
                    content = self._clean(reply.content)
                rejected.append({"code": code, "content": content, "mode": MODES[mode]})
                mode = min(mode + 1, len(MODES) - 1)
            self._record(request, vote, self._redacted(request, reply), MODES[mode], rejected)
            self.counts.update(("judged", code or "sound"))
        except _GivenUp as error:
            self.counts["given up"] += not self._over
            self.last = str(error)
        except GradestackError as error:
            self._stop = self._stop or error
        now = time.monotonic()
        if now - self._shown > _SHOWN_EVERY:
            self._shown = time.monotonic()
            self.echo(f"{self.counts['judged']:,} judged{self.spent_text}")

    @property
    def _address_advice(self) -> str:
        """Where was asked, and how another address is named, while nothing has answered there."""
        return f" (asked at {self._connection.url}; another address: --base-url URL)"

    def _note_formless(self, text: str, advice: str = "") -> None:
        """Count a reply without the form asked for; stop where the first ones are all so."""
        self._formless += 1
        if self._has_form or self._formless < _FORMLESS:
            return
        shown = visible(dumps(" ".join(self._clean(text).split())[:_LONGEST_SHOWN]))
        self.stopped = (
            f"the endpoint's replies do not have the form asked for, {_FORMLESS} in a row from "
            f"the first on; the last: {shown}{advice}"
        )

    async def _reply(self, request: Request, vote: int, mode: int) -> tuple[Reply, int]:
        """Return a reply and the form it was asked for in.

        A lower one where the server does not know it.
        """
        tried, why = 0, ""
        while tried <= self.retries:
            reply, status, body, wait = await self._try(request, vote, mode)
            if reply is not None:
                return reply, mode
            raw = body.decode(errors="replace")
            if status in (400, 422) and _FORM.search(raw) and mode + 1 < len(MODES):
                mode += 1
                self._mode = max(self._mode, mode)
                continue
            text = self._clean(raw)
            detail = f": {' '.join(text.split())[:200]}".removesuffix(": ")
            self._refuse(status, detail)
            if status > 0:
                why = f"HTTP {status}{detail}"
            else:
                why = text
            if 200 <= status < 300:
                why = f"a reply that is no chat completion{detail}"
                self._note_formless(text, self._address_advice)
                if self._over:
                    break
            pause = self._pause(tried, wait)
            tried += 1
            if status == 429:
                now = time.monotonic()
                self._open_at = max(self._open_at, now + pause)  # for all
            elif tried <= self.retries:
                await asyncio.sleep(pause)
        raise _GivenUp(why)

    async def _try(
        self, request: Request, vote: int, mode: int
    ) -> tuple[Reply | None, int, bytes, str | None]:
        """Send a request once; return its reply, None without one, and status, body and wait."""
        worst = await self._room_for(request)
        self._reserved = self._reserved + worst
        spent = 0.0
        try:
            status, body, wait = await self._send(request.body(vote, MODES[mode]))
            is_fine = 200 <= status < 300
            reply = self._read(body) if is_fine else None
            if is_fine or status == _NO_REPLY:
                tokens = Tokens()
            else:
                tokens = Tokens(0, 0)
            if reply is not None:
                tokens = reply.usage
            spent = worst
            if tokens.input is not None and tokens.output is not None:
                spent = self._endpoint.cost(tokens.input, tokens.output)
        finally:
            self._reserved = self._reserved - worst
            self._spent = self._spent + spent
        return reply, status, body, wait

    def _refuse(self, status: int, detail: str) -> None:
        """Raise a ConfigError for a status of 300 to 499 that no retry would mend, else do nothing.

        ``detail`` is what the server said, with ": " in front of it, or empty.
        """
        if not 300 <= status < 500 or status in _RETRIED:
            return
        default = "it refuses the request"
        if status in _REDIRECTS:
            default = "it redirects, which is not followed"
        advice = ""
        if status in (*_REDIRECTS, 404, 405):
            advice = self._address_advice
        problem = f"{_REFUSED.get(status, default)}{detail}{advice}"
        raise ConfigError(f"the judge's server says HTTP {status}: {problem}")

    def _pause(self, tried: int, wait: str | None) -> float:
        """Return the seconds until the next try: as the server asks, else more every time."""
        seconds = _seconds(wait or "")
        if seconds is not None and seconds <= _LONGEST_WAIT:
            return seconds
        longest: float = min(_LONGEST_BACKOFF, self.backoff * 2**tried)
        return longest * random.uniform(0.5, 1)  # noqa: S311

    async def _room_for(self, request: Request) -> float:
        """Return the most that a request may cost, when the budget has room for that."""
        worst = self._endpoint.cost(*request.most_tokens)
        if self.max_cost is not None and not request.most_tokens[1]:
            problem = "without it a reply may cost anything"
            raise ConfigError(f"--max-cost needs the rubric's judge.max_tokens: {problem}")
        while self.max_cost is not None and self._spent + self._reserved + worst > self.max_cost:
            if self._reserved < worst / 1e6:  # nothing is in flight
                self.stopped = f"--max-cost {self.max_cost:g} is reached"
            if self._over:
                raise _GivenUp
            await asyncio.sleep(0.02)  # until it is known what those in flight took
        return worst

    async def _send(self, body: Mapping[str, Any]) -> tuple[int, bytes, str | None]:
        """Return status, body and Retry-After; else in words what went wrong on the way.

        The status is then ``_NO_REPLY``, or ``_NOT_SENT`` where no server was reached.
        """
        httpx = self._httpx
        while (pause := self._open_at - time.monotonic()) > 0:  # noqa: ASYNC110 - others move it on
            await asyncio.sleep(pause)
        if self.rpm:
            now = time.monotonic()
            self._slot = max(self._slot, now) + 60 / self.rpm
            await asyncio.sleep(self._slot - 60 / self.rpm - time.monotonic())
        if self.counts["requests"] == self.max_requests:
            self.stopped = f"--max-requests {self.max_requests} is reached"
        if self._over:
            raise _GivenUp
        self.counts["requests"] += 1
        content = bytearray()
        latest = time.monotonic() + self.timeout
        url = self._connection.url
        data = dumps(body).encode()
        try:
            async with self._client.stream("POST", url, content=data) as response:
                # each piece within the time-out; cancelling would lose connections
                async for piece in response.aiter_bytes():
                    content += piece
                    if len(content) > _LARGEST:
                        return _NO_REPLY, b"a reply too large", None
                    if time.monotonic() > latest:
                        return _NO_REPLY, b"no reply in time", None
                retry_after = response.headers.get("retry-after")
                return response.status_code, bytes(content), retry_after
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return _describe_failure(error)

    def _read(self, body: bytes) -> Reply | None:
        """Return the reply of a server; None where it is no chat completion."""
        try:
            data = as_map(loads(body))
        except JsonProblem:
            return None
        choices = data.get("choices")
        choice = as_map(next(iter(as_list(choices)), None))
        message = choice.get("message")
        usage = as_map(data.get("usage"))
        if not isinstance(message, Mapping) or choice.get("error"):  # of a model behind the server
            return None
        content = message.get("content")
        refusal = as_text(message.get("refusal"))
        if isinstance(content, list):
            parts = [*map(as_map, content)]
            texts = [as_text(part.get("text")) for part in parts]
            content = "".join(texts)
            refusals = [as_text(part.get("refusal")) for part in parts]
            refusal += "".join(refusals)
        finish_reason = choice.get("finish_reason")
        finish = as_text(finish_reason) or "stop"
        tool_calls = message.get("tool_calls")
        calls = tool_calls or message.get("function_call")
        if calls or finish == "function_call":
            finish = "tool_calls"
        prompt_tokens = usage.get("prompt_tokens")
        completion_tokens = usage.get("completion_tokens")
        tokens = map(_token_count, (prompt_tokens, completion_tokens))
        return Reply(
            content=_valid(content) if isinstance(content, str) else None,
            finish=_valid(finish),
            refusal=_valid(refusal) or None,
            model=_valid(as_text(data.get("model"))) or None,
            usage=Tokens(*tokens),
        )

    def _redacted(self, request: Request, reply: Reply) -> Reply:
        """Return a reply to store, without secrets that it repeats.

        Its judgement stays the same. Where a secret is also a word of the reply's form, only the
        texts within its JSON are searched for secrets.
        """
        if reply.finish in _FINISHES:
            finish = reply.finish
        else:
            finish = self._clean(reply.finish)
        content, refusal, model = (
            None if text is None else self._clean(text)
            for text in (reply.content, reply.refusal, reply.model)
        )
        clean = msgspec.structs.replace(
            reply, content=content, finish=finish, refusal=refusal, model=model
        )
        judged = self._judged
        problem = judged.problem(request, clean)
        if problem == judged.problem(request, reply):
            return clean
        try:
            data = loads(reply_text(reply)[0])
        except JsonProblem:
            return clean
        words = _words_of(request.schema)
        content = dumps(self._without_secrets(data, words))
        return msgspec.structs.replace(clean, content=content)

    def _without_secrets(self, value: JSON, words: Collection[str]) -> JSON:
        """Return JSON data without secrets in its texts, but for words of the form asked for."""
        if isinstance(value, str):
            return value if value in words else self._clean(value)
        if isinstance(value, Mapping):
            return {key: self._without_secrets(member, words) for key, member in value.items()}
        if isinstance(value, Sequence):
            return [self._without_secrets(item, words) for item in value]
        return value

    def _clean(self, text: str) -> str:
        """Return a text of the server's without the secrets it may repeat."""
        valid = _valid(text)
        return self._connection.secrets.sub("***", valid)


def _describe_failure(error: Exception) -> tuple[int, bytes, None]:
    """Return whether a request without a reply was sent, what went wrong, and no Retry-After."""
    import httpx  # noqa: PLC0415

    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.InvalidURL):
        return _NOT_SENT, f"no connection ({type(error).__name__})".encode(), None
    if isinstance(error, httpx.TimeoutException):
        return _NO_REPLY, b"no reply in time", None
    return _NO_REPLY, f"no connection ({type(error).__name__})".encode(), None


def _token_count(value: Any) -> int | None:
    if type(value) is int and 0 <= value < 1 << 53:
        return value
    return None


def _valid(text: str) -> str:
    """Return a text without halves of characters."""
    return text.encode(errors="replace").decode()


def _words_of(schema: JSON) -> set[str]:
    """Return all texts in a schema."""
    if isinstance(schema, str):
        return {schema}
    values: Iterable[JSON] = ()
    if isinstance(schema, Mapping):
        values = schema.values()
    elif isinstance(schema, Sequence):
        values = schema
    words = set[str]()
    for value in values:
        words |= _words_of(value)
    return words


def _seconds(retry_after: str) -> float | None:
    """Return the wait that a server asks for, in seconds or until a date.

    None where it does not say.
    """
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]*)?", retry_after):
        return float(retry_after)
    with suppress(TypeError, ValueError, OverflowError):  # no date, or one without a zone
        left = (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()
        return left if left > 0 else None
    return None
