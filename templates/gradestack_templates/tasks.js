/* The table of tasks, of all models or one, by the run's outcome or the verdicts of another grader: drawn from the list of
   samples. gradestackTasks(data, changed) returns what the address has of it. */
function gradestackTasks(data, changed) {
  "use strict";
  var holder = document.getElementById("task-table"), say = document.getElementById("task-says"), form = document.getElementById("task-view");
  var ELEMENTS = document.getElementById("whole-map") ? 1500 : 1800, COLUMNS = 32, KINDS = ["error", "lost", "graded", "missing", "skipped", "passed"];
  var model = form && form.elements.model, by = form && form.elements.by, told = Array.from(say.childNodes);
  var compare = new Intl.Collator("en", { numeric: true }).compare, about = holder.dataset;
  var alone = data.models.filter(Boolean).length < 2; /* samples nobody ran have no model; with one model they are its own */

  function make(tag, css, text) {
    var element = document.createElement(tag);
    if (css) { element.className = css; }
    if (text !== undefined) { element.textContent = text; }
    return element;
  }
  function head(text, span) {
    var cell = make("th");
    cell.scope = span ? "colgroup" : "col";
    if (span) { cell.colSpan = span; }
    cell.append(make("bdi", "", text));
    return cell;
  }
  function named(id) {
    var cell = make("th");
    cell.scope = "row";
    cell.title = data.ids[id];
    cell.append(make("bdi", "", data.ids[id]));
    return cell;
  }

  /* Tasks and trials of the model. A trial is a run of a model; without names its place among those of the task. */
  function known(wanted) {
    var tasks = new Uint8Array(data.ids.length), columns = new Map(), places = new Map();
    var names = data.runs.length, trial = new Float64Array(data.i.length), key;
    for (var row = 0; row < data.i.length; row++) {
      var model = alone ? 0 : data.m[row], run = data.r[row], place = 0;
      if (wanted >= 0 && data.m[row] !== wanted) { continue; }
      tasks[data.i[row]] = 1;
      if (!data.runs[run]) {
        key = data.i[row] * data.models.length + model;
        place = places.get(key) || 0;
        places.set(key, place + 1);
      }
      key = (place * data.models.length + model) * names + run;
      trial[row] = key;
      var column = columns.get(key);
      if (!column) { columns.set(key, column = { model: model, name: data.runs[run], place: place, key: key, graded: 0, total: 0 }); }
      if (data.s[row] !== null) { column.graded++; column.total += data.s[row]; }
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
      if (high === most && (!most || compare(name, data.ids[found[high - 1]]) >= 0)) { return; }
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
  function mean(of) { return of.graded ? (of.total / of.graded).toFixed(3) : "–"; }

  function table(columns, ids, cells, many, grader, scored) {
    var counted = grader || about.outcome, part = make("table", "matrix"), heads = make("thead"), body = make("tbody"), top = make("tr");
    function verdict(row) { return grader ? grader[1].charCodeAt(row) - 48 : +data.v[row]; }
    if (many) {
      var models = make("tr", "", ""), more = make("td");
      models.append(make("td"));
      columns.forEach(function (each, place) {
        if (place && columns[place - 1].model === each.model) { models.lastChild.colSpan++; }
        else { models.append(head(data.models[each.model] || "(no name)", 1)); }
      });
      more.colSpan = (scored ? 1 : 0) + (counted ? 1 : 0);
      if (more.colSpan) { models.append(more); }
      heads.append(models);
    }
    top.append(head("Task"));
    columns.forEach(function (each) {
      top.append(head(each.name || String(each.place + 1)));
      top.lastChild.prepend(make("span", "sr", "run "));
    });
    if (scored) { top.append(head("Mean")); }
    if (counted) { top.append(head(grader ? "Passed" : about.word)); }
    ids.forEach(function (id) {
      var line = make("tr"), sum = { graded: 0, total: 0 }, passed = 0, trials = 0;
      line.append(named(id));
      columns.forEach(function (each) {
        var place = make("td"), rows = cells.get(id).get(each.key) || [];
        rows.forEach(function (row) { place.append(cell(row, verdict(row), scored)); });
        if (!rows.length) { place.append(make("span", "cell none", "·")); }
        line.append(place);
      });
      cells.get(id).forEach(function (rows) {
        rows.forEach(function (row) {
          trials++;
          passed += verdict(row) === 5 ? 1 : 0;
          if (data.s[row] !== null) { sum.graded++; sum.total += data.s[row]; }
        });
      });
      if (scored) { line.append(make("td", "mean", mean(sum))); }
      if (counted) { line.append(make("td", "n", passed + "/" + trials)); }
      body.append(line);
    });
    heads.append(top);
    part.append(heads, body);
    if (scored) {
      var foot = make("tfoot"), last = make("tr"), rest = make("td"), name = make("th", "", "Mean");
      name.scope = "row";
      last.append(name);
      columns.forEach(function (each) { last.append(make("td", "", mean(each))); });
      rest.colSpan = counted ? 2 : 1;
      last.append(rest);
      foot.append(last);
      part.append(foot);
    }
    var scroll = make("div", "scroll tall");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "group");
    scroll.setAttribute("aria-label", "Table of tasks");
    scroll.append(part);
    return scroll;
  }
  /* Of tasks that were run once cells say it all. */
  function cellsOf(ids, cells, grader, scored) {
    var part = make("ul", "map" + (ids.length > 200 ? " tall" : ""));
    ids.forEach(function (id) {
      cells.get(id).forEach(function (rows) {
        rows.forEach(function (row) {
          var line = make("li");
          line.title = data.ids[id];
          line.append(make("bdi", "", data.ids[id]), cell(row, grader ? grader[1].charCodeAt(row) - 48 : +data.v[row], scored));
          part.append(line);
        });
      });
    });
    return part;
  }

  function show() {
    var wanted = model && model.value !== "" ? +model.value : -1, chosen = by && by.value !== "" ? +by.value : -1;
    var grader = chosen < 0 ? null : data.by[chosen], scored = !grader || grader[0] === about.main;
    var found = known(wanted), columns = found.columns.slice(0, COLUMNS);
    var ids = first(found.tasks, Math.min(+about.most, Math.max(20, Math.floor(ELEMENTS / (4 + 2 * columns.length)))));
    var cells = grouped(ids, found.trial, wanted);
    if (grader) { say.replaceChildren("Verdict of every trial by ", make("code", "", grader[0]), ": ✓ and blue passed."); }
    else { say.replaceChildren.apply(say, told); }
    if (wanted >= 0) { say.append(" Only of ", make("b", "", data.models[wanted] || "(no name)"), "."); }
    holder.replaceChildren(columns.length < 2 ? cellsOf(ids, cells, grader, scored) : table(columns, ids, cells, wanted < 0 && !alone, grader, scored));
    [[found.size - ids.length, "tasks are"], [found.columns.length - columns.length, "trials per task are"]].forEach(function (each) {
      if (each[0] > 0) { holder.append(make("p", "note", each[0].toLocaleString("en") + " more " + each[1] + " not in this table; results.jsonl has every sample.")); }
    });
  }
  function choose(select, names, name) {
    var place = name === null ? -1 : names.indexOf(name);
    if (select) { select.value = place < 0 ? "" : String(place); }
  }
  if (form) {
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    form.addEventListener("change", function () { show(); changed(); });
  }
  show();
  return {
    tell: function (state) {
      if (model && model.value !== "") { state.set("tasks", data.models[+model.value]); }
      if (by && by.value !== "") { state.set("by", data.by[+by.value][0]); }
    },
    recall: function (state) {
      if (!form) { return; }
      choose(model, data.models, state.get("tasks"));
      choose(by, data.by.map(function (each) { return each[0]; }), state.get("by"));
      show();
    }
  };
}
