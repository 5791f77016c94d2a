/* A sample as its row of results.jsonl has it, on every page; nothing of a row is ever parsed as HTML. */
var gradestackSample = (function () {
  "use strict";
  var MOST = 60, MOST_REASONS = 100, MOST_MESSAGES = 200, MOST_ITEMS = 200, LONG = 900, LINES = 12, limit = 10000, line = 0;
  function file() { return "results.jsonl" + (line ? ", line " + line + "." : "."); }
  var STYLES = { user: "user", human: "user", assistant: "assistant", tool: "tool", function: "tool", system: "system", developer: "system" };
  var of = gradestackValues, make = of.make, map = of.map, list = of.list, text = of.text, has = of.has, brief = of.brief, number = of.number;
  var natural = new Intl.Collator("en", { numeric: true }).compare;

  function given(value) { return value !== null && value !== undefined; }
  function addCut(to, value, css) {
    if (value) { to.append(make("div", css || "text", value.slice(0, limit))); to.lastChild.dir = "auto"; }
    if (value.length > limit) { to.append(make("p", "note", of.count(value.length - limit) + " more characters in " + file())); }
  }
  function fold(css, title, small, open, content) {
    var held = make("details", css, make("summary", "", title, small && " ", small && make("small", "", small)), content);
    held.open = open;
    return held;
  }
  function heads(names) {
    return names.reduce(function (row, name) {
      row.append(name === null ? make("td", "") : make("th", "", name));
      if (name !== null) { row.lastChild.scope = "col"; }
      return row;
    }, make("tr", ""));
  }
  function scoped(cell) { cell.scope = "row"; return cell; }
  function shade(score) {
    for (var step = 10; step > 0 && score < step / 10; step--) { /* the tenth it is in */ }
    return "q" + step;
  }
  function stateOf(grade) { return text(grade.state) || (of.amount(grade.score) === null ? "skipped" : "graded"); }
  function stateWord(state) { return state === "skipped" ? "not applicable" : state === "failed" ? "error" : state; }
  function scoreOf(grade) { return stateOf(grade) === "graded" ? of.amount(grade.score) : null; }

  function reasonText(reason, unnamed, known) {
    var where = ((unnamed ? "" : text(reason.subject)) + " " + text(reason.pointer)).trim();
    var head = [text(reason.code), brief(where, 120)].filter(Boolean).join(" ");
    var values = [["expected", "expected"], ["got", "actual"]].filter(function (pair) { return has(reason, pair[1]); })
      .map(function (pair) { return pair[0] + " " + brief(of.compact(reason[pair[1]]), 100); }).join(", ");
    var found = [head, values].filter(Boolean).join(": "), message = brief(text(reason.message), 240);
    return message && found && message !== brief(known || "", 240) ? found + " – " + message : found || message;
  }
  function reasonList(texts) {
    return texts.reduce(function (held, each) { held.append(make("li", "", make("bdi", "", each))); return held; }, make("ul", "reasons"));
  }
  function faultText(fault) {
    if (!Object.keys(fault).length) { return ""; }
    var kind = text(fault.type), message = brief(text(fault.message), 600);
    var head = [text(fault.category), text(fault.code)].filter(Boolean).map(function (part) { return brief(part, 80); }).join(" ");
    var found = kind ? head + " (" + brief(kind, 80) + ")" : head;
    return [found, message].filter(Boolean).join(": ") || brief(fault, 300);
  }

  /* Which call answers which expected one: by the grader that says so, else equal ones first, then those of one name. */
  function itemsOf(row, size) {
    var grades = map(row.grades), all = [row.grade].concat(Object.keys(grades).sort().map(function (key) { return grades[key]; }));
    return all.map(function (grade) { return list(map(grade).items).map(map); }).find(function (items) {
      return size && items.length === size && items.every(function (item) { return has(map(item.metadata), "call"); });
    }) || null;
  }
  function paired(expected, made) {
    var answers = expected.map(function () { return -1; }), used = new Set();
    function keyOfName(call) { return of.keyOf(call.name); }
    function keyOfCall(call) { return keyOfName(call) + " " + of.keyOf(call.arguments); }
    [keyOfCall, keyOfName].forEach(function (keyOf) {
      var free = new Map();
      for (var last = made.length - 1; last >= 0; last--) {
        if (used.has(last)) { continue; }
        var key = keyOf(made[last]);
        if (!free.has(key)) { free.set(key, []); }
        free.get(key).push(last);
      }
      expected.forEach(function (call, place) {
        var places = answers[place] < 0 && free.get(keyOf(call));
        if (places && places.length) { answers[place] = places.pop(); used.add(answers[place]); }
      });
    });
    return answers;
  }
  /* One call instead of another: the only expected one without an answer, and the only one that answers none. */
  function withRest(answers, made) {
    var used = new Set(answers), alone = answers.indexOf(-1);
    used.delete(-1);
    if (made.length - used.size === 1 && alone >= 0 && answers.indexOf(-1, alone + 1) < 0) {
      answers[alone] = made.findIndex(function (_, index) { return !used.has(index); });
    }
    return answers;
  }
  function nameOf(call) { return given(call.name) && call.name !== "" ? brief(call.name, 120) : "(no name)"; }
  function went(call) {
    var status = text(call.status).replace(/_/g, " "), took = of.amount(call.seconds);
    var byTable = text(call.error) && text(call.error_type).startsWith("errors@");
    var error = (byTable ? ["error"] : ["error_type", "error"]).map(function (key) { return brief(text(call[key]), 300); }).filter(Boolean).join(": ");
    var known = ["", "ok", "error"].indexOf(status) >= 0;
    return [
      text(call.author) && "by " + brief(call.author, 60),
      text(call.server) && "on " + brief(call.server, 60),
      error ? (known ? "failed" : brief(status, 20)) + ": " + error : status === "ok" ? "" : brief(status, 20),
      took === null ? "" : number(call.seconds) + " s"
    ].filter(Boolean).join(", ");
  }
  function argumentsOf(wanted, own, marks) {
    var names = Object.keys(wanted).slice(0, MOST), more = Object.keys(own || {}).filter(function (key) { return !has(wanted, key); });
    return names.map(function (key) {
      if (!own || !has(own, key)) { return { key: key, status: "missing", left: of.code(wanted[key], own ? [[]] : [], limit), right: null }; }
      var found = of.differences(wanted[key], own[key]);
      if (marks) {
        var left = marks.filter(function (mark) { return mark[0] === key; }).map(function (mark) { return mark.slice(1); });
        found = [left, left.length ? found[1] : []];
      }
      return { key: key, status: found[0].length ? "differs" : "same", left: of.code(wanted[key], found[0], limit), right: of.code(own[key], found[1], limit) };
    }).concat(more.slice(0, MOST).map(function (key) {
      var blamed = marks && marks.some(function (mark) { return mark.length === 1 && mark[0] === key; });
      return { key: key, status: "extra", left: null, right: of.code(own[key], blamed ? [[]] : [], limit) };
    }));
  }
  function pathOf(pointer) {
    if (pointer[0] !== "/") { return []; }
    return pointer.slice(1).split("/").map(function (part) { return part.replace(/~1/g, "/").replace(/~0/g, "~"); });
  }
  function pairOf(call, place, made, item) {
    var answer = place >= 0 ? made[place] : null, said = item ? list(item.reasons).map(map) : [];
    var score = item && (item.outcome === undefined || item.outcome === "graded") ? of.amount(item.score) : null;
    var own = answer && of.isMap(answer.arguments) ? answer.arguments : null, unreadable = answer && !own;
    var found = argumentsOf(map(call.arguments), own, score === null ? null : said.map(function (each) { return pathOf(text(each.pointer)); }));
    var equal = answer && !unreadable && of.same(call.name, answer.name) && found.every(function (each) { return each.status === "same"; });
    var status = !answer ? "absent" : (score === null ? equal : score >= 1) ? "matched" : "differs", alike = answer && nameOf(answer) === nameOf(call);
    var how = make("span", "how", status === "absent" ? "not called" : (status === "matched" ? "matched by call " : "closest call: no. ") + (place + 1));
    var held = make("div", "pair " + status, make("p", "pair-head", make("span", "sign", { matched: "✓", differs: "≠", absent: "✗" }[status]), " ",
      make("code", "tool", nameOf(call)), " ", how, score === null ? null : " ", score === null ? null : make("span", "cell " + shade(score), number(item.score))));
    held.querySelector(".sign").ariaHidden = "true";
    if (answer && went(answer)) { held.append(make("p", "note", make("bdi", "", went(answer)))); }
    if (unreadable) {
      held.append(make("p", "alert", make("b", "", "Arguments are no object"), " ", make("code", "", brief(answer.raw_arguments || "null", 300))));
    }
    if (status === "differs" && !alike) {
      found.unshift({ key: "tool", status: "differs", left: make("code", "", nameOf(call)), right: make("code", "", nameOf(answer)) });
    }
    if (found.length) {
      var body = make("tbody", "");
      found.forEach(function (each) {
        body.append(make("tr", each.status, scoped(make("th", "", make("code", "", each.key), each.status !== "same" && answer ? " " : null,
          each.status !== "same" && answer ? make("small", "", each.status) : null)),
        make("td", "", each.left || make("span", "soft", "not expected")),
        make("td", "", each.right || (answer ? make("span", "soft", "missing") : null))));
      });
      held.append(make("table", "arguments", make("thead", "", heads(["Argument", "Expected", answer ? "Called with" : null])), body));
    }
    var told = said.filter(function (each) { return answer || each.message; }).map(function (each) { return reasonText(each, true); });
    if (told.length) { held.append(reasonList(told)); }
    return held;
  }
  function addCalls(to, row, items) {
    var wanted = map(row.expected).calls, called = map(row.predicted).calls, known = given(wanted), recorded = given(called);
    var expected = list(wanted).map(map), made = list(called).map(map);
    if (!expected.length && !made.length && !(known && recorded)) { return; }
    to.append(make("h4", "", "Calls ", make("small", "", (known ? expected.length + " expected, " : "") +
      (recorded ? made.length + " made" : "none recorded") + (expected.length && !items ? "; paired by name and arguments" : ""))));
    if (known && !expected.length) { to.append(make("p", "", "No call was expected" + (made.length ? "." : ", and none was made."))); }
    var answers = !items ? paired(expected, made) : items.map(function (item) {
      var place = map(item.metadata).call;
      return Number.isInteger(place) && place >= 0 && place < made.length ? place : -1;
    });
    withRest(answers, made);
    expected.slice(0, MOST).forEach(function (call, place) { to.append(pairOf(call, answers[place], made, items && items[place])); });
    var used = new Set(answers), rest = made.map(function (_, place) { return place; }).filter(function (place) { return !used.has(place); });
    if (rest.length) {
      var held = make("ol", ""), shown = rest.slice(0, MOST), room = Math.min(limit, 400);
      shown.forEach(function (place) {
        var call = made[place], own = of.isMap(call.arguments) ? of.compact(call.arguments) : text(call.raw_arguments), how = went(call);
        var item = make("li", "", make("code", "tool", nameOf(call)), " ", make("code", "soft", own.slice(0, room) + (own.length > room ? "…" : "")));
        if (how) { item.append(" ", make("small", "", make("bdi", "", how))); }
        item.value = place + 1;
        held.append(item);
      });
      to.append(fold("others", expected.length ? "Other calls made" : "Calls made", String(shown.length), !expected.length || shown.length < 4, held));
    }
    var left = Math.max(0, expected.length - MOST) + Math.max(0, rest.length - MOST);
    if (left) { to.append(make("p", "note", left + " more calls in " + file())); }
  }

  function label(value) { return given(value) ? brief(value, 80) : ""; }
  function addLabels(to, name, gold) {
    to.append(make("bdi", "", name || "–"));
    if (gold) { to.append(", expected ", make("bdi", "", gold)); }
  }
  function addItems(to, items) {
    var body = make("tbody", "");
    items.slice(0, MOST_ITEMS).forEach(function (item) {
      var state = stateOf({ state: item.outcome, score: item.score }), score = state === "graded" ? of.amount(item.score) : null;
      var parts = Object.assign({}, map(item.parts), map(item.counts)), details = make("td", "words");
      if (label(item.label) || label(item.gold)) { addLabels(details, label(item.label), label(item.gold)); details.append(" "); }
      details.append(Object.keys(parts).sort().slice(0, 20).map(function (key) { return brief(key, 140) + " " + number(parts[key]); }).join(", "));
      var told = list(item.reasons).slice(0, MOST_REASONS).map(function (each) { return reasonText(map(each)); });
      told.concat(faultText(map(item.fault)) || []).forEach(function (each) { details.append(make("br", ""), make("bdi", "", each)); });
      body.append(make("tr", "", scoped(make("th", "", make("bdi", "", brief(item.id === undefined ? null : item.id, 120)))), make("td", "", score === null ? stateWord(state) : number(item.score)), details));
    });
    var held = make("div", "scroll", make("table", "plain", make("thead", "", heads(["Item", "Score", "Details"])), body));
    held.tabIndex = 0;
    held.setAttribute("role", "group");
    held.setAttribute("aria-label", "Table");
    var found = fold("items", "Items", of.count(items.length), false, held);
    if (items.length > MOST_ITEMS) { found.append(make("p", "note", of.count(items.length - MOST_ITEMS) + " more in results.jsonl.")); }
    to.append(found);
  }
  function addGrade(to, key, grade, first, broken) {
    var score = scoreOf(grade), state = stateOf(grade), items = list(grade.items).map(map), metadata = map(grade.metadata), reasons = list(grade.reasons).map(map);
    var inside = [].concat(...items.map(function (item) { return list(item.reasons).map(map); })), rationale = text(grade.rationale);
    var css = score !== null ? shade(score) : state === "failed" ? "error" : state.replace(/[^\w.-]+/g, "_");
    var head = make("p", "grade-head", make("code", "", brief(key, 80)), " ", make("span", "cell " + css, score === null ? stateWord(state) : number(grade.score)));
    if (typeof grade.passed === "boolean") { head.append(" ", make("span", "tag", grade.passed ? "passed" : "not passed")); }
    if (label(grade.label)) {
      head.append(" ", make("span", "soft", "label "));
      addLabels(head.lastChild, label(grade.label), label(grade.gold));
    }
    var counts = Object.entries(map(grade.counts)).filter(function (pair) { return of.plain(pair[1]); });
    var parts = Object.assign({}, map(grade.parts), Object.fromEntries(counts));
    var held = make("div", "grade", head), fault = faultText(map(grade.fault)), numbers = make("p", "numbers");
    Object.keys(parts).filter(function (name) { return parts[name] !== null; }).sort().forEach(function (name) {
      numbers.append(make("span", "part", name + " ", make("b", "", number(parts[name]))), " ");
    });
    if (fault && fault !== broken) { held.append(make("p", "alert", fault)); }
    var said = reasons.concat(inside).map(function (each) { return text(each.code); }).concat(text(map(grade.fault).message));
    if (!first) { addCut(held, said.indexOf(rationale) >= 0 ? "" : rationale, "text rationale"); }
    var known = new Set(inside.map(function (each) { return reasonText(each); }));
    var own = reasons.filter(function (each) { return !known.has(reasonText(each)); }).map(function (each) { return reasonText(each, false, rationale); });
    own = Array.from(new Set(own)).filter(Boolean);
    if (own.length) { held.append(reasonList(own.slice(0, MOST_REASONS))); }
    if (own.length > MOST_REASONS) { held.append(make("p", "note", of.count(own.length - MOST_REASONS) + " more reasons in results.jsonl.")); }
    if (items.length && !first) { addItems(held, items); }
    if (numbers.firstChild) { held.append(fold("items", "Counts and parts", "", false, numbers)); }
    if (Object.keys(metadata).length) { held.append(fold("items", "Metadata", "", false, of.code(metadata, [], Math.min(limit, 2000)))); }
    to.append(held);
  }
  function addGrades(to, row, items, broken) {
    var grades = map(row.grades), keys = Object.keys(grades).sort(), main = of.compact(row.grade);
    if (!keys.length && of.isMap(row.grade)) { grades = { grade: row.grade }; keys = ["grade"]; }
    keys.sort(function (one, other) { return (of.compact(grades[other]) === main) - (of.compact(grades[one]) === main); });
    if (keys.length) { to.append(make("h4", "", "Grades")); }
    keys.forEach(function (key, place) { addGrade(to, key, map(grades[key]), items && !place, broken); });
  }
  function sorted(held) {
    return Object.keys(held).sort(natural);
  }
  function short(value) { return of.amount(value) !== null || typeof value === "boolean" ? number(value) : brief(value, 300); }
  function took(row) {
    var usage = map(row.usage);
    return sorted(usage).map(function (key) { return key + " " + short(usage[key]); }).join(", ");
  }
  /* child: what finds a sample of the page by its id, where there is a list of them. */
  function addChildren(to, children, child) {
    if (!children.length) { return; }
    var held = make("ul", "reasons");
    children.slice(0, MOST).forEach(function (id) {
      var found = child ? child(id) : null, item = make("li", "", make(found ? "a" : "code", "", make("bdi", "", brief(id, 120))));
      held.append(item);
      if (!found) { return; }
      item.firstChild.href = found.href;
      found.json.then(function (json) {
        var row = map(of.parse(json)), calls = map(row.predicted).calls, made = given(calls) ? of.count(list(calls).length) + " call" + (list(calls).length === 1 ? "" : "s") : "";
        var told = [given(row.agent_id) && "agent " + short(row.agent_id), made, took(row)].filter(Boolean).join(", ");
        item.append(" ", make("small", "", make("bdi", "", told)));
      }, function () { /* its link says why */ });
    });
    to.append(make("h4", "", "Sub-agents ", make("small", "", of.count(children.length))), held);
    if (children.length > MOST) { to.append(make("p", "note", of.count(children.length - MOST) + " more in " + file())); }
  }
  function addFacts(to, row) {
    var recorded = map(row.recorded), facets = map(row.facets), tools = list(row.tools).map(function (tool) { return brief(tool && tool.name || tool, 60); });
    var facts = sorted(recorded).map(function (key) { return [key + " (recorded)", short(recorded[key])]; });
    facts = facts.concat(sorted(facets).map(function (key) { return [key, short(facets[key])]; }));
    if (given(row.agent_id)) { facts.push(["Agent", short(row.agent_id)]); }
    if (given(row.ended)) { facts.push(["Ended", short(row.ended)]); }
    if (took(row)) { facts.push(["Took", took(row)]); }
    if (given(row.agent_usage)) { facts.push(["Usage", short(row.agent_usage)]); }
    if (tools.length) { facts.push(["Tools (" + tools.length + ")", tools.slice(0, 30).join(", ") + (tools.length > 30 ? " and " + (tools.length - 30) + " more" : "")]); }
    if (!facts.length) { return; }
    var held = make("dl", "facts");
    facts.forEach(function (fact) { held.append(make("dt", "", fact[0]), make("dd", "", make("bdi", "", fact[1]))); });
    to.append(fold("items", "Metadata", String(facts.length), false, held));
  }

  function content(value) {
    if (!Array.isArray(value)) { return !given(value) ? "" : typeof value === "string" ? value : of.compact(value); }
    return value.map(function (part) { return has(map(part), "text") ? part.text : part; })
      .map(function (part) { return typeof part === "string" ? part : of.compact(part); }).join("\n");
  }
  function addBody(to, said, style) {
    var laid = said.length <= limit ? of.laidOut(said) : null, shown = laid === null ? said : laid, css = laid === null ? "text" : "text code", inside = to;
    if (Math.min(shown.length, limit) > LONG || (style === "tool" && shown.slice(0, limit).split("\n").length > LINES + 1)) {
      inside = fold("fold", make("bdi", "", brief(said, 160)), of.count(said.length) + " characters", false, null);
      to.append(inside);
    }
    addCut(inside, shown, css);
  }
  function messageOf(message) {
    var role = brief(text(message.role), 40) || "unknown role", low = role.toLowerCase(), style = has(STYLES, low) ? STYLES[low] : "other";
    var body = make("div", ""), thought = content(message.reasoning), name = brief(text(message.name), 80), head = make("b", "role", role);
    if (name) { head.append(" ", make("code", "", name)); }
    if (thought) {
      var thoughts = fold("fold", "Reasoning", of.count(thought.length) + " characters", false, null);
      addCut(thoughts, thought);
      body.append(thoughts);
    }
    addBody(body, content(message.content), style);
    list(message.tool_calls).slice(0, MOST_MESSAGES).forEach(function (call) {
      var named = map(map(call).function), known = Object.keys(named).length ? named : map(call), own = known.arguments;
      var written = typeof own === "string" ? own : given(own) ? of.compact(own) : "", laid = written.length <= limit ? of.laidOut(written) : null;
      var held = make("div", "call", make("code", "tool", nameOf(known)));
      addCut(held, laid || written, "text code");
      body.append(held);
    });
    return make("div", "m from-" + style, head, body);
  }
  function addTalk(to, row) {
    var loose = list(row.trajectory).filter(of.isMap), turns = list(row.trajectory).filter(function (turn) { return !of.isMap(turn); });
    turns = turns.concat(loose.length ? [loose] : []).map(function (turn) { return list(turn).map(map); });
    var size = turns.reduce(function (sum, turn) { return sum + turn.length; }, 0), room = MOST_MESSAGES;
    if (!size) { return; }
    var summary = make("summary", "", make("h4", "", "Conversation"), " ", make("small", "", of.count(size) + " message" + (size === 1 ? "" : "s")));
    var held = make("details", "talk", summary);
    held.open = true;
    turns.forEach(function (turn, number) {
      var shown = turn.slice(0, room);
      room -= shown.length;
      if (shown.length && turns.length > 1) { held.append(make("h5", "", "Turn " + (number + 1))); }
      shown.forEach(function (message) { held.append(messageOf(message)); });
    });
    if (size > MOST_MESSAGES) { held.append(make("p", "note", of.count(size - MOST_MESSAGES) + " more messages in " + file())); }
    to.append(held);
  }
  function place(row) {
    var source = map(row.source), number = of.plain(source.line);
    return brief(text(source.file), 200) + (typeof number === "number" ? ", line " + number : ", record " + ((of.amount(source.ordinal) || 0) + 1));
  }
  function textOf(value) {
    var joined = Array.isArray(value) && value.every(function (part) { return typeof part === "string"; });
    return joined ? value.join("\n") : typeof value === "string" ? value : given(value) ? of.compact(value) : "";
  }
  function addTexts(to, title, values) {
    if (values.length) { to.append(make("h4", "", title)); }
    values.forEach(function (each) { addCut(to, textOf(each), "text quote"); });
  }
  function addOwnLabels(to, found) {
    if (!found.length) { return; }
    var held = make("dl", "figures small");
    found.forEach(function (pair) { held.append(make("div", "figure", make("dt", "", pair[0]), make("dd", "", make("bdi", "word", brief(pair[1], 80))))); });
    to.append(make("h4", "", "Label"), held);
  }
  function addPlans(to, plans, panels) {
    if (!plans.length) { return; }
    var sides = make("div", "sides");
    plans.forEach(function (pair) { sides.append(make("div", "", make("h4", "", pair[0]), of.code(pair[1], [], limit))); });
    to.append(panels.length ? fold("items", "Plans as text", "", false, sides) : sides);
  }
  function present(pairs) { return pairs.filter(function (pair) { return given(pair[1]); }); }

  /* json: the row; as: its line (0: of more than one run), the longest text (longest), what plugins show of it, drawn already (panels), what says
     which are not, or null (lacking), what finds the sample of a sub-agent (child). */
  return function (json, as) {
    var row = map(of.parse(json)), held = make("div", "inside"), expected = map(row.expected), predicted = map(row.predicted), task = map(row.sample);
    var asked = Array.isArray(task.input) ? task.input : given(task.input) && task.input !== "" ? [task.input] : [];
    var truth = expected.text || task.ground_truth, items = itemsOf(row, list(expected.calls).length);
    var own = present([["Expected", expected.label], ["Predicted", predicted.label]]), panels = as.panels || [], note = make("p", "note where"), broken = faultText(map(row.error));
    line = as.line;
    limit = as.longest;
    if (broken) { held.append(make("p", "alert", make("b", "", "Recorded run failed"), " ", broken)); }
    addTexts(held, "Task", asked);
    addTexts(held, "Expected answer", textOf(truth) && !of.same(truth, expected.label) ? [truth] : []);
    addTexts(held, "Answer", textOf(row.submission) && !given(predicted.calls) ? [row.submission] : []);
    addOwnLabels(held, own);
    panels.concat(as.lacking || []).forEach(function (panel) { held.append(panel); });
    addPlans(held, present([["Expected plan", expected.plan], ["Predicted plan", predicted.plan]]), panels);
    addCalls(held, row, items);
    addChildren(held, list(row.children), as.child);
    addGrades(held, row, items, broken);
    addFacts(held, row);
    addTalk(held, row);
    if (Object.keys(map(row.source)).length) { note.append("Read from ", make("bdi", "", place(row)), ". "); }
    if (line) { note.append("Row " + of.count(line) + " of results.jsonl."); }
    held.append(note);
    return held;
  };
})();
