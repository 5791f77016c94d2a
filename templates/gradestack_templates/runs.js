(function () {
  "use strict";
  function byId(id) { return document.getElementById(id); }
  var picks = Array.prototype.slice.call(document.querySelectorAll(".pick")), picked = [];
  var figures = JSON.parse(byId("figures").textContent);
  function pair(first, second) {
    return Array.prototype.find.call(document.querySelectorAll("#comparisons li"), function (line) {
      var a = line.dataset.a, b = line.dataset.b;
      return (a === first && b === second) || (a === second && b === first);
    });
  }
  function cell(tag, text) {
    var made = document.createElement(tag);
    made.textContent = text;
    return made;
  }
  function row(tag, texts) {
    var made = document.createElement("tr");
    texts.forEach(function (text, place) { made.append(cell(place ? tag : "th", text)); });
    return made;
  }
  /* A difference as it is written: of shares in points. */
  function gap(before, after) {
    var share = after[3] === "share", value = (after[2] - before[2]) * (share ? 100 : 1), size = Math.abs(value);
    var text = share ? size.toFixed(1) : String(Number(size.toPrecision(3)));
    return (Number(text) ? (value > 0 ? "+" : "-") : "") + text + (share ? " points" : "");
  }
  /* The figures that both runs have, of models of one name; a run of one model is compared with any. */
  function apart(before, after) {
    var table = document.createElement("table"), body = document.createElement("tbody"), head = document.createElement("thead"), paired = figures[after.dataset.number].some(function (line) { return line.against === before.dataset.path; });
    head.append(row("th", ["Figure", before.dataset.path, after.dataset.path, "Difference"].concat(paired ? ["Paired by task"] : [])));
    figures[after.dataset.number].forEach(function (line) {
      var lines = figures[before.dataset.number], alone = lines.length === 1 && figures[after.dataset.number].length === 1;
      var other = lines.find(function (each) { return alone || each.model === line.model; });
      if (!other) { return; }
      var tested = line.against === before.dataset.path && line.paired;
      line.figures.forEach(function (two) {
        var one = other.figures.find(function (each) { return each[4] === two[4]; }), name = (alone || !line.model ? "" : line.model + ": ") + two[0];
        if (!one) { return; }
        var here = tested && tested[0] === two[0];
        body.append(row("td", [name, one[1], two[1], gap(one, two)].concat(paired ? [here ? tested[1] : ""] : [])));
        tested = here ? null : tested;
      });
      if (tested) { body.append(row("td", [tested[0], "", "", "", tested[1]])); }
    });
    table.className = "plain";
    table.append(head, body);
    return { table: table, any: body.rows.length > 0, paired: paired };
  }
  function show() {
    byId("compare").hidden = picked.length === 0;
    byId("how").hidden = picked.length !== 2;
    byId("picked").hidden = picked.length === 2;
    byId("apart").hidden = picked.length !== 2;
    byId("picked").textContent = "Tick one more to compare it with " + picked.map(function (each) { return each.dataset.word; })[0] + ".";
    if (picked.length !== 2) { return; }
    var runs = picked.slice().sort(function (one, other) { return one.dataset.number - other.dataset.number; });
    var words = runs.map(function (each) { return each.dataset.word; });
    var differences = apart(runs[0], runs[1]);
    byId("apart").replaceChildren(differences.table);
    byId("apart").hidden = !differences.any;
    var line = pair(words[0], words[1]), link = line && line.querySelector("a");
    byId("which").textContent = line && line.dataset.sentence ? line.dataset.sentence + "." : !differences.any ? "These two have no figure in common." : differences.paired ? "" : "These differences are not tested: whether they are more than chance, the comparison says.";
    if (byId("go")) {
      byId("go").href = "compared/" + runs.map(function (each) { return each.dataset.number; }).join("-") + "/comparison.html";
      return;
    }
    var out = "comparisons/" + runs.map(function (each) { return each.dataset.name; }).join("-");
    byId("command").textContent = "gradestack compare " + words.join(" ") + " -o " + out;
    byId("there").hidden = !link;
    if (link) { byId("there").href = link.getAttribute("href"); }
  }
  document.addEventListener("change", function (event) {
    if (picks.indexOf(event.target) < 0) { return; }
    picked = picked.filter(function (each) { return each !== event.target; });
    if (event.target.checked) { picked.push(event.target); }
    if (picked.length > 2) { picked.shift().checked = false; }
    show();
  });
  picked = picks.filter(function (each) { return each.checked; }).slice(0, 2);
  picks.forEach(function (each) { each.checked = picked.indexOf(each) >= 0; });
  show();
})();
