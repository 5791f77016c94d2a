/* One view of the page at a time; the address says which: the name of a view, or an element that it holds, or, with "=", what
   the samples show. Links that lead to an element of another view open that first. */
var gradestackViews = (function () {
  "use strict";
  var views = Array.from(document.querySelectorAll(".view")), now = "overview";
  var links = Array.from(document.querySelectorAll(".bar nav a[href^='#']"));
  document.querySelectorAll(".skip[href='#samples']").forEach(function (link) { link.hash = "#list"; });
  function show(name) {
    if (!views.some(function (view) { return view.dataset.view === name; })) { name = "overview"; }
    now = name;
    views.forEach(function (view) { view.classList.toggle("now", view.dataset.view === name); });
    links.forEach(function (link) {
      if (link.hash === "#" + name) { link.setAttribute("aria-current", "page"); } else { link.removeAttribute("aria-current"); }
    });
    window.dispatchEvent(new Event("resize"));
  }
  function follow(event) {
    var hash = location.hash.slice(1), state = new URLSearchParams(hash), target = document.getElementById(hash), view = target && target.closest(".view");
    if (hash.indexOf("=") >= 0) { show(state.get("view") || "samples"); if (event) { scrollTo(0, 0); } }
    else if (/^s\d+$/.test(hash)) { show("samples"); }
    else if (view) {
      for (var folded = target.closest("details"); folded; folded = folded.parentNode.closest("details")) { folded.open = true; }
      show(view.dataset.view);
      if (target === view || target.parentNode === view && target.id === now) { scrollTo(0, 0); } else { target.scrollIntoView(); }
      if (event) { if (target.tabIndex < 0) { target.tabIndex = -1; } target.focus({ preventScroll: true }); }
    } else if (!hash) { show("overview"); }
  }
  window.addEventListener("hashchange", follow);
  follow();
  return { show: show, now: function () { return now; } };
})();
