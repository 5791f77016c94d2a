/* The table of tasks for one model, or by the verdicts of another grader: drawn from the list of samples, in place of
   the one that stands in the page. gradestackTasks(data, changed) returns what the address has of it. */
function gradestackTasks(data, changed) {
  "use strict";
  var holder = document.getElementById("task-table"), form = document.getElementById("task-view");
  var ELEMENTS = document.getElementById("whole-map") ? 1500 : 1800, COLUMNS = 32, KINDS = ["error", "lost", "graded", "missing", "skipped", "passed"];
  var original = holder.firstElementChild, model = form.elements.model, by = form.elements.by;
  var compare = new Intl.Collator("en", { numeric: true }).compare;

  function make(tag, css, text) {
    var element = document.createElement(tag);
    if (css) { element.className = css; }
    if (text !== undefined) { element.textContent = text; }
    return element;
  }
  function head(text) {
    var cell = make("th", "", text);
    cell.scope = "col";
    return cell;
  }

  /* Tasks and trials of the model. A trial is a run of a model; without names its place among those of the task. */
  function known(wanted) {
    var tasks = new Uint8Array(data.ids.length), columns = new Map(), places = new Map();
    var names = data.runs.length, trial = new Float64Array(data.i.length), key;
    for (var row = 0; row < data.i.length; row++) {
      var model = data.m[row], run = data.r[row], place = 0;
      if (wanted >= 0 && model !== wanted) { continue; }
      tasks[data.i[row]] = 1;
      if (!data.runs[run]) {
        key = data.i[row] * data.models.length + model;
        place = places.get(key) || 0;
        places.set(key, place + 1);
      }
      key = (place * data.models.length + model) * names + run;
      trial[row] = key;
      if (!columns.has(key)) { columns.set(key, { model: model, name: data.runs[run], place: place, key: key }); }
    }
    var ordered = Array.from(columns.values()).sort(function (a, b) {
      return a.model - b.model || compare(a.name, b.name) || a.place - b.place;
    });
    return { tasks: tasks, size: tasks.reduce(function (sum, each) { return sum + each; }, 0), columns: ordered, trial: trial };
  }
  /* The rows of these tasks by trial. */
  function grouped(ids, trial, wanted) {
    var found = new Map(ids.map(function (id) { return [id, new Map()]; }));
    for (var row = 0; row < data.i.length; row++) {
      var cells = found.get(data.i[row]);
      if (!cells || (wanted >= 0 && data.m[row] !== wanted)) { continue; }
      if (!cells.has(trial[row])) { cells.set(trial[row], []); }
      cells.get(trial[row]).push(row);
    }
    return found;
  }
  /* The first so many tasks by name, without sorting all. */
  function first(tasks, most) {
    var found = [];
    tasks.forEach(function (is, id) {
      if (!is) { return; }
      var low = 0, high = found.length, name = data.ids[id];
      if (high === most && compare(name, data.ids[found[high - 1]]) >= 0) { return; }
      while (low < high) {
        var middle = (low + high) >> 1;
        if (compare(data.ids[found[middle]], name) <= 0) { low = middle + 1; } else { high = middle; }
      }
      found.splice(low, 0, id);
      if (found.length > most) { found.pop(); }
    });
    return found;
  }

  function cell(row, verdict, scored) {
    var kind = KINDS[verdict], score = scored ? data.s[row] : null, run = data.runs[data.r[row]];
    var sign = { passed: "✓", lost: score === null ? "✗" : "", graded: score === null ? "–" : "" }[kind];
    var text = [sign === undefined ? kind : sign, score === null ? "" : score.toFixed(3)].join(" ").trim();
    var shade = kind === "graded" && score !== null ? "q" + Math.min(10, Math.max(0, Math.floor(score * 10 + 1e-9))) : kind;
    var link = make("a", "cell " + shade, text);
    link.href = "#s" + (row + 1);
    link.title = "task " + data.ids[data.i[row]] + (run ? ", run " + run : "") + ": " + text;
    link.setAttribute("aria-label", link.title);
    return link;
  }

  function drawn(wanted, chosen) {
    var grader = chosen < 0 ? null : data.by[chosen], scored = !grader || grader[0] === form.dataset.main;
    var found = known(wanted), columns = found.columns.slice(0, COLUMNS);
    var ids = first(found.tasks, Math.max(20, Math.floor(ELEMENTS / (4 + 2 * columns.length))));
    var held = grouped(ids, found.trial, wanted);
    var counted = grader || form.dataset.outcome, part = make("div"), say = make("p", "say"), table = make("table", "matrix");
    if (grader) { say.append("Verdict of every trial by ", make("code", "", grader[0]), ": ✓ and blue passed. "); }
    else { say.append(original.querySelector(".say").textContent + " "); }
    if (wanted >= 0) { say.append("Only of ", make("b", "", data.models[wanted] || "(no name)"), "."); }
    var top = make("tr"), heads = make("thead"), body = make("tbody");
    top.append(head("Task"));
    columns.forEach(function (each) {
      top.append(head((wanted < 0 && data.models.length > 1 ? (data.models[each.model] || "(no name)") + " " : "") + (each.name || each.place + 1)));
    });
    if (scored) { top.append(head("Mean")); }
    if (counted) { top.append(head(grader ? "Passed" : form.dataset.word)); }
    ids.forEach(function (id) {
      var line = make("tr"), name = make("th"), total = 0, graded = 0, passed = 0, trials = 0, cells = held.get(id);
      name.scope = "row";
      name.title = data.ids[id];
      name.append(make("bdi", "", data.ids[id]));
      line.append(name);
      columns.forEach(function (each) {
        var place = make("td"), rows = cells.get(each.key) || [];
        rows.forEach(function (row) { place.append(cell(row, grader ? grader[1].charCodeAt(row) - 48 : +data.v[row], scored)); });
        if (!rows.length) { place.append(make("span", "cell none", "·")); }
        line.append(place);
      });
      cells.forEach(function (rows) {
        rows.forEach(function (row) {
          trials++;
          passed += (grader ? grader[1].charCodeAt(row) - 48 : +data.v[row]) === 5 ? 1 : 0;
          if (data.s[row] !== null) { graded++; total += data.s[row]; }
        });
      });
      if (scored) { line.append(make("td", "mean", graded ? (total / graded).toFixed(3) : "–")); }
      if (counted) { line.append(make("td", "n", passed + "/" + trials)); }
      body.append(line);
    });
    heads.append(top);
    table.append(heads, body);
    var scroll = make("div", "scroll tall");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "group");
    scroll.setAttribute("aria-label", "Table of tasks");
    scroll.append(table);
    part.append(say, scroll);
    [[found.size - ids.length, "tasks are"], [found.columns.length - columns.length, "trials per task are"]].forEach(function (each) {
      if (each[0] > 0) { part.append(make("p", "note", each[0].toLocaleString("en") + " more " + each[1] + " not in this table.")); }
    });
    return part;
  }

  function show() {
    var wanted = model && model.value !== "" ? +model.value : -1, chosen = by && by.value !== "" ? +by.value : -1;
    holder.replaceChildren(wanted < 0 && chosen < 0 ? original : drawn(wanted, chosen));
  }
  function choose(select, names, name) {
    var place = name === null ? -1 : names.indexOf(name);
    if (select) { select.value = place < 0 ? "" : String(place); }
  }
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  form.addEventListener("change", function () { show(); changed(); });
  return {
    tell: function (state) {
      if (model && model.value !== "") { state.set("tasks", data.models[+model.value]); }
      if (by && by.value !== "") { state.set("by", data.by[+by.value][0]); }
    },
    recall: function (state) {
      choose(model, data.models, state.get("tasks"));
      choose(by, data.by.map(function (each) { return each[0]; }), state.get("by"));
      show();
    }
  };
}
