(function () {
  "use strict";
  var root = document.documentElement, theme = null;
  try { theme = localStorage.getItem("gradestack-theme"); } catch (error) { /* no storage for local files */ }
  if (theme === "light" || theme === "dark") { root.dataset.theme = theme; }
  root.classList.add("js");
})();
