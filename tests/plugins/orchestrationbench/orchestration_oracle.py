"""OrchestrationBench grading once more.

Slow, plain, one function per rule, sharing no code with the package.
"""

import contextlib
import itertools
import json
import re
from fractions import Fraction

import yaml

MARKS = ("AWAITING_USER_INPUT", "TOOL_CONSTRAINT_VIOLATION")
MATRIX = [f"{kind}_{side}" for side in ("reject", "fc") for kind in ("TP", "TN", "FP", "FN")]


# --- plans ----------------------------------------------------------------------------------------


def read_plan(text):  # noqa: C901
    """The first of the seven forms that gives an object with a workflow_ key."""
    if not isinstance(text, str):
        return {}
    text = text.split("</think>")[-1]
    attempts = []
    if match := re.search(r"```json\s*(\{.*?\})\s*```", text, re.DOTALL):
        attempts.append((json.loads, match.group(1)))
    if match := re.search(r'\{[^}]*"workflow_[^}]*\}(\s*,\s*\{[^}]*"workflow_[^}]*\})*', text):
        attempts.append((json.loads, match.group(0)))
    if re.search(r'"workflow_\d+":\s*\{[^}]*\}', text):
        index = text.index('"workflow_')
        begin = text.rfind("{", 0, index)
        ends = [
            end
            for end in range(begin + 1, len(text) + 1)
            if text[begin:end].count("{") == text[begin:end].count("}")
        ]
        if begin >= 0 and ends:
            first_end = ends[0]
            attempts.append((json.loads, text[begin:first_end]))
    attempts.append((json.loads, text))
    if match := re.search(r"```yaml\s*(workflow_.*?)\s*```", text, re.DOTALL):
        attempts.append((yaml.safe_load, match.group(1)))
    if "workflow_" in text:
        attempts.append((yaml.safe_load, text))
        if text.strip().startswith("workflow_"):
            shards = text.strip().split("\n")
            attempts.append((yaml.safe_load, "".join(map(reindent, shards))))
    for load, candidate in attempts:
        try:
            value = load(candidate)
        except Exception:  # noqa: BLE001, S112 - the parsers raise much
            continue
        if isinstance(value, dict) and any(str(key).startswith("workflow_") for key in value):
            return value
    return {}


def reindent(line):
    bare = line.strip()
    if bare.startswith("workflow_"):
        return line + ":\n"
    if bare.startswith("-"):
        return "    " + bare + "\n"
    return ("  " if ":" in line else "      ") + bare + "\n"


def structural_graph(workflows):
    nodes = []
    edges = set()
    for name, fields in workflows.items():
        nodes.append(name)
        depends_on = fields.get("depends_on")
        deps = depends_on or fields.get("depend_on") or []
        for dep in [deps] if isinstance(deps, str) else deps:
            nodes.append(dep)
            edges.add((dep, name))
    return [(node, None) for node in dict.fromkeys(nodes)], {
        ((a, None), (b, None)) for a, b in edges
    }


def component_graph(workflows):
    def steps(name):
        steps_found = (workflows.get(name) or {}).get("steps") or []
        return [
            (s.get("agent_id") or s.get("name"), s.get("status", "UNK"))
            for s in steps_found
            if s.get("agent_id") or s.get("name")
        ]

    nodes = []
    edges = set()
    for name in workflows:
        nodes += steps(name)
        edges |= {(a, b) for a, b in itertools.pairwise(steps(name)) if a != b}
    for name, fields in workflows.items():
        depends_on = fields.get("depends_on")
        deps = depends_on or fields.get("depend_on") or []
        for dep in [deps] if isinstance(deps, str) else deps:
            if steps(name) and steps(dep):
                last_step = steps(dep)[-1]
                first_step = steps(name)[0]
                edges.add((last_step, first_step))
    return list(dict.fromkeys(nodes)), edges


def brute_distance(left, right, price):
    """Graph edit distance by trying every way to map nodes, deletions included."""
    (nodes1, edges1), (nodes2, edges2) = left, right
    padded = list(nodes2) + [None] * len(nodes1)
    best = None
    orders = itertools.permutations(padded, len(nodes1))
    for images in set(orders):
        pairs = zip(nodes1, images, strict=True)
        image = dict(pairs)
        cost = sum(
            Fraction(1) if image_node is None else price(here, image_node)
            for here, image_node in image.items()
        )
        cost += len(nodes2) - sum(image_node is not None for image_node in images)
        kept_edges = sum((image[a], image[b]) in edges2 for a, b in edges1)
        cost += len(edges1) + len(edges2) - 2 * kept_edges
        if best is None:
            best = cost
        else:
            best = min(best, cost)
    return best


def component_price(agent, status):
    def price(a, b):
        if a == b:
            return Fraction(0)
        if a[1] == b[1]:
            return Fraction(str(agent))
        if a[0] == b[0]:
            return Fraction(str(status))
        return Fraction(1)

    return price


