/* The map of tasks and trials: a path for each kind of cell instead of an element for each cell. Drawn from the list of samples;
   gradestackMap(data, open) is given what opens the sample of a row. */
function gradestackMap(data, open) {
  "use strict";
  var holder = document.getElementById("whole-map"), said = document.getElementById("map-says");
  var KINDS = ["error", "lost", "graded", "missing", "skipped", "passed"], compare = new Intl.Collator("en", { numeric: true }).compare;
  var SIZE = 22, LABEL = 16, LONGEST = 4, FILLED = { lost: true, graded: true }, outcome = holder.dataset.outcome === "1";
  var SVG = holder.closest("section").querySelector("svg").namespaceURI, size = SIZE, label = 0, groups = [], rows = null, columns = null, at = 0, drawn = 0, cursor = make("div", "map-cell");

  function make(tag, css, text) {
    var element = document.createElement(tag);
    if (css) { element.className = css; }
    if (text !== undefined) { element.textContent = text; }
    return element;
  }
  function path(css, parts) {
    var element = document.createElementNS(SVG, "path");
    element.setAttribute("class", css);
    element.setAttribute("d", parts.join(""));
    return element;
  }

  /* Tasks of a model with their rows in the order of trials, by how often they are a success, then by mean score. */
  function known(model) {
    var starts = new Uint32Array(data.ids.length + 1), count = 0, row, id, order, ranks, found, sizes = new Set(), tasks = [], levels = new Map();
    for (row = 0; row < data.i.length; row++) { if (data.m[row] === model) { starts[data.i[row] + 1]++; count++; } }
    for (id = 0; id < data.ids.length; id++) { starts[id + 1] += starts[id]; }
    found = new Uint32Array(count);
    var free = starts.slice();
    for (row = 0; row < data.i.length; row++) { if (data.m[row] === model) { found[free[data.i[row]]++] = row; } }
    order = data.runs.map(function (_, run) { return run; }).sort(function (a, b) { return compare(data.runs[a], data.runs[b]); });
    ranks = new Uint32Array(order.length);
    order.forEach(function (run, rank) { ranks[run] = rank; });
    for (id = 0; id < data.ids.length; id++) {
      if (starts[id] === starts[id + 1]) { continue; }
      var own = found.subarray(starts[id], starts[id + 1]);
      own.sort(function (a, b) { return ranks[data.r[a]] - ranks[data.r[b]] || a - b; });
      sizes.add(own.length);
      tasks.push(own);
    }
    tasks.forEach(function (own) {
      var passed = 0, told = 0, graded = 0, total = 0;
      own.forEach(function (each) {
        passed += data.v[each] === 5 ? 1 : 0;
        told += data.v[each] === 5 || data.v[each] === 1 ? 1 : 0;
        if (data.s[each] !== null) { graded++; total += data.s[each]; }
      });
      var level = !outcome ? 0 : !told ? -1 : rough(sizes) ? tenth(passed, own.length) : passed;
      if (!levels.has(level)) { levels.set(level, []); }
      levels.get(level).push([graded ? total / graded : 0, own]);
    });
    return Array.from(levels.keys()).sort(function (a, b) { return a - b; }).map(function (level) {
      var held = levels.get(level).sort(function (a, b) { return a[0] - b[0]; }).map(function (task) { return task[1]; });
      return { title: name(model) + (outcome ? titleOf(level, sizes) : ""), tasks: held, most: held.reduce(function (most, own) { return Math.max(most, own.length); }, 0) };
    });
  }
  /* Of several models on one map the title says which. */
  function name(model) { return data.models.length < 2 ? "" : (data.models[model] || "(no name)") + (outcome ? ": " : ""); }
  /* Tasks of different, or very many, trials stand together by tenths: every group takes room, and elements. */
  function rough(sizes) { return sizes.size > 1 || Math.max.apply(null, Array.from(sizes)) > 10; }
  function tenth(passed, of) { return passed === 0 ? 0 : passed === of ? 11 : Math.ceil(10 * passed / of); }
  function titleOf(level, sizes) {
    var most = sizes.values().next().value;
    if (level < 0) { return "no grade"; }
    if (level === 0) { return sizes.size === 1 && most === 1 ? data.words[1] : "never"; }
    if (!rough(sizes)) { return most === 1 ? data.words[5] : level === most ? "always" : level + " of " + most; }
    return level === 11 ? "always" : level === 1 ? "up to 10%" : 10 * (level - 1) + (level === 10 ? "% and more" : " – " + 10 * level + "%");
  }

  /* Where a group's cells are: so many tasks a line, each a column of trials. */
  function draw() {
    drawn = holder.clientWidth;
    var across = Math.max(1, Math.floor((drawn - 20) / size)), scroll = holder.scrollTop;
    holder.replaceChildren();
    groups.forEach(function (group) {
      var svg = document.createElementNS(SVG, "svg"), part = make("div", "group");
      group.across = across;
      group.high = group.most * size + 4 + label;
      group.lines = Math.ceil(group.tasks.length / across);
      group.svg = svg;
      svg.setAttribute("width", Math.min(across, group.tasks.length) * size);
      svg.setAttribute("height", group.lines * group.high);
      svg.setAttribute("aria-hidden", "true");
      if (group.title) {
        part.append(make("div", "group-title", group.title + " (" + group.tasks.length.toLocaleString("en") + ")"));
      }
      part.append(svg);
      holder.append(part);
    });
    holder.append(cursor);
    holder.scrollTop = scroll;
    groups.forEach(paint);
    mark();
  }
  function paint(group) {
    var side = size - 3, inner = side - 1, cross = side - 2, paths = {};
    function add(css, text) { (paths[css] = paths[css] || []).push(text); }
    for (var place = 0; place < group.tasks.length; place++) {
      var x = place % group.across * size, top = Math.floor(place / group.across) * group.high, own = group.tasks[place];
      for (var trial = 0; trial < own.length; trial++) {
        var row = own[trial], kind = KINDS[data.v[row]], y = top + trial * size;
        add("trial " + kind, "M" + (x + 0.5) + " " + (y + 0.5) + "h" + side + "v" + side + "h-" + side + "z");
        var full = FILLED[kind] ? Math.round(10 * inner * Math.min(1, Math.max(0, data.s[row] || 0))) / 10 : 0;
        if (full) { add("level", "M" + (x + 1) + " " + (y + 1 + inner - full).toFixed(1) + "h" + inner + "v" + full + "h-" + inner + "z"); }
        if (kind === "error") { add("cross", "M" + (x + 1.5) + " " + (y + 1.5) + "l" + cross + " " + cross + "m0 -" + cross + "l-" + cross + " " + cross); }
      }
    }
    var found = Object.keys(paths).sort().reverse().map(function (css) { return path(css, paths[css]); });
    for (place = 0; label && place < group.tasks.length; place++) {
      var text = document.createElementNS(SVG, "text");
      text.setAttribute("x", (place % group.across + 0.5) * size - 1);
      text.setAttribute("y", Math.floor(place / group.across) * group.high + group.most * size + 11);
      text.setAttribute("text-anchor", "middle");
      text.textContent = data.ids[data.i[group.tasks[place][0]]];
      found.push(text);
    }
    group.svg.replaceChildren.apply(group.svg, found);
  }

  /* All cells in one order, group by group and task by task, so that keys walk over them. */
  function prepare() {
    groups = data.models.map(function (_, model) { return known(model); }).flat();
    var count = groups.reduce(function (sum, group) { return sum + group.tasks.reduce(function (all, own) { return all + own.length; }, 0); }, 0), place = 0, column = 0;
    label = data.ids.every(function (id) { return id.length <= LONGEST; }) ? LABEL : 0;
    rows = new Uint32Array(count);
    columns = [];
    groups.forEach(function (group, number) {
      group.first = column;
      group.tasks.forEach(function (own, task) {
        columns.push({ start: place, group: number, task: task, size: own.length });
        own.forEach(function (row) { rows[place++] = row; });
        column++;
      });
    });
    at = 0;
    draw();
  }
  function columnOf(cell) {
    var low = 0, high = columns.length - 1;
    while (low < high) {
      var middle = (low + high + 1) >> 1;
      if (columns[middle].start <= cell) { low = middle; } else { high = middle - 1; }
    }
    return low;
  }
  function tell(row) {
    var run = data.runs[data.r[row]], score = data.s[row];
    return "task " + data.ids[data.i[row]] + (run ? ", trial " + run : "") + ": " + data.words[data.v[row]] + (score === null ? "" : ", " + score.toFixed(3));
  }
  function mark() {
    var column = columns[columnOf(at)], group = groups[column.group], box = group.svg.getBoundingClientRect(), own = holder.getBoundingClientRect();
    cursor.style.left = box.left - own.left + column.task % group.across * size - 2 + "px";
    cursor.style.top = box.top - own.top + holder.scrollTop + Math.floor(column.task / group.across) * group.high + (at - column.start) * size - 2 + "px";
    cursor.style.width = cursor.style.height = size + 2 + "px";
    said.textContent = "Selected: " + tell(rows[at]);
    cursor.setAttribute("aria-label", tell(rows[at]));
  }
  function go(cell) {
    at = Math.max(0, Math.min(rows.length - 1, cell));
    mark();
    cursor.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  function across(by) {
    var now = columnOf(at), next = columns[Math.max(0, Math.min(columns.length - 1, now + by))];
    go(next.start + Math.min(at - columns[now].start, next.size - 1));
  }
  function cellAt(event) {
    for (var number = 0; number < groups.length; number++) {
      var group = groups[number], box = group.svg.getBoundingClientRect();
      if (event.clientY < box.top || event.clientY >= box.bottom || event.clientX < box.left || event.clientX >= box.right) { continue; }
      var line = Math.floor((event.clientY - box.top) / group.high), trial = Math.floor((event.clientY - box.top - line * group.high) / size);
      var task = line * group.across + Math.floor((event.clientX - box.left) / size), column = columns[group.first + task];
      return task < group.tasks.length && trial < column.size ? column.start + trial : -1;
    }
    return -1;
  }

  cursor.id = "map-cell";
  cursor.setAttribute("role", "option");
  cursor.setAttribute("aria-selected", "true");
  holder.setAttribute("aria-activedescendant", "map-cell");
  holder.addEventListener("mousemove", function (event) {
    var cell = cellAt(event);
    if (cell >= 0) { at = cell; mark(); }
  });
  holder.addEventListener("click", function (event) {
    var cell = cellAt(event);
    if (cell >= 0) { at = cell; mark(); open(rows[at]); }
  });
  holder.addEventListener("keydown", function (event) {
    var keys = { ArrowDown: function () { go(at + 1); }, ArrowUp: function () { go(at - 1); }, ArrowRight: function () { across(1); }, ArrowLeft: function () { across(-1); },
      Home: function () { go(0); }, End: function () { go(rows.length - 1); }, Enter: function () { open(rows[at]); } };
    if (keys[event.key] && rows) { event.preventDefault(); event.stopPropagation(); keys[event.key](); }
  });
  window.addEventListener("resize", function () { if (rows && holder.clientWidth !== drawn) { draw(); } });
  prepare();
}
