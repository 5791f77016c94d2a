/* What promptfoo says of tool calls, run by Node: `presets.py` compares it with ours.

    node side_promptfoo.mjs PACKAGE CASES.jsonl ANSWERS.jsonl

PACKAGE is the unpacked package. Its assertions on tool calls stand in one bundle with everything else, which needs all its
dependencies; so they are taken out of it by the marks the bundler leaves, and run as they are. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const REGIONS = ["traceUtils.ts", "trajectoryUtils.ts", "toolCallF1.ts", "trajectory.ts"].map((name) => `src/assertions/${name}`);
const [home, given, answers] = process.argv.slice(2);
const built = path.join(home, "dist", "src");
const version = JSON.parse(fs.readFileSync(path.join(home, "package.json"), "utf8")).version;

function region(name) {
  for (const file of fs.readdirSync(built).filter((each) => each.endsWith(".js"))) {
    const text = fs.readFileSync(path.join(built, file), "utf8");
    const start = text.indexOf(`//#region ${name}\n`);
    if (start >= 0) return text.slice(start, text.indexOf("//#endregion", start));
  }
  throw new Error(`the package has no ${name}`);
}

const HANDLERS = ["handleToolCallF1", "handleTrajectoryToolUsed", "handleTrajectoryToolSequence", "handleTrajectoryToolArgsMatch"];
const parts = [
  'import { isDeepStrictEqual as isDeepStrictEqual$1 } from "node:util";',
  "function invariant(held, told) { if (!held) throw new Error(told); }",
  region("src/tracing/toolAttributes.ts"),
  ...REGIONS.map(region),
  `export { ${HANDLERS.join(", ")} };`,
];
const place = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "promptfoo-")), "rules.mjs");
fs.writeFileSync(place, parts.join("\n"));
const rules = await import(pathToFileURL(place).href);
fs.rmSync(path.dirname(place), { recursive: true });

function score(handler, value, spans, output) {
  const trace = { traceId: "t", spans };
  const params = { assertion: { value }, renderedValue: value, assertionValueContext: { trace }, inverse: false, baseType: "", output };
  try {
    return rules[handler](params).score;
  } catch (error) {
    return `raises ${error.message}`;
  }
}

function written(value) {
  if (Object.is(value, -0)) return "-0"; // which JSON.stringify does not keep
  if (Array.isArray(value)) return `[${value.map(written).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}:${written(each)}`).join(",")}}`;
}

const said = {};
function note(preset, id, value) {
  (said[preset] ??= {})[id] = value;
}

for (const line of fs.readFileSync(given, "utf8").split("\n").filter(Boolean)) {
  const { id, expected, predicted, tools } = JSON.parse(line);
  if (tools) {
    for (const preset of Object.keys(said)) note(preset, id, null);
    continue;
  }
  const text = (each) => (typeof each === "string" ? each : written(each ?? {}));
  // The name of a span is one of its aliases: no glob matches a line feed.
  const spans = predicted.map((call, at) => ({
    spanId: String(at), name: "\n", startTime: at, endTime: at,
    attributes: { "tool.name": call.name, "gen_ai.tool.call.arguments": text(call.arguments) },
  }));
  const output = predicted.map((call) => ({ type: "function", function: { name: call.name, arguments: text(call.arguments) } }));
  const names = expected.map((call) => call.name);
  note("promptfoo/tool-call-f1", id, score("handleToolCallF1", names, spans, output));
  note("promptfoo/trajectory:tool-used", id, score("handleTrajectoryToolUsed", names, spans));
  for (const mode of ["in_order", "exact"])
    note(`promptfoo/trajectory:tool-sequence/${mode}`, id, score("handleTrajectoryToolSequence", { mode, steps: names }, spans));
  for (const mode of ["partial", "exact"]) {
    const each = expected.map((call) =>
      score("handleTrajectoryToolArgsMatch", { name: call.name, arguments: call.arguments, mode }, spans));
    const raised = each.find((one) => typeof one === "string");
    const mean = each.length ? each.reduce((sum, one) => sum + one, 0) / each.length : 1;
    note(`promptfoo/trajectory:tool-args-match/${mode}`, id, raised ?? mean);
  }
}
const out = Object.entries(said).map(([preset, each]) => JSON.stringify({ preset, package: "promptfoo", version, said: each }));
fs.writeFileSync(answers, out.join("\n") + "\n");
