/* The choice of colours: what was chosen before is there before anything is drawn. */
(function () {
  "use strict";
  var root = document.documentElement, themes = ["auto", "light", "dark"], chosen = null;
  try { chosen = localStorage.getItem("gradestack-theme"); } catch (error) { /* no storage for local files */ }
  if (chosen === "light" || chosen === "dark") { root.dataset.theme = chosen; }
  root.classList.add("js");
  document.addEventListener("DOMContentLoaded", function () {
    var theme = document.getElementById("theme");
    function show() {
      var now = root.dataset.theme || "auto";
      theme.querySelector("span").textContent = now.charAt(0).toUpperCase() + now.slice(1);
      theme.setAttribute("aria-label", "Colours: " + now + ". Change");
    }
    theme.addEventListener("click", function () {
      var next = themes[(themes.indexOf(root.dataset.theme || "auto") + 1) % themes.length];
      if (next === "auto") { delete root.dataset.theme; } else { root.dataset.theme = next; }
      try { localStorage.setItem("gradestack-theme", next); } catch (error) { /* no storage for local files */ }
      show();
    });
    show();
  });
})();
