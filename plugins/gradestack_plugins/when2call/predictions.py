"""Reading a prediction file: which of its records count, and the form they are read in."""

from __future__ import annotations

import attrs

from gradestack import BadRecord, Input, Source, read_records
from gradestack.jsonio import Element, compact
from gradestack_plugins.when2call.records import METHODS, Form, Method, Prediction, form_of, uuid_of

_TELLING = ("judge", "mcq", "logprob", "nvidia", "lm_eval")
"""Forms a record's keys tell for sure."""

NO_PREDICTION = "no prediction: expected predicted_label, judge_response, predicted_label_raw, raw_text or doc"


def parse(raw: Element) -> Prediction | str:
    """Return the prediction of a record, or what is wrong with it; a ``bare`` one may still turn out to be none."""
    if raw.problem is not None:
        return raw.problem
    if not isinstance(raw.value, dict):
        return f"expected an object, found {compact(raw.value)[:60]}"
    form = form_of(raw.value) or "bare"
    uuid = uuid_of(raw.value, form)
    if uuid is None and form == "bare":
        return NO_PREDICTION
    if uuid is None:
        return "uuid is missing or not a non-empty text, so the record belongs to no dataset row"
    return Prediction(uuid=uuid, form=form, record=raw.value, ordinal=raw.ordinal, line=raw.line)


@attrs.frozen(kw_only=True)
class Loaded:
    """One prediction file: the last record of every uuid, in order of each uuid's first record."""

    predictions: dict[str, Prediction]
    bad: tuple[BadRecord, ...]
    method: Method
    model: str | None = None
    """The model tested, when the file names exactly one."""


def load(source: Input, method: Method | None) -> Loaded:
    """Read a prediction file.

    The last record of a uuid counts whatever it holds: one without a prediction leaves its dataset row without one. A
    record too short to tell its own form (``plain``, ``bare``) is read in the form of its file.

    Args:
        source: The file.
        method: Evaluation method, when the user named it; else that of the first record whose keys tell.

    Raises:
        DataError: The file cannot be read.
    """
    predictions: dict[str, Prediction] = {}
    bad: list[BadRecord] = []
    bare: list[BadRecord] = []
    told: Form | None = None
    for raw in read_records(source):
        found = parse(raw)
        if isinstance(found, str):
            bad.append(_bad(source, raw, found))
            continue
        predictions[found.uuid] = found  # a key keeps its place in a dict when its value is replaced
        if found.form == "bare":
            bare.append(_bad(source, raw, NO_PREDICTION))
        elif told is None and found.form in _TELLING:
            told = found.form
    form = _form_of_file(told, method)
    if form != "logprob":  # there a record without labels is still counted, under its mode
        bad = sorted(bad + bare, key=lambda each: each.source.ordinal)
    if form is not None or bare:
        predictions = _in_form(predictions, form)
    models = {each.model for each in predictions.values()} - {None}
    only = models.pop() if len(models) == 1 else None
    guessed: Method = METHODS[told] if told else "llm_judge"
    return Loaded(predictions=predictions, bad=tuple(bad), method=method or guessed, model=only)


def _bad(source: Input, raw: Element, reason: str) -> BadRecord:
    place = Source(file=source.shown, ordinal=raw.ordinal, line=raw.line)
    return BadRecord(source=place, reason=reason, native=raw.value)


def _form_of_file(told: Form | None, method: Method | None) -> Form | None:
    """Return the form short records are read in; None when they stay what they are.

    Args:
        told: Form of the first record whose keys tell.
        method: Evaluation method the user named.
    """
    if method == "mcq":
        return "mcq"
    if method == "mcq_logprob":
        return "logprob"
    return told if told == "judge" or (method is None and told in ("mcq", "logprob")) else None


def _in_form(predictions: dict[str, Prediction], form: Form | None) -> dict[str, Prediction]:
    """Return predictions with the short ones read in the form of their file, without those that predict nothing."""
    short: tuple[Form, ...] = ("plain", "bare", "response") if form == "logprob" else ("plain",)
    found: dict[str, Prediction] = {}
    for uuid, each in predictions.items():
        if form is not None and each.form in short:
            found[uuid] = attrs.evolve(each, form=form)
        elif each.form != "bare":
            found[uuid] = each
    return found
