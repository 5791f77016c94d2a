(function () {
  "use strict";
  function byId(id) { return document.getElementById(id); }
  var picks = Array.prototype.slice.call(document.querySelectorAll(".pick")), picked = [];
  function pair(first, second) {
    return Array.prototype.find.call(document.querySelectorAll("#comparisons li"), function (line) {
      var a = line.dataset.a, b = line.dataset.b;
      return (a === first && b === second) || (a === second && b === first);
    });
  }
  function show() {
    byId("compare").hidden = picked.length === 0;
    byId("how").hidden = picked.length !== 2;
    byId("picked").hidden = picked.length === 2;
    byId("picked").textContent = "Tick one more run to compare it with " + picked.map(function (each) { return each.dataset.word; })[0] + ".";
    if (picked.length !== 2) { return; }
    var runs = picked.slice().sort(function (one, other) { return one.dataset.number - other.dataset.number; });
    var words = runs.map(function (each) { return each.dataset.word; });
    var out = "comparisons/" + runs.map(function (each) { return each.dataset.name; }).join("-");
    byId("command").textContent = "gradestack compare " + words.join(" ") + " -o " + out;
    var line = pair(words[0], words[1]), link = line && line.querySelector("a");
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
