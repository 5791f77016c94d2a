"""Synthetic scenario outputs.

A few hand-written scenarios, perturbed in every way the grading rules know of.
"""

# ruff: noqa: S311 - test data

import copy
import json
import random

import yaml

from tests.core.outcomes import data

DATA = data(__file__, "orchestration_generator.yaml")

CARDS = data(__file__, "cards.yaml")


def workflow(*steps, **fields):
    return {
        "status": "pending",
        "type": "independent",
        **fields,
        "steps": [
            {"status": status, "name": agent, "refined_query": f"ask {agent}"}
            for agent, status in steps
        ],
    }


def call(name, **arguments):
    text = json.dumps(arguments)
    return {
        "type": "function",
        "id": "c",
        "function": {"name": name, "arguments": text},
    }


def turn(content, agent=None, **more):
    return {
        "role": "assistant",
        **({"agent_id": agent} if agent else {}),
        "content": content,
        **more,
    }


SCENARIOS = DATA["scenarios"]


def gold_prediction(label_, style=0):
    main, sub = [], []
    for key, entry in label_.items():
        if "-" in key:
            continue
        if "agent_id" in entry:
            gold = label_.get(f"{key}-1", entry)
            tool_calls = copy.deepcopy(gold.get("tool_calls", []))
            agent_id = entry["agent_id"]
            sub.append(
                {
                    "step_id": key,
                    "role": "assistant",
                    "agent_id": agent_id,
                    "content": None if "tool_calls" in gold else entry["content"],
                    "tool_calls": tool_calls,
                }
            )
        elif str(entry["content"]).startswith("workflow_"):
            workflows = yaml.safe_load(entry["content"])
            text = written(workflows, style)
            main.append({"step_id": int(key), "role": "assistant", "content": text})
    return main, sub


def written(workflows, style):
    """Write a plan in one of the forms a model may use."""
    as_json = json.dumps(workflows)
    as_yaml = yaml.safe_dump(workflows, sort_keys=False)
    return [
        as_json,
        as_yaml,
        f"Here is the plan:\n```json\n{json.dumps(workflows, indent=2)}\n```\nDone.",
        f"```yaml\n{as_yaml}```",
        f"<think>{{hm}} workflow_7?</think>\nSure. {as_json} That is all.",
        f"The plan:\n{as_yaml}",
    ][style % 6]


