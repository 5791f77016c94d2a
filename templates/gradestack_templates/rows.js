/* Samples on a page without a list: each row that the page carries is drawn where its number stands. */
(function () {
  "use strict";
  var island = document.getElementById("rows");
  Promise.resolve().then(function () {
    return gradestackUnpacked(gradestackBytes(island.textContent)).text();
  }).then(function (text) {
    text.split("\n").forEach(function (json, place) {
      var holder = document.querySelector("[data-row='" + place + "']"), said = holder.dataset;
      var panels = Array.from(holder.querySelectorAll(".panel"));
      holder.replaceChildren(gradestackSample(json, { line: +said.line, longest: +said.longest, panels: panels }));
    });
  }, function () { /* a browser that cannot unpack it keeps the reasons */ });
})();
