"""Builders of small tau2-bench results."""

import json
from types import SimpleNamespace

import pytest


def say(role, content, **more):
    return {"role": role, "content": content, "tool_calls": None, **more}


def call(identifier, name, requestor="assistant", **arguments):
    return {"id": identifier, "name": name, "arguments": arguments, "requestor": requestor}


def result(identifier, content, **more):
    return {
        "role": "tool",
        "id": identifier,
        "content": content,
        "requestor": "assistant",
        "error": False,
        **more,
    }


def action(name, compare_args=None, requestor="assistant", **arguments):
    return {
        "action_id": name,
        "name": name,
        "arguments": arguments,
        "requestor": requestor,
        "compare_args": compare_args,
    }


def task(identifier, *actions, criteria=True):
    """Return a task; without criteria it has none."""
    about = None
    if criteria:
        about = {"actions": list(actions), "reward_basis": ["DB"]}
    return {
        "id": identifier,
        "user_scenario": {"instructions": "Ask."},
        "evaluation_criteria": about,
    }


def simulation(task_id="t", trial=0, messages=(), reward=1.0, ended="user_stop", **more):
    reward_info = None if reward is None else {"reward": reward}
    return {
        "id": f"{task_id}-{trial}",
        "task_id": task_id,
        "termination_reason": ended,
        "reward_info": reward_info,
        "messages": list(messages),
        "trial": trial,
        "seed": 1,
        **more,
    }


def results(*simulations, tasks=None, **more):
    run_info = {
        "num_trials": 1,
        "agent_info": {"implementation": "llm_agent", "llm": "rail-1"},
        "environment_info": {"domain_name": "rail", "policy": "Sell tickets.", "tool_defs": None},
    }
    document = {
        "timestamp": "2026-01-01",
        "info": run_info,
        "tasks": [task("t")] if tasks is None else tasks,
    }
    return document | {"simulations": list(simulations)} | more


@pytest.fixture
def tau2(tmp_path):
    """Return the builders, and a function that writes results to a file."""

    def write(*simulations, name="results.json", indent=2, **more):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(results(*simulations, **more), indent=indent)
        path.write_text(text, encoding="utf-8")
        return path

    def directory(*simulations, name="run", index=True, **more):
        folder = tmp_path / name
        simulations_folder = folder / "simulations"
        simulations_folder.mkdir(parents=True)
        document = results(**more)
        del document["simulations"]
        if index:
            document["simulation_index"] = [
                {"id": entry["id"], "task_id": entry["task_id"]} for entry in simulations
            ]
        results_path = folder / "results.json"
        results_path.write_text(json.dumps(document), encoding="utf-8")
        for entry in simulations:
            text = json.dumps(entry)
            (folder / "simulations" / f"{entry['id']}.json").write_text(text, encoding="utf-8")
        return folder

    return SimpleNamespace(
        say=say,
        call=call,
        result=result,
        action=action,
        task=task,
        simulation=simulation,
        results=results,
        write=write,
        directory=directory,
    )
