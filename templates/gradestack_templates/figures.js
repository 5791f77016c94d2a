/* The table of all figures: its lines stand in the page for those without scripts; here those are shown that are searched for. */
(function () {
  "use strict";
  var holder = document.getElementById("figure-table"), MOST = 200, lines = null, table = null;
  if (!holder) { return; }
  var find = holder.querySelector("input"), count = holder.querySelector("output"), room = holder.querySelector("[data-table]");
  function show() {
    var words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    var found = lines.filter(function (line) { return words.every(function (word) { return line.text.indexOf(word) >= 0; }); });
    table.tBodies[0].replaceChildren.apply(table.tBodies[0], found.slice(0, MOST).map(function (line) { return line.row; }));
    count.textContent = found.length.toLocaleString("en") + " of " + lines.length.toLocaleString("en") + (found.length > MOST ? ", the first " + MOST + " shown" : "");
  }
  function draw() {
    if (!holder.open || lines) { return; }
    table = document.importNode(new DOMParser().parseFromString(holder.querySelector("noscript").textContent, "text/html").querySelector("table"), true);
    lines = Array.from(table.tBodies[0].rows, function (row) { return { row: row, text: row.textContent.toLowerCase() }; });
    room.append(table);
    show();
  }
  find.addEventListener("input", show);
  holder.addEventListener("toggle", draw);
  draw();
})();
