/* A sample as its row of results.jsonl has it, built as text: nothing of a row is ever parsed as HTML. */
var gradestackSample = (function () {
  "use strict";
  var MOST = 60, MOST_MESSAGES = 200, LONG = 900, SHORT = 72, limit = 10000, line = 0;
  var HIDDEN = new RegExp("[\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e" +
    "\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\ufffe\\uffff\\ud800-\\udfff\\u{e0000}-\\u{e007f}]", "gu");
  var STYLES = { user: "user", human: "user", assistant: "assistant", tool: "tool", function: "tool", system: "system", developer: "system" };

  /* Characters that hide or reorder text are made visible, as everywhere on the page. */
  function visible(text) {
    return text.replace(/\r\n/g, "\n").replace(HIDDEN, function (found) {
      var code = found.codePointAt(0), hex = code.toString(16).toUpperCase();
      return code < 32 ? String.fromCharCode(0x2400 + code) : code === 127 ? "\u2421" : "\u27e8U+" + hex.padStart(4, "0") + "\u27e9";
    });
  }
  function make(tag, css) {
    var element = document.createElement(tag);
    if (css) { element.className = css; }
    for (var place = 2; place < arguments.length; place++) {
      var part = arguments[place];
      if (part !== null && part !== "") { element.append(typeof part === "string" ? visible(part) : part); }
    }
    return element;
  }
  function map(value) { return value && typeof value === "object" && !Array.isArray(value) && !raw(value) ? value : {}; }
  function list(value) { return Array.isArray(value) ? value : []; }
  function raw(value) { return !!JSON.isRawJSON && JSON.isRawJSON(value); }
  function text(value) { return typeof value === "string" ? value : ""; }
  function has(value, key) { return Object.prototype.hasOwnProperty.call(value, key); }
  function compact(value) { var found = JSON.stringify(value); return found === undefined ? "" : found; }
  function spread(value) { var found = compact(value); return found.length > SHORT ? JSON.stringify(value, null, 2) : found; }
  function brief(value, most) {
    var found = (typeof value === "string" ? value : compact(value)).slice(0, 4 * most).replace(/\s+/g, " ").trim();
    return found.length > most ? found.slice(0, most - 1) + "…" : found;
  }
  /* A number that reads otherwise than it was written keeps its digits. */
  function parse(json) {
    return JSON.parse(json, function (key, value, context) {
      var kept = typeof value === "number" && JSON.rawJSON && context && String(value) !== context.source;
      return kept ? JSON.rawJSON(context.source) : value;
    });
  }
  function plain(value) { return raw(value) ? Number(value.rawJSON) : value; }
  function number(value) { var found = plain(value); return typeof found === "number" ? found : null; }
  function same(one, other) {
    one = plain(one);
    other = plain(other);
    if (one === other) { return true; }
    if (!one || !other || typeof one !== "object" || typeof other !== "object" || Array.isArray(one) !== Array.isArray(other)) { return false; }
    var keys = Object.keys(one);
    return keys.length === Object.keys(other).length && keys.every(function (key) { return has(other, key) && same(one[key], other[key]); });
  }
  function addCut(to, value, css) {
    var shown = make("div", css || "text", value.slice(0, limit));
    shown.dir = "auto";
    if (value) { to.append(shown); }
    if (value.length > limit) {
      to.append(make("p", "note", (value.length - limit).toLocaleString("en") + " more characters in results.jsonl, line " + line + "."));
    }
  }
  function code(value) {
    var found = spread(value);
    return make("code", "json", found.length > limit ? found.slice(0, limit) + "…" : found);
  }
  function shade(score) { return "q" + Math.max(0, Math.min(10, Math.floor(10 * score))); }
  function cell(score) { return make("span", "cell " + shade(score), score.toFixed(3)); }

  function reasonText(reason, unnamed) {
    var where = ((unnamed ? "" : text(reason.subject) + " ") + text(reason.pointer)).trim(), values = [];
    if (has(reason, "expected")) { values.push("expected " + brief(reason.expected, 100)); }
    if (has(reason, "actual")) { values.push("got " + brief(reason.actual, 100)); }
    var head = [text(reason.code), brief(where, 120)].filter(Boolean).join(" ");
    return [[head, values.join(", ")].filter(Boolean).join(": "), brief(text(reason.message), 240)].filter(Boolean).join(" – ");
  }
  function reasons(to, found, unnamed) {
    var texts = Array.from(new Set(found.map(function (each) { return reasonText(map(each), unnamed); }).filter(Boolean)));
    if (!texts.length) { return; }
    var held = make("ul", "reasons");
    texts.slice(0, MOST).forEach(function (each) { held.append(make("li", "", make("bdi", "", each))); });
    to.append(held);
  }
  function faultText(fault) {
    var head = [text(fault.category), text(fault.code), text(fault.type)].filter(Boolean).join(" ");
    return [head, brief(text(fault.message), 600)].filter(Boolean).join(": ");
  }

  /* Which call answers which expected one: by the grader that says so, else calls of one name in their order. */
  function answered(row, expected, made) {
    var grades = [map(row.grade)].concat(Object.keys(map(row.grades)).map(function (key) { return map(row.grades[key]); }));
    for (var place = 0; place < grades.length; place++) {
      var items = list(grades[place].items).map(map);
      if (items.length && items.length === expected.length && items.every(function (item) { return has(map(item.metadata), "call"); })) {
        return items.map(function (item) { return { call: made[map(item.metadata).call] ? map(item.metadata).call : -1, item: item }; });
      }
    }
    var free = made.map(function (_, index) { return index; });
    return expected.map(function (call) {
      var alike = free.filter(function (index) { return made[index].name === call.name; });
      var best = alike.find(function (index) { return same(made[index].arguments, call.arguments); });
      var found = best === undefined ? alike[0] : best;
      free = free.filter(function (index) { return index !== found; });
      return { call: found === undefined ? -1 : found, item: null };
    });
  }
  function addPair(to, call, answer, item) {
    var wanted = map(call.arguments), given = answer ? map(answer.call.arguments) : {}, score = item && number(item.score);
    var keys = Object.keys(wanted).concat(Object.keys(given).filter(function (key) { return !has(wanted, key); })), wrong = 0;
    var marks = item && list(item.reasons).map(function (each) { return text(map(each).pointer).split("/")[1]; });
    var body = make("tbody", "");
    keys.slice(0, MOST).forEach(function (key) {
      var name = key.replace(/~/g, "~0").replace(/\//g, "~1");
      var status = !has(wanted, key) ? "extra" : !answer || !has(given, key) ? "missing"
        : (marks ? marks.indexOf(name) >= 0 : !same(wanted[key], given[key])) ? "differs" : "same";
      wrong += status === "same" ? 0 : 1;
      var head = make("th", "", make("code", "", key), status !== "same" && answer ? make("small", "", " " + status) : null);
      head.scope = "row";
      body.append(make("tr", status, head,
        make("td", "", has(wanted, key) ? code(wanted[key]) : make("span", "soft", "not expected")),
        make("td", "", has(given, key) ? code(given[key]) : answer ? make("span", "soft", "not given") : null)));
    });
    var good = answer && (score === null ? !wrong && answer.call.name === call.name : score >= 1);
    var how = !answer ? "not called" : (good ? "matched" : "answered") + " by call " + (answer.number + 1) +
      (answer.call.name === call.name ? "" : " " + brief(answer.call.name, 120));
    var pair = make("div", "pair " + (good ? "matched" : answer ? "differs" : "absent"),
      make("p", "pair-head", make("span", "sign", good ? "✓" : answer ? "≠" : "✗"), " ", make("code", "tool", brief(call.name, 120)),
        " ", make("span", "how", how), " ", score === null ? null : cell(score)));
    if (answer && answer.call.arguments === null) {
      pair.append(make("p", "alert", make("b", "", "Arguments are no object"), " ", make("code", "", brief(answer.call.raw_arguments || "null", 300))));
    }
    if (keys.length) {
      var heads = ["Argument", "Expected"].concat(answer ? ["Called with"] : []).map(function (each) { var th = make("th", "", each); th.scope = "col"; return th; });
      if (!answer) { heads.push(make("td", "")); }
      pair.append(make("table", "arguments", make("thead", "", make.apply(null, ["tr", ""].concat(heads))), body));
    }
    reasons(pair, item ? list(item.reasons) : [], true);
    to.append(pair);
  }
  function addCalls(to, row) {
    var wanted = map(row.expected).calls, called = map(row.predicted).calls;
    var expected = list(wanted).map(map), made = list(called).map(map);
    if (!expected.length && !made.length && !(Array.isArray(wanted) && Array.isArray(called))) { return; }
    var counts = (Array.isArray(wanted) ? expected.length + " expected, " : "") + (Array.isArray(called) ? made.length + " made" : "none recorded");
    to.append(make("h4", "", "Calls ", make("small", "", counts)));
    if (Array.isArray(wanted) && !expected.length) { to.append(make("p", "", "No call was expected" + (made.length ? "." : ", and none was made."))); }
    var pairs = answered(row, expected, made), used = new Set(pairs.map(function (each) { return each.call; }));
    expected.slice(0, MOST).forEach(function (call, place) {
      var number = pairs[place].call;
      addPair(to, call, number >= 0 ? { call: made[number], number: number } : null, pairs[place].item);
    });
    var others = made.map(function (call, place) { return { call: call, place: place }; }).filter(function (each) { return !used.has(each.place); });
    if (others.length) {
      var held = make("ol", "");
      others.slice(0, MOST).forEach(function (each) {
        var item = make("li", "", make("code", "tool", brief(each.call.name, 120)), " ",
          make("code", "soft", brief(each.call.arguments === null ? text(each.call.raw_arguments) : each.call.arguments, 400)));
        item.value = each.place + 1;
        held.append(item);
      });
      to.append(fold("others", expected.length ? "Other calls made" : "Calls made", String(others.length), others.length < 4, held));
    }
    if (expected.length > MOST || others.length > MOST) { to.append(make("p", "note", "More calls in results.jsonl, line " + line + ".")); }
  }
  function fold(css, title, small, open, content) {
    var held = make("details", css, make("summary", "", title + " ", make("small", "", small)), content);
    held.open = open;
    return held;
  }

  function addGrades(to, row) {
    var grades = map(row.grades), keys = Object.keys(grades).sort(), main = compact(row.grade);
    if (!keys.length && row.grade) { grades = { grade: row.grade }; keys = ["grade"]; }
    keys.sort(function (one, other) { return (compact(grades[other]) === main) - (compact(grades[one]) === main); });
    if (keys.length) { to.append(make("h4", "", "Grades")); }
    keys.forEach(function (key) {
      var grade = map(grades[key]), score = grade.state === "graded" ? number(grade.score) : null;
      var head = make("p", "grade-head", make("code", "", brief(key, 80)), " ", score === null ? make("span", "cell none", text(grade.state)) : cell(score));
      if (typeof grade.passed === "boolean") { head.append(" ", make("span", "tag", grade.passed ? "success" : "no success")); }
      if (grade.label !== undefined && grade.label !== null) {
        var gold = grade.gold === undefined || grade.gold === null ? "" : ", expected " + brief(grade.gold, 80);
        head.append(" ", make("span", "soft", "label ", make("bdi", "", brief(grade.label, 80) + gold)));
      }
      Object.keys(map(grade.parts)).sort().slice(0, MOST).forEach(function (name) {
        var value = number(grade.parts[name]);
        head.append(" ", make("span", "part", brief(name, 60).replace(/_/g, " ") + " ", make("b", "", value === null ? "n/a" : value.toFixed(3))));
      });
      var held = make("div", "grade", head), fault = faultText(map(grade.fault));
      if (fault) { held.append(make("p", "alert", fault)); }
      addCut(held, text(grade.rationale), "text rationale");
      reasons(held, list(grade.reasons).concat(...list(grade.items).map(function (item) { return list(map(item).reasons); })));
      to.append(held);
    });
  }

  function content(value) {
    if (Array.isArray(value)) {
      return value.map(function (part) { return typeof part === "string" ? part : typeof map(part).text === "string" ? part.text : compact(part); }).join("\n");
    }
    return value === null || value === undefined ? "" : typeof value === "string" ? value : spread(value);
  }
  function addMessage(to, message) {
    var style = has(STYLES, text(message.role).toLowerCase()) ? STYLES[message.role.toLowerCase()] : "other", body = make("div", ""), said = content(message.content);
    if (said.length > LONG) {
      var inside = make("div", "");
      addCut(inside, said);
      body.append(fold("fold", brief(said, 160), said.length.toLocaleString("en") + " characters", false, inside));
    } else { addCut(body, said); }
    list(message.tool_calls).slice(0, MOST).forEach(function (call) {
      var named = map(map(call).function), given = (has(named, "name") ? named : map(call)), own = given.arguments;
      var held = make("div", "call", make("code", "tool", brief(given.name || "(no name)", 120)));
      addCut(held, typeof own === "string" ? own : own === null || own === undefined ? "" : spread(own), "text code");
      body.append(held);
    });
    to.append(make("div", "m from-" + style, make("b", "role", brief(message.role || "unknown role", 40)), body));
  }
  function addTalk(to, row) {
    var turns = list(row.trajectory).map(function (turn) { return Array.isArray(turn) ? turn : [turn]; });
    var messages = [].concat(...turns).map(map);
    if (!has(row, "trajectory")) {
      to.append(make("h4", "", "Conversation"), make("p", "note", "It was left in the input of this run: " + place(row) + "."));
    }
    if (!messages.length) { return; }
    var held = make("div", "");
    messages.slice(0, MOST_MESSAGES).forEach(function (message) { addMessage(held, message); });
    if (messages.length > MOST_MESSAGES) { held.append(make("p", "note", "More messages in results.jsonl, line " + line + ".")); }
    to.append(fold("talk", "Conversation", messages.length + " message" + (messages.length === 1 ? "" : "s"), true, held));
  }
  function place(row) {
    var source = map(row.source), number = plain(source.line);
    return brief(text(source.file), 200) + (typeof number === "number" ? ", line " + number : "");
  }
  function addTexts(to, title, values) {
    var texts = values.filter(function (value) { return value !== null && value !== undefined && value !== ""; }).map(content);
    if (texts.length) { to.append(make("h4", "", title)); }
    texts.slice(0, MOST).forEach(function (each) { addCut(to, each, "text quote"); });
  }

  return function (json, number, longest) {
    var row = map(parse(json)), held = make("div", "inside"), expected = map(row.expected), predicted = map(row.predicted), task = map(row.sample);
    line = number;
    limit = longest;
    if (row.error) { held.append(make("p", "alert", make("b", "", "Recorded run failed"), " ", faultText(map(row.error)))); }
    addTexts(held, "Task", Array.isArray(task.input) ? task.input : [task.input]);
    addTexts(held, "Expected answer", [expected.text || task.ground_truth]);
    if (!Array.isArray(predicted.calls)) { addTexts(held, "Answer", [row.submission]); }
    [["Expected label", expected.label], ["Predicted label", predicted.label], ["Expected plan", expected.plan], ["Predicted plan", predicted.plan]].forEach(function (pair) {
      if (pair[1] !== null && pair[1] !== undefined) { held.append(make("h4", "", pair[0]), code(pair[1])); }
    });
    addCalls(held, row);
    addGrades(held, row);
    addTalk(held, row);
    held.append(make("p", "note where", "Read from " + place(row) + ". Row " + number.toLocaleString("en") + " of results.jsonl."));
    return held;
  };
})();
