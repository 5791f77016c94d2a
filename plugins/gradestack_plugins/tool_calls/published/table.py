"""The published rules by name: version, what the options of our own rule would be, and the rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gradestack_plugins.tool_calls.published import bfcl, frameworks, promptfoo
from gradestack_plugins.tool_calls.published.preset import Preset, Rule

_TABLE: Final = """
                        order    extra    missing  arguments credit repeats  pairs rules
adk@2.13.0 raises=undecodable equality=python assignment=first_fit
  any_order             any      allow    forbid   exact     none   -        yes   -
  any_order/names       any      allow    forbid   ignore    none   -        yes   -
  exact                 strict   forbid   forbid   exact     none   -        yes   -
  exact/names           strict   forbid   forbid   ignore    none   -        yes   -
  in_order              in_order allow    forbid   exact     none   -        yes   -
  in_order/names        in_order allow    forbid   ignore    none   -        yes   -
agentevals@0.0.9 raises=undecodable equality=python assignment=first_fit
  strict/exact          strict   forbid   forbid   exact     none   -        yes   -
  strict/ignore         strict   forbid   forbid   ignore    none   -        yes   -
  strict/subset         strict   forbid   forbid   subset    none   -        yes   -
  strict/superset       strict   forbid   forbid   superset  none   -        yes   -
  subset/exact          any      forbid   -        exact     none   -        yes   -
  subset/ignore         any      forbid   -        ignore    none   -        yes   -
  subset/subset         any      forbid   -        subset    none   -        yes   -
  subset/superset       any      forbid   -        superset  none   -        yes   -
  superset/exact        any      allow    forbid   exact     none   -        yes   -
  superset/ignore       any      allow    forbid   ignore    none   -        yes   -
  superset/subset       any      allow    forbid   subset    none   -        yes   -
  superset/superset     any      allow    forbid   superset  none   -        yes   -
  unordered/exact       any      forbid   forbid   exact     none   -        yes   -
  unordered/ignore      any      forbid   forbid   ignore    none   -        yes   -
  unordered/subset      any      forbid   forbid   subset    none   -        yes   -
  unordered/superset    any      forbid   forbid   superset  none   -        yes   -
azure@1.18.10 raises=nothing equality=text
  any_order_match       any      allow    forbid   exact     none   -        -     -
  any_order_match/names any      allow    forbid   ignore    none   -        -     -
  exact_match           strict   forbid   forbid   exact     none   -        -     -
  exact_match/names     strict   forbid   forbid   ignore    none   -        -     -
  f1                    any      penalise penalise exact     call   -        -     -
  f1/names              any      penalise penalise ignore    call   -        -     -
  in_order_match        in_order allow    forbid   exact     none   -        -     -
  in_order_match/names  in_order allow    forbid   ignore    none   -        -     -
bfcl@2025.10.27.1 assignment=first_fit
  ast                   any      forbid   forbid   rules     none   -        yes   yes
deepeval/tool_correctness@4.3.1 raises=undecodable equality=python score=recall
  default/arguments     any      allow    penalise exact     path   -        yes   -
  default/names         any      allow    penalise ignore    path   -        yes   -
  exact/arguments       strict   forbid   forbid   exact     none   -        yes   -
  exact/names           strict   forbid   forbid   ignore    none   -        yes   -
  ordering/arguments    in_order allow    penalise exact     path   -        yes   -
  ordering/names        in_order allow    penalise ignore    path   -        yes   -
mlflow/tool_call_correctness@3.17.0 raises=nothing equality=text
  ordered               strict   forbid   forbid   exact     none   multiset -     -
  unordered             any      forbid   forbid   exact     none   set      -     -
promptfoo/trajectory:tool-args-match@0.121.20
  exact                 any      allow    penalise exact     call   set      yes   -
  partial               any      allow    penalise superset  call   set      yes   -
promptfoo/trajectory:tool-sequence@0.121.20 raises=nothing
  exact                 strict   forbid   forbid   ignore    none   -        -     -
  in_order              in_order allow    forbid   ignore    none   -        -     -
