/* Tables as files. Those of the run as a whole are packed in the page as they are written; tasks and samples are made of
   the list of samples: gradestackSave(data, rows) gives it, and what returns the rows that the list shows. */
var gradestackSave = (function () {
  "use strict";
  var island = document.getElementById("tables"), lists = {}, given = null;
  var buttons = Array.prototype.slice.call(document.querySelectorAll("[data-save]"));

  /* As the reporter csv writes a cell: what a spreadsheet would calculate is made a text. */
  function cell(value) {
    var text = value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) { text = "'" + text; }
    return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  }
  function csv(columns, rows) {
    return [columns].concat(rows).map(function (row) { return row.map(cell).join(",") + "\n"; }).join("");
  }
  function json(columns, rows) {
    var lines = rows.map(function (row) {
      return "\n" + JSON.stringify(Object.fromEntries(columns.map(function (name, place) { return [name, row[place]]; })));
    });
    return "[" + lines.join(",") + (rows.length ? "\n]\n" : "]\n");
  }

  function samples(data, rows) {
    var kinds = data.kinds.map(function (kind) { return { grader: kind[0], code: kind[1], subject: kind[2] || null, argument: kind[3] || null }; });
    var sets = data.sets.map(function (set) { return set.map(function (kind) { return kinds[kind]; }); });
    return Array.from(rows, function (row) {
      return [row, data.ids[data.i[row]], data.models[data.m[row]] || null, data.runs[data.r[row]] || null, data.words[data.v[row]], data.s[row], sets[data.k[row]]];
    });
  }
  /* As the page's table has them: a verdict is 5 for passed and 1 for not passed; 0, 3 and 4 have no grade. */
  function tasks(data) {
    var found = new Map();
    for (var row = 0; row < data.i.length; row++) {
      var key = data.i[row] * data.models.length + data.m[row], held = found.get(key);
      if (!held) { found.set(key, held = [row, 0, 0, 0, 0, 0, 0]); }
      held[1]++;
      held[2] += data.v[row] === 5 ? 1 : 0;
      held[3] += data.v[row] === 1 ? 1 : 0;
      held[4] += data.v[row] === 0 || data.v[row] === 3 || data.v[row] === 4 ? 1 : 0;
      if (data.s[row] !== null) { held[5]++; held[6] += data.s[row]; }
    }
    return Array.from(found.values(), function (held) {
      var mean = held[5] ? Math.round(1000 * held[6] / held[5]) / 1000 : null;
      return [data.ids[data.i[held[0]]], data.models[data.m[held[0]]] || null, held[1], held[2], held[3], held[4], mean];
    });
  }
  lists.samples = function (data, rows) { return [["position", "id", "model", "run", "outcome", "score", "reasons"], samples(data, rows())]; };
  lists.tasks = function (data) { return [["id", "model", "trials", "passed", "not_passed", "ungraded", "mean_score"], tasks(data)]; };

  function text(table, form) {
    if (lists[table]) { return Promise.resolve((form === "csv" ? csv : json).apply(null, lists[table](given.data, given.rows))); }
    return gradestackUnpacked(gradestackBytes(island.textContent)).json().then(function (files) { return files[table + "." + form]; });
  }
  function save(name, content, form) {
    var link = document.createElement("a"), type = { csv: "text/csv", json: "application/json" }[form];
    link.href = URL.createObjectURL(new Blob([content], { type: type + ";charset=utf-8" }));
    link.download = name;
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 60000);
  }
  function show(button) { button.closest(".save").hidden = false; }
  buttons.forEach(function (button) {
    var table = button.dataset.save, form = button.dataset.form;
    button.addEventListener("click", function () {
      text(table, form).then(function (content) { save(island.dataset.run + "-" + table + "." + form, content, form); });
    });
    if (!lists[table] && globalThis.DecompressionStream) { show(button); }
  });
  return function (data, rows) {
    given = { data: data, rows: rows };
    buttons.filter(function (button) { return lists[button.dataset.save]; }).forEach(show);
  };
})();
