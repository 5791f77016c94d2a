"""Where a rubric's requests go: only where the command line says so."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

import msgspec

from gradestack import VARIABLE, ConfigError, Endpoint


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """Where requests go, as the caller has confirmed it."""

    url: str
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    """Never shown and never written."""
    local: bool = False
    """Whether it is this machine's: no proxy stands before it."""


def connection_to(
    endpoint: Endpoint, base_url: str | None, api_key_env: str | None, headers_env: Mapping[str, str]
) -> Connection:
    """Return where to send a grader's requests, as the command line says.

    What only the rubric names does not count: it is a file from somebody, who might have keys sent to himself.
    """
    if base_url is None and endpoint.base_url is None:
        raise ConfigError("no address to ask at: name it with --base-url URL")
    _confirmed("the address", "--base-url", endpoint.base_url, base_url)
    if not all(VARIABLE.fullmatch(name) for name in (api_key_env or "_", *headers_env.values())):
        raise ConfigError("--api-key-env and --header-env name variables: letters, digits and _, never a key itself")
    _confirmed("the variable", "--api-key-env", endpoint.api_key_env, api_key_env)
    for header, variable in endpoint.headers_env.items():
        of = headers_env.get(header)
        _confirmed(f"the header {header} from the variable", "--header-env", f"{header}={variable}", of)
    url, local = _checked_url(base_url or "")
    headers, secrets = dict[str, str](), list[str]()
    key = {} if api_key_env is None else {"Authorization": api_key_env}
    for header, variable in {**headers_env, **key}.items():
        value = os.environ.get(variable, "")
        if not value:
            raise ConfigError(f"the variable {variable} is not set; it is to hold the key")
        if not value.isascii() or not value.isprintable() or not re.fullmatch(r"[A-Za-z0-9-]+", header):
            raise ConfigError(f"the variable {variable} holds characters that no header may have")
        secrets.append(value)
        headers[header] = f"Bearer {value}" if header in key else value
    return Connection(url=url, headers=headers, secrets=tuple(sorted(secrets, key=len, reverse=True)), local=local)


def _confirmed(what: str, option: str, written: str | None, given: str | None) -> None:
    if written is not None and given is None:
        raise ConfigError(f"the rubric names {what} {written[:200]!r}; if you trust it, pass {option} {written[:200]}")


def _checked_url(base: str) -> tuple[str, bool]:
    """Return the address of chat completions, and whether it is this machine's."""
    try:
        parts = urlsplit(base)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise ConfigError("--base-url: not an address") from error
    if parts.username is not None or parts.password is not None:
        raise ConfigError("--base-url holds a name or password; name a variable with --api-key-env instead")
    if parts.query or parts.fragment or not host or parts.scheme not in ("http", "https"):
        raise ConfigError("--base-url: expected an address such as https://api.openai.com/v1")
    local = host == "localhost"
    with suppress(ValueError):
        local = local or ipaddress.ip_address(host).is_loopback
    if parts.scheme == "http" and not local:
        raise ConfigError(f"--base-url: {host} is not this machine; keys and data are sent over https only")
    return f"{base.rstrip('/')}/chat/completions", local