class Perturber:
    """Changes one run at random; every change is one the rules say something about."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def run(self, scenario, trouble=0.0):
        gold = copy.deepcopy(SCENARIOS[scenario])
        style = self.rng.randrange(6)
        main, sub = gold_prediction(gold, style)
        for change in (self.plans, self.plans, self.decisions, self.calls, self.calls, self.calls):
            if self.rng.random() < 0.7:
                change(main, sub, gold)
        run = {"label": gold, "main_agent_history": main, "sub_agent_history": sub}
        if self.rng.random() < trouble:
            self.trouble(run)
        return run

    def plans(self, main, sub, gold):  # noqa: C901
        if not main:
            main.append(
                {
                    "step_id": 77,
                    "role": "assistant",
                    "content": self.rng.choice(["no plan", "workflow_1: {}"]),
                }
            )
            return
        entry = self.rng.choice(main)
        step_id = str(entry["step_id"])
        workflows = (
            yaml.safe_load(gold[str(entry["step_id"])]["content"]) if step_id in gold else {}
        )
        names = list(workflows) if isinstance(workflows, dict) else []
        what = self.rng.randrange(9)
        if what == 0:
            main.remove(entry)
            return
        if what == 1:
            entry["content"] = self.rng.choice(
                [None, "", "I cannot plan this.", "workflow_1 is\nnot: [closed"]
            )
            return
        if what == 2:
            entry["step_id"] = self.rng.choice([str(entry["step_id"]), 99, None])
            return
        if not names:
            return
        one = workflows[self.rng.choice(names)]
        if what == 3:
            one["steps"][0]["name"] = "other_agent"
        elif what == 4:
            one["steps"][-1]["status"] = self.rng.choice(["completed", "failed", 3])
        elif what == 5:
            del workflows[names[-1]]
            workflows = workflows or {"workflow_9": {"steps": []}}
        elif what == 6:
            depends_on = [names[0]]
            workflows["workflow_8"] = workflow(("extra_agent", "pending"), depends_on=depends_on)
        elif what == 7:
            first_name = names[0][:3]
            one["depends_on"] = self.rng.choice([[names[0]], first_name, ["workflow_77"], []])
        else:
            steps = one["steps"][:1]
            one["steps"] = [*one["steps"], {"agent_id": "late_agent"}, *steps]
        style = self.rng.randrange(6)
        entry["content"] = written(workflows, style)

    def decisions(self, main, sub, gold):
        if not sub:
            return
        entry = self.rng.choice(sub)
        what = self.rng.randrange(6)
        if what == 0:
            sub.remove(entry)
        elif what == 1:
            sub.append(copy.deepcopy(entry))
        elif what in (2, 3):
            entry["tool_calls"] = []
            entry["content"] = self.rng.choice(
                [
                    "please wait",
                    "<status>AWAITING_USER_INPUT</status>",
                    "TOOL_CONSTRAINT_VIOLATION: no",
                    "",
                ]
            )
        elif what == 4:
            entry["tool_calls"] = [call("findCrossing", origin="Aker", destination="Coll")]
        else:
            entry["tool_calls"] = [
                call("findCrossing", **{self.rng.choice(["AWAITING_USER_INPUT", "why"]): "phone"})
            ]

    def calls(self, main, sub, gold):
        calling = [entry for entry in sub if entry["tool_calls"]]
        if not calling:
            return
        entry = self.rng.choice(calling)
        one = self.rng.choice(entry["tool_calls"])["function"]
        try:
            if isinstance(one["arguments"], str):
                arguments = json.loads(one["arguments"])
            else:
                arguments = one["arguments"]
        except ValueError:
            return
        key = self.rng.choice(sorted(arguments)) if arguments else "none"
        what = self.rng.randrange(9)
        if what == 0:
            one["name"] = self.rng.choice(["bookCrossing", "planBed", "unheardOf", ""])
        elif what == 1:
            arguments.pop(key, None)
        elif what == 2:
            arguments[self.rng.choice(["origin", "note", "plant"])] = "somewhere"
        elif what in (3, 4, 5):
            arguments[key] = self.rng.choice(
                ["7", 7, 7.0, True, None, "2031-03-07", ["wifi"], {"phone": "1"}, "inside"]
            )
        elif what == 6:
            one["arguments"] = self.rng.choice(['{"origin": ', "", "nothing"])
            return
        elif what == 7:
            entry["tool_calls"].append(call(one["name"], **arguments))
        one["arguments"] = arguments if self.rng.random() < 0.3 else json.dumps(arguments)

    def trouble(self, run):  # noqa: C901
        sub = run["sub_agent_history"]
        what = self.rng.randrange(10)
        if what == 0:
            del run["label"]["1"]
        elif what == 1 and sub:
            self.rng.choice(sub)["tool_calls"] = None
        elif what == 2 and sub:
            self.rng.choice(sub).update(tool_calls=[], content=None)
        elif what == 3 and sub:
            self.rng.choice(sub)["tool_calls"] = [
                {"function": {"name": "fire", "arguments": "[1, 2]"}}
            ]
        elif what == 4 and sub:
            entry = self.rng.choice(sub)
            entry["step_id"] = int(entry["step_id"])
        elif what == 5:
            run["main_agent_history"].append({"step_id": 3, "content": "workflow_1: null"})
        elif what == 6:
            run["main_agent_history"].append(
                {"step_id": 3, "content": "5: x\nworkflow_1:\n  steps: []"}
            )
        elif what == 7:
            run["label"]["note"] = turn("a key that is no number")
        elif what == 8:
            gold = [key for key in run["label"] if key.endswith("-1")]
            if gold:
                calls = run["label"][gold[0]]["tool_calls"]
                text = calls[0]["function"]["arguments"]
                calls[0]["function"]["arguments"] = json.loads(text)
        else:
            gold = [key for key in run["label"] if key.endswith("-1")]
            if gold:
                del run["label"][self.rng.choice(gold)]["tool_calls"]


def scenario_file(name, number, seed, trouble=0.0):
    perturber = Perturber(seed)
    trials = perturber.rng.choice([1, 1, 2, 3])
    names = [f"run #{trial}" for trial in range(1, trials + 1)]
    if trials > 1 and perturber.rng.random() < trouble / 2:
        names[-1] = f"run #{trials + 1}"
    history = {trial: perturber.run(name, trouble) for trial in names}
    if perturber.rng.random() < trouble / 8:
        history = {}
    scenario_id = f"{name}-{number}"
    return {
        "scenario_id": scenario_id,
        "generated_at": "0.0",
        "usage": {},
        "history": history,
    }


def write_suite(directory, files, *, seed, trouble=0.0):
    rng = random.Random(seed)
    names = sorted(SCENARIOS)
    for number in range(files):
        name = names[number % len(names)]
        out_folder = directory / "out"
        folder = out_folder / ("first" if number % 3 else "second/deeper")
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(
            scenario_file(name, number, rng.randrange(1 << 30), trouble), ensure_ascii=False
        )
        if rng.random() < trouble / 10:
            text = rng.choice([text[: len(text) // 2], "{}", "", "[1]"])
        (folder / f"{number:03}_out.json").write_text(text, encoding="utf-8")
    cards = directory / "cards"
    cards.mkdir(exist_ok=True)
    for agent, tools in CARDS.items():
        card = {"agent_card": {"agent_id": agent}, "tools": tools}
        (cards / f"{agent}.json").write_text(json.dumps(card), encoding="utf-8")
    return directory / "out", cards
