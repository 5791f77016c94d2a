/* The choice of colours, and the keys of the map of tasks. */
(function () {
  "use strict";
  var root = document.documentElement;
  var theme = document.getElementById("theme"), themes = ["auto", "light", "dark"];
  function showTheme() {
    var now = root.dataset.theme || "auto";
    theme.querySelector("span").textContent = now.charAt(0).toUpperCase() + now.slice(1);
    theme.setAttribute("aria-label", "Colours: " + now + ". Change");
  }
  theme.addEventListener("click", function () {
    var next = themes[(themes.indexOf(root.dataset.theme || "auto") + 1) % themes.length];
    if (next === "auto") { delete root.dataset.theme; } else { root.dataset.theme = next; }
    try { localStorage.setItem("gradestack-theme", next); } catch (error) { /* no storage for local files */ }
    showTheme();
  });
  showTheme();

  /* The map of tasks is one tab stop; arrows walk over its cells. */
  document.querySelectorAll(".taskmap").forEach(function (map) {
    map.addEventListener("keydown", function (event) {
      var step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) { return; }
      var cells = Array.prototype.slice.call(map.querySelectorAll("a"));
      var next = cells[cells.indexOf(document.activeElement) + step];
      if (next) { event.preventDefault(); next.focus(); }
    });
  });
})();
