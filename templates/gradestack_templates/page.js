/* The choice of colours. */
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
})();
