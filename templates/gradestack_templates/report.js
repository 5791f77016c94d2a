(function () {
  "use strict";
  var root = document.documentElement;
  function byId(id) { return document.getElementById(id); }

  var theme = byId("theme"), themes = ["auto", "light", "dark"];
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

  function reveal() {
    var target = location.hash.length > 1 && byId(location.hash.slice(1));
    if (!target || target.tagName !== "DETAILS") { return; }
    target.hidden = false;
    target.open = true;
    target.scrollIntoView();
    target.querySelector("summary").focus({ preventScroll: true });
  }
  window.addEventListener("hashchange", reveal);
  document.addEventListener("click", function (event) {
    var link = event.target.closest("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) { reveal(); }
  });

  var list = byId("list"), form = byId("filter");
  if (list && form) {
    var samples = Array.prototype.slice.call(list.children), timer = 0;
    samples.forEach(function (sample, place) { sample.place = place; });
    var find = byId("find"), model = byId("model"), code = byId("code"), sort = byId("sort");

    var apply = function () {
      var wanted = {}, words = find.value.trim().toLowerCase(), count = 0;
      form.querySelectorAll("input[name=verdict]").forEach(function (box) { wanted[box.value] = box.checked; });
      samples.forEach(function (sample) {
        var data = sample.dataset;
        var good = wanted[data.v] !== false &&
          (!model || !model.value || data.m === model.value) &&
          (!code || !code.value || (" " + data.k + " ").indexOf(" " + code.value + " ") >= 0) &&
          (!words || sample.textContent.toLowerCase().indexOf(words) >= 0);
        sample.hidden = !good;
        count += good ? 1 : 0;
      });
      byId("shown-count").textContent = count + " shown";
      byId("nothing").hidden = count > 0;
    };
    var number = function (text, fallback) { return text === "" ? fallback : parseFloat(text); };
    var orders = {
      worst: function (a, b) { return a.place - b.place; },
      order: function (a, b) { return a.dataset.p - b.dataset.p; },
      low: function (a, b) { return number(a.dataset.s, Infinity) - number(b.dataset.s, Infinity) || a.place - b.place; },
      high: function (a, b) { return number(b.dataset.s, -Infinity) - number(a.dataset.s, -Infinity) || a.place - b.place; }
    };
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    form.addEventListener("change", apply);
    find.addEventListener("input", function () { clearTimeout(timer); timer = setTimeout(apply, 150); });
    sort.addEventListener("change", function () {
      list.append.apply(list, samples.slice().sort(orders[sort.value]));
    });
    byId("fold").addEventListener("click", function () {
      list.querySelectorAll("details.sample[open]").forEach(function (sample) { sample.open = false; });
    });
    document.querySelectorAll("a.pick").forEach(function (link) {
      link.addEventListener("click", function () {
        if (!code) { return; }
        code.value = link.dataset.code;
        if (code.selectedIndex < 0) { code.value = ""; }
        apply();
      });
    });
    apply();
  }
  reveal();
})();