class Oracle:
    """Figures of a set of scenario files.

    Distances can be replaced.
    """

    def __init__(self, agent=0.8, status=0.5, distance=brute_distance):
        self.agent = agent
        self.status = status
        self.distance = distance
        self.cache = {}

    def similarity(self, left, right, price, kind):
        key = (kind, tuple(left[0]), frozenset(left[1]), tuple(right[0]), frozenset(right[1]))
        if key not in self.cache:
            left_size = len(left[0]) + len(left[1])
            most = left_size + len(right[0]) + len(right[1])
            distance = 0.0
            if most:
                distance = float(self.distance(left, right, price))
            self.cache[key] = 1 - distance / most if most else 1.0
        return self.cache[key]

    def plan_scores(self, predicted, gold):
        keep = []
        for plan in (predicted, gold):
            keep.append(
                {
                    k: v if isinstance(v, dict) else {}
                    for k, v in plan.items()
                    if "workflow" in str(k)
                }
            )
        structural_graphs = map(structural_graph, keep)
        structural = self.similarity(*structural_graphs, lambda a, b: 0, "s")
        component_graphs = map(component_graph, keep)
        component = self.similarity(
            *component_graphs, component_price(self.agent, self.status), "c"
        )
        return 0.5 * structural + 0.5 * component, structural, component

    def run_plans(self, run):
        """Figures per gold plan, None for a failed one."""
        predicted = {}
        for entry in run["main_agent_history"]:
            step = entry.get("step_id")
            if step is None:
                continue
            if isinstance(step, str) and step.isdigit():
                step = int(step)
            plan = read_plan(entry.get("content"))
            if plan:
                predicted[step] = plan
        figures = []
        for key, entry in run["label"].items():
            if not key.isdigit() or "workflow_" not in str(entry.get("content")):
                continue
            if entry["role"] != "assistant" or "agent_id" in entry:
                continue
            gold = read_plan(entry["content"])
            if not gold:
                continue
            if int(key) in predicted:
                figures.append(self.plan_scores(predicted[int(key)], gold))
            else:
                figures.append(None)
        return figures

    def file_plans(self, data):
        history = data["history"].values()
        figures = [plan for run in history for plan in self.run_plans(run)]
        scores = [figure or (0.0, 0.0, 0.0) for figure in figures]
        n = len(figures)
        failed = figures.count(None)

        def share(position, divisor):
            if divisor:
                total = sum(Fraction(score[position]) for score in scores)
                return float(total) / divisor
            return None

        return {
            "with": share(0, n),
            "without": share(0, n - failed),
            "structural": share(1, n),
            "component": share(2, n),
            "failed": failed,
            "steps": n,
        }

    # --- arguments --------------------------------------------------------------------------------

    def bag(self, calls):
        names, values = [], {}
        for call in calls:
            names.append(call["function"]["name"])
            raw = call["function"]["arguments"]
            if isinstance(raw, str):
                with contextlib.suppress(json.JSONDecodeError):
                    raw = json.loads(raw)
            if not isinstance(raw, dict):
                values.setdefault("error", []).append(
                    f"Invalid JSON in arguments: {call['function']['arguments']}"
                )
                continue
            for key, value in raw.items():
                values.setdefault(key, []).append(value)
        return names, values

    def gold(self, label, step):
        """(class, bag), or None when it cannot be read."""
        if f"{step}-1" in label:
            key = f"{step}-1"
        else:
            key = step
        if key not in label:
            return "GENERAL", None
        entry = label[key]
        if "tool_calls" in entry:
            return "FC", self.bag(entry["tool_calls"])
        if key != step:
            return None
        return self.marked(entry["content"]) or "GENERAL", None

    def marked(self, text):
        return next((mark for mark in MARKS if mark in text), None)

    def predicted(self, entry):
        calls = entry["tool_calls"] or []
        content = entry["content"] or ""
        if len(calls):
            bag = self.bag(calls)
            return self.marked(bag[1]) or "FC", bag
        rejected = self.marked(content)
        return (rejected or "FAILED"), None

    def run_arguments(self, run):
        label = run["label"]
        counts = dict.fromkeys([*MATRIX, "mismatch", "failed", "rejections", "calls", "perfect"], 0)
        pairs = []
        for entry in run["sub_agent_history"]:
            step = str(entry["step_id"])
            gold_call = self.gold(label, step)
            if gold_call is None:
                continue
            (gold, gold_bag), (predicted, bag) = gold_call, self.predicted(entry)
            self.count(counts, gold, predicted)
            if gold == predicted == "FC":
                pairs.append((gold_bag, bag))
        for key, entry in label.items():
            if "-" in key or "agent_id" not in entry:
                continue
            gold_call = self.gold(label, key)
            if gold_call is None:
                continue
            counts["calls" if f"{key}-1" in label else "rejections"] += 1
            answered = {str(history_entry["step_id"]) for history_entry in run["sub_agent_history"]}
            if key not in answered:
                self.count(counts, gold_call[0], "FAILED")
        names = [self.set_f1(ours[0], theirs[0]) for theirs, ours in pairs]
        keys = [self.set_f1(ours[1], theirs[1]) for theirs, ours in pairs]
        values = [self.value_f1(ours, theirs) for theirs, ours in pairs]
        counts["perfect"] = sum(
            k == 1 and v in (1, None) for k, v in zip(keys, values, strict=True)
        )
        values = [value for value in values if value is not None]
        means = []
        for part in (names, keys, values):
            means.append(sum(part) / len(part) if part else None)
        means[:2] = [None if mean is None else round(mean, 4) for mean in means[:2]]
        return counts, means

    def count(self, counts, gold, predicted):
        if predicted == "FAILED":
            cells = ["failed", "FN_fc" if gold == "FC" else "TN_fc"]
        elif gold == "FC":
            cells = ["TN_reject", "TP_fc"] if predicted == "FC" else ["FP_reject", "FN_fc"]
        elif predicted == "FC":
            cells = ["FN_reject", "FP_fc"]
        else:
            cells = ["TP_reject", "TN_fc"] + (["mismatch"] if gold != predicted else [])
        for cell in cells:
            counts[cell] += 1

    def set_f1(self, ours, theirs):
        ours = set(ours)
        theirs = set(theirs)
        if not ours and not theirs:
            return 1.0
        both = len(ours & theirs)
        if not both:
            return 0.0
        p = both / len(ours)
        r = both / len(theirs)
        return 2 * (p * r) / (p + r)

    def text(self, value):
        if isinstance(value, list):
            return str(sorted(self.text(item) for item in value))
        if isinstance(value, dict):
            texts_by_key = {}
            for key, item in sorted(value.items()):
                texts_by_key[key] = self.text(item)
            return str(texts_by_key)
        return str(value)

    def texts(self, values):
        return {self.text(value) for value in (values if isinstance(values, list) else [values])}

    def value_f1(self, ours, theirs):
        tp = fp = fn = 0
        for key in {*ours[1], *theirs[1]}:
            if key not in ours[1]:
                fn += len(theirs[1][key])
            elif key not in theirs[1]:
                fp += len(ours[1][key])
            else:
                p = self.texts(ours[1][key])
                g = self.texts(theirs[1][key])
                tp += len(p & g)
                fp += len(p - g)
                fn += len(g - p)
        if not tp + fp + fn:
            return None
        p = 0.0
        if tp + fp:
            p = tp / (tp + fp)
        r = 0.0
        if tp + fn:
            r = tp / (tp + fn)
        if p + r:
            return 2 * (p * r) / (p + r)
        return 0.0

    def file_arguments(self, data):
        totals = dict.fromkeys([*MATRIX, "mismatch", "failed", "rejections", "calls", "perfect"], 0)
        means = ([], [], [])
        for run in data["history"].values():
            counts, trial = self.run_arguments(run)
            for name, number in counts.items():
                totals[name] += number
            for part, mean in zip(means, trial, strict=True):
                part.append(mean)
        figures = []
        for part in means:
            defined = [mean for mean in part if mean is not None]
            total = 0.0
            for mean in defined:
                total += mean
            figures.append(round(total / len(defined), 4) if defined else None)
        return totals, figures

    # --- everything -------------------------------------------------------------------------------

    def file(self, path):
        """Figures of one file, or None when it cannot be read or holds no run."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            return None
        if not isinstance(data, dict) or not data.get("history"):
            return None
        plans = self.file_plans(data)
        counts, (name, key, value) = self.file_arguments(data)
        return {
            "plans": plans,
            "counts": counts,
            "name": name,
            "key": key,
            "value": value,
        }

    def overall(self, paths):
        files = [self.file(path) for path in paths]
        sound = [figures for figures in files if figures is not None]
        names = sound[0]["counts"]
        total = {name: sum(figures["counts"][name] for figures in sound) for name in names}

        def mean(values):
            values = [value for value in values if value is not None]
            if values:
                fractions = map(Fraction, values)
                return float(sum(fractions) / len(values))
            return None

        def f1(side):
            tp, fp, fn = (total[f"{kind}_{side}"] for kind in ("TP", "FP", "FN"))
            p = 0
            if tp + fp:
                p = tp / (tp + fp)
            r = 0
            if tp + fn:
                r = tp / (tp + fn)
            if p + r:
                return 2 * (p * r) / (p + r)
            return 0

        name, key, value = (
            mean([figures[part] for figures in sound]) for part in ("name", "key", "value")
        )
        plans = {}
        for part in ("with", "without", "structural", "component"):
            plans[part] = mean([figures["plans"][part] for figures in sound])
        decision = round((f1("reject") + f1("fc")) / 2, 4)
        fc = round(((name or 0) + (key or 0) + (value or 0)) / 3, 4)
        plan = round(plans["with"] or 0, 4)
        average = round((decision + fc + plan) / 3, 4)
        key_metrics = {
            "Average": average,
            "Call Rejection Classification Accuracy": decision,
            "FC": fc,
            "Plan": plan,
        }
        plan_failures = sum(figures["plans"]["failed"] for figures in sound)
        plan_steps = sum(figures["plans"]["steps"] for figures in sound)
        return {
            "files": len(files),
            "successful": len(sound),
            "counts": total,
            "name": name,
            "key": key,
            "value": value,
            "plans": plans,
            "plan_failures": plan_failures,
            "plan_steps": plan_steps,
            "keys": key_metrics,
        }
