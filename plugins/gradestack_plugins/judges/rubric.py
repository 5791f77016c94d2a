"""Rubrics: what a model is asked to judge by, and which model, from a YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gradestack import JSON, USERINFO, ConfigError, JudgeModel, read_yaml, schema_of, suggest, visible
from gradestack.jsonio import dumps

_SECRETS = frozenset({"api_key", "apikey", "key", "token", "secret", "password", "authorization"})
_SHOWN = Literal["input", "turns", "calls", "text", "label", "plan", "state"]
_VERDICTS = Literal["pass", "fail", "unclear"]


class Criterion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run is to fulfil."""

    text: Annotated[str, Meta(pattern=r"\S")]
    weight: Annotated[float, Meta(gt=0, le=1e9)] = 1.0
    required: bool = False
    """Whether no sample passes in which its value is below the rubric's ``pass``."""
    scale: tuple[int, int] | None = None
    """Least and greatest whole number of its verdict; default: pass or fail."""

    def __post_init__(self) -> None:
        if self.scale is not None and not self.scale[0] < self.scale[1]:
            raise ValueError(f"scale must go up, got {self.scale[0]} to {self.scale[1]}")

    @property
    def verdicts(self) -> tuple[Any, dict[str, JSON]]:
        """Type of a verdict, and its JSON Schema."""
        if self.scale is None:
            return _VERDICTS, {"type": "string", "enum": ["pass", "fail", "unclear"]}
        low, high = self.scale
        return Annotated[int, Meta(ge=low, le=high)], {"type": "integer", "minimum": low, "maximum": high}

    def worth(self, verdict: Any) -> float | None:
        """Return what a verdict is worth, 0 to 1; None where it is unclear."""
        low, high = self.scale or (0, 1)
        number = verdict if self.scale else {"pass": 1, "fail": 0}.get(verdict)
        return None if number is None else (number - low) / (high - low)


class Rubric(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"pass_mark": "pass"}, dict=True
):
    """A rubric, as its file has it."""

    criteria: Annotated[dict[str, Criterion], Meta(min_length=1)]
    judge: JudgeModel
    name: str = "judged"
    """Key of the grader."""
    pass_mark: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """Score from which on a sample passes."""
    show: Annotated[tuple[_SHOWN, ...], Meta(min_length=1)] = ("input", "turns")
    """What the model sees of a run; of one without recorded turns its text, label, plan and calls in their place."""
    reference: bool = False
    """Whether it sees what was expected."""
    max_chars: Annotated[int, Meta(ge=1000)] = 60_000
    """Characters of the run it sees; of a longer one the middle is left out."""

    @cached_property
    def asked(self) -> str:
        """The criteria, as they are sent: without weights and marks, others of which need no new replies."""
        sent = {k: {"scale": [*of.scale], "text": of.text} if of.scale else of.text for k, of in self.criteria.items()}
        return visible(dumps(sent))

    @cached_property
    def schema(self) -> dict[str, JSON]:
        """JSON Schema of a reply."""
        text: dict[str, JSON] = {"type": "string"}
        each = {k: schema_of({"reason": text, "verdict": of.verdicts[1]}) for k, of in self.criteria.items()}
        return schema_of({"check": text, "criteria": schema_of(each)})

    @cached_property
    def schema_text(self) -> str:
        """It as it is sent."""
        return dumps(self.schema)

    @cached_property
    def decoder(self) -> msgspec.json.Decoder[Any]:
        """What decodes a reply, and refuses anything else: ``check`` and ``criteria``, in their order."""
        closed: Any = {"frozen": True, "forbid_unknown_fields": True}
        kinds, names = list[Any](), dict[str, str]()
        for number, (name, criterion) in enumerate(self.criteria.items()):
            fields = [("reason", str), ("verdict", criterion.verdicts[0])]
            kinds.append((f"c{number}", msgspec.defstruct("Verdict", fields, **closed)))
            names[f"c{number}"] = name
        within = msgspec.defstruct("Criteria", kinds, rename=names, **closed)
        return msgspec.json.Decoder(msgspec.defstruct("Reply", [("check", str), ("criteria", within)], **closed))


def read_rubric(path: Path) -> Rubric:
    """Return the rubric of a file."""
    data = read_yaml(path).data
    _refuse_secrets(path, data)
    for within, place, kind in ((data, "", Rubric), (data.get("judge"), "judge.", JudgeModel)):
        known = [field.encode_name for field in msgspec.structs.fields(kind)]
        for key in within if isinstance(within, Mapping) else ():
            if key not in known:
                hint = suggest(key, known) or f"; known: {', '.join(known)}"
                raise ConfigError(f"{path}: {place}{key!s:.80}: unknown key{hint}")
    if isinstance(of := data.get("criteria"), Mapping):
        data["criteria"] = {name: {"text": each} if isinstance(each, str) else each for name, each in of.items()}
    try:
        return msgspec.convert(data, Rubric)
    except ValueError as error:  # msgspec's own is one
        raise ConfigError(f"{path}: {str(error).replace('`$.', '`')[:300]}") from None


def _refuse_secrets(path: Path, data: Any, place: str = "") -> None:
    """Refuse a file that holds a key, without repeating it."""
    known = ("criteria.", "judge.headers_env.")  # whose keys are anybody's
    for key, value in data.items() if isinstance(data, Mapping) and place not in known else ():
        if str(key).lower() in _SECRETS or (isinstance(value, str) and USERINFO.search(value)):
            advice = "a key is never written to a file; name the variable that holds it: api_key_env"
            raise ConfigError(f"{path}: {place}{key!s:.80}: {advice}")
        _refuse_secrets(path, value, f"{place}{key}.")
