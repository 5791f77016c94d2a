/* The table of tasks: of each model every trial, all tasks, of which those in view are drawn. gradestackTasks(data, changed)
   returns what the address has of it. */
function gradestackTasks(data, changed) {
  "use strict";
  var holder = document.getElementById("task-table"), form = document.getElementById("task-view");
  if (!holder) { return { tell: function () {}, recall: function () {} }; }
  var HEIGHT = 34, MODELS = 8, PRINTED = 200, TRIALS = 12, MARKS = ["!", "✗", "●", "–", "–", "✓"], outcome = holder.dataset.outcome === "1";
  var compare = new Intl.Collator("en", { numeric: true }).compare, sort = form.elements.sort, find = form.elements.find, filter = document.getElementById("task-filter"), count = form.querySelector("output");
  var ranks = new Map(data.runs.map(function (_, run) { return run; }).sort(function (a, b) { return compare(data.runs[a], data.runs[b]); }).map(function (run, rank) { return [run, rank]; }));
  /* Samples nobody ran have no model; with one model they are its own. */
  var named = data.models.map(function (_, model) { return model; }).filter(function (model) { return data.models[model]; });
  var models = (named.length ? named : [0]).slice(0, MODELS), alone = named.length < 2, tasks = known(), shown = tasks, orders = {};
  var lines = make("div", "task-lines"), room = make("div", "task-room");

  function make(tag, css, text) {
    var element = document.createElement(tag);
    if (css) { element.className = css; }
    if (text !== undefined) { element.textContent = text; }
    return element;
  }
  /* What a task comes to: its rows by model, and between models the largest difference of shares, or of mean scores. */
  function known() {
    var found = data.ids.map(function (_, id) { return { id: id, by: models.map(function () { return { rows: [], sum: 0, of: 0 }; }) }; });
    for (var row = 0; row < data.i.length; row++) {
      var place = alone ? 0 : models.indexOf(data.m[row]), value = outcome ? (data.v[row] === 5 ? 1 : data.v[row] === 1 ? 0 : null) : data.s[row];
      if (place < 0) { continue; }
      var held = found[data.i[row]].by[place];
      held.rows.push(row);
      if (value !== null) { held.sum += value; held.of++; }
    }
    found.forEach(function (task) {
      var shares = task.by.filter(function (held) { return held.of; }).map(function (held) { return held.sum / held.of; });
      task.share = shares.length ? Math.min.apply(null, shares) : 2;
      task.difference = shares.length < 2 ? null : models.length === 2 ? shares[1] - shares[0] : Math.max.apply(null, shares) - Math.min.apply(null, shares);
      task.by.forEach(function (held) { held.rows.sort(function (a, b) { return ranks.get(data.r[a]) - ranks.get(data.r[b]) || a - b; }); });
    });
    return found.filter(function (task) { return task.by.some(function (held) { return held.rows.length; }); });
  }
  function ordered(name) {
    var key = {
      difference: function (task) { return task.difference === null ? 1 : -Math.abs(task.difference); },
      worst: function (task) { return task.share; },
      task: function () { return 0; }
    }[name];
    if (!orders[name]) {
      orders[name] = tasks.slice().sort(function (a, b) { return key(a) - key(b) || compare(data.ids[a.id], data.ids[b.id]); });
    }
    return orders[name];
  }
  /* What became of a task between two models: "" where its share did not change and is neither 0 nor 1. */
  function change(task) {
    if (task.difference === null) { return ""; }
    if (task.difference) { return task.difference < 0 ? "broke" : "fixed"; }
    return task.share === 0 ? "fail" : task.share === 1 ? "pass" : "";
  }
  function chosen() { return filter ? form.elements.show.value : ""; }
  function signed(value) { return value === null ? "" : (value > 0 ? "+" : "") + (outcome ? Math.round(100 * value) + "%" : value.toFixed(3)); }
  function mark(row) {
    var link = make("a", "mark v" + data.v[row], MARKS[data.v[row]]), run = data.runs[data.r[row]];
    link.href = "#s" + (row + 1);
    link.title = data.ids[data.i[row]] + (run ? ", trial " + run : "") + ": " + data.words[data.v[row]] + (data.s[row] === null ? "" : ", score " + data.s[row].toFixed(3));
    link.setAttribute("aria-label", link.title);
    return link;
  }
  function line(task, place) {
    var found = make("div", "task-line"), id = make("bdi", "line-id", data.ids[task.id]);
    id.title = data.ids[task.id];
    found.style.top = place * HEIGHT + "px";
    found.append(id);
    task.by.forEach(function (held) {
      var cell = make("span", "marks"), said = !held.of ? "" : outcome ? held.sum + "/" + held.rows.length : (held.sum / held.of).toFixed(3);
      held.rows.slice(0, TRIALS).forEach(function (row) { cell.append(mark(row)); });
      if (held.rows.length > TRIALS) { cell.append("…"); }
      found.append(cell, make("span", "n", said));
    });
    if (models.length > 1) { found.append(make("b", "n", signed(task.difference))); }
    return found;
  }
  function draw(all) {
    var first = all === true ? 0 : Math.max(0, Math.floor(room.scrollTop / HEIGHT) - 3), last = all === true ? Math.min(PRINTED, shown.length) : Math.min(shown.length, first + Math.ceil(room.clientHeight / HEIGHT) + 6);
    lines.style.height = shown.length * HEIGHT + "px";
    lines.replaceChildren.apply(lines, shown.slice(first, last).map(function (task, place) { return line(task, first + place); }));
  }
  function show() {
    var text = find.value.toLowerCase(), which = chosen();
    shown = ordered(sort.value).filter(function (task) { return !which || change(task) === which; }).filter(function (task) { return !text || data.ids[task.id].toLowerCase().indexOf(text) >= 0; });
    count.textContent = shown.length.toLocaleString("en") + " of " + tasks.length.toLocaleString("en") + " tasks";
    room.scrollTop = 0;
    draw();
  }

  var head = make("div", "task-line task-head"), widest = tasks.reduce(function (most, task) {
    return task.by.reduce(function (all, held) { return Math.max(all, Math.min(TRIALS, held.rows.length)); }, most);
  }, 1);
  head.append(make("span", "", "Task"));
  models.forEach(function (model) { head.append(make("code", "", alone ? "Trials" : data.models[model]), make("span", "n", outcome ? "passed" : "mean")); });
  if (models.length > 1) { head.append(make("span", "n", models.length > 2 ? "spread" : "difference")); }
  holder.style.setProperty("--columns", "minmax(7rem, 22rem) " + models.map(function () { return "minmax(" + Math.max(6, 1.75 * widest) + "rem, 1fr) 3.6rem"; }).join(" ") + (models.length > 1 ? " 6rem" : ""));
  room.tabIndex = 0;
  room.setAttribute("role", "group");
  room.setAttribute("aria-label", "Table of tasks");
  room.append(head, lines);
  holder.append(room);
  if (named.length > MODELS) { holder.append(make("p", "note", "The first " + MODELS + " of " + named.length.toLocaleString("en") + " models.")); }
  room.addEventListener("scroll", function () { requestAnimationFrame(draw); });
  window.addEventListener("resize", draw);
  window.addEventListener("beforeprint", function () { draw(true); lines.style.height = Math.min(PRINTED, shown.length) * HEIGHT + "px"; });
  window.addEventListener("afterprint", draw);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  find.addEventListener("input", show);
  sort.addEventListener("change", function () { show(); changed(); });
  /* Broken and fixed are of two models; of more a task may be both. */
  if (filter && models.length !== 2) { filter.remove(); filter = null; }
  if (filter) {
    filter.querySelectorAll("input").forEach(function (input) {
      input.nextElementSibling.querySelector("b").textContent = tasks.filter(function (task) { return !input.value || change(task) === input.value; }).length.toLocaleString("en");
    });
    filter.addEventListener("change", function () { show(); changed(); });
  }
  show();
  return {
    tell: function (state) {
      if (sort.selectedIndex > 0) { state.set("tasks", sort.value); }
      if (chosen()) { state.set("show", chosen()); }
    },
    recall: function (state) {
      if (filter) {
        filter.querySelectorAll("input").forEach(function (input) { input.checked = input.value === (state.get("show") || ""); });
        if (!filter.querySelector("input:checked")) { filter.querySelector("input").checked = true; }
      }
      sort.value = state.get("tasks") || sort.options[0].value;
      if (sort.selectedIndex < 0) { sort.selectedIndex = 0; }
      show();
    }
  };
}