promptfoo@0.121.20 raises=nothing
  tool-call-f1          any      penalise -        ignore    call   set      -     -
  trajectory:tool-used  any      allow    forbid   ignore    none   set      yes   -
pydantic_evals/trajectory_match@2.62.0 equality=python
  any_order             any      penalise penalise ignore    call   -        yes   -
  exact                 strict   forbid   forbid   ignore    none   -        yes   -
  in_order              in_order penalise penalise ignore    call   -        yes   -
ragas/tool_call_accuracy@0.4.3 raises=undecodable equality=text
  flexible              any      forbid   forbid   superset  path   -        -     -
  strict                strict   forbid   forbid   superset  path   -        -     -
ragas@0.4.3 raises=undecodable equality=python
  tool_call_f1          any      penalise penalise exact     call   set      -     -
tau2@a2c0247 raises=undecodable equality=python
  action                any      allow    forbid   subset    none   set      yes   yes
toolsandbox@165848b raises=undecodable equality=python
  tool_trace            any      allow    -        superset  none   -        yes   yes
waza/action_sequence@091a1f9 raises=nothing
  any_order_match       any      -        -        ignore    call   -        -     -
  exact_match           strict   -        -        ignore    call   -        -     -
  in_order_match        in_order -        -        ignore    call   -        -     -
"""
"""A program with its version, what it raises on, and the options that all its presets stand for;
then the presets.

Below each option its value, ``-`` where the program has none; whether calls are compared pair by
pair, and whether the program can be told of arguments that are not simply compared.
"""
_RULES: Final[Mapping[str, Any]] = {
    "adk": frameworks.adk,
    "agentevals": frameworks.agentevals,
    "azure": frameworks.azure,
    "bfcl/ast": bfcl.rule(),
    "deepeval/tool_correctness": frameworks.deepeval,
    "mlflow/tool_call_correctness": frameworks.mlflow,
    "promptfoo/tool-call-f1": promptfoo.call_f1,
    "promptfoo/trajectory:tool-args-match": promptfoo.tool_args_match,
    "promptfoo/trajectory:tool-sequence": promptfoo.tool_sequence,
    "promptfoo/trajectory:tool-used": promptfoo.tool_used,
    "pydantic_evals/trajectory_match": frameworks.pydantic_evals,
    "ragas/tool_call_accuracy": frameworks.ragas_accuracy,
    "ragas/tool_call_f1": frameworks.ragas_f1,
    "tau2/action": frameworks.tau2,
    "toolsandbox/tool_trace": frameworks.toolsandbox,
    "waza/action_sequence": frameworks.waza,
}
"""The rule of a preset, or a function that returns it for the rest of the preset's name."""


def published_presets() -> Iterator[Preset]:
    """Yield the presets of the table."""
    table = _TABLE.strip("\n")
    head, *lines = table.splitlines()
    options = head.split()[:-2]
    program, version, raises = "", "", ""
    shared: dict[str, str] = {}
    for line in lines:
        first, *words = line.split()
        if not line.startswith(" "):
            program, _, version = first.partition("@")
            shared = dict(word.split("=") for word in words)
            raises = shared.pop("raises", "")
            continue
        name, (*values, pairs, rules) = f"{program}/{first}", words
        cells = zip(options, values, strict=True)
        settings = {option: value for option, value in cells if value != "-"}
        rule = _rule_of(name)
        yield Preset(
            name=name,
            version=version,
            rule=rule,
            settings=settings | shared,
            takes_rules=rules == "yes",
            pairs=pairs == "yes",
            raises=raises,
        )


def _rule_of(name: str) -> Rule:
    """Return the rule of a preset."""
    if name in _RULES:
        return _RULES[name]  # type: ignore[no-any-return]
    program = next(known for known in _RULES if name.startswith(f"{known}/"))
    words = name.removeprefix(f"{program}/").split("/")
    return _RULES[program](*words)  # type: ignore[no-any-return]
