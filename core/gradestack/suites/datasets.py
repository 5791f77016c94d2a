"""The dataset of a suite: a file with expectations, and the reader it is read with."""

from __future__ import annotations

from gradestack.api import Input
from gradestack.errors import DataError
from gradestack.grading.plan import Stage
from gradestack.suites.inputs import expand, name_inputs, recognise
from gradestack.suites.references import Resolver
from gradestack.suites.spec import SuiteSpec


def dataset_of(resolver: Resolver, spec: SuiteSpec, reader: Stage | None) -> tuple[Input | None, Stage | None]:
    """Return the dataset and, when the reader does not join it itself, the reader it is read with."""
    if spec.dataset is None:
        return None, None
    named = spec.dataset if isinstance(spec.dataset, dict) else {"path": spec.dataset}
    own = named.get("reader")
    sound = isinstance(named.get("path"), str) and isinstance(own, str | dict | None)
    if not sound or named.keys() - {"path", "reader"}:
        resolver.say(("dataset",), "expected the path of a file, or {path: FILE, reader: NAME or {kind: NAME, …}}")
        return None, None
    if not resolver.may_read(named["path"], ("dataset", "path") if isinstance(spec.dataset, dict) else ("dataset",)):
        return None, None
    (path,) = expand([named["path"]], resolver.base)[:1]
    dataset = name_inputs([path])[0]
    if reader is None or (reader.component.takes_dataset and own is None):
        return dataset, None
    if reader.component.takes_dataset:
        resolver.say(
            ("dataset", "reader"), f"the format {reader.name!r} reads its dataset itself; leave the reader out"
        )
        return None, None
    if own is None or (isinstance(own, dict) and "kind" not in own):
        try:
            kind = recognise([path], resolver.registry, None).reader
        except DataError as error:
            advice = "name it with dataset: {path: FILE, reader: NAME}"
            raise DataError(str(error).replace("name it with --reader", advice)) from error
        own = {**(own or {}), "kind": kind}
    return dataset, resolver.stage("reader", "dataset", own, ("dataset", "reader"))
