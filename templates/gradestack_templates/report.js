(function () {
  "use strict";
  var root = document.documentElement;
  function byId(id) { return document.getElementById(id); }
  function make(tag, css, text) {
    var element = document.createElement(tag);
    if (css) { element.className = css; }
    if (text !== undefined) { element.textContent = text; }
    return element;
  }

  var list = byId("list"), island = byId("rows");
  if (!list || !island) { return; }

  var HEIGHT = 34, MARKS = ["!", "○", "·", "–", "–", "●"];
  var tasks = null, data = null, shown = [], orders = {}, current = -1, lower = null, timer = 0;
  var room = byId("room"), one = byId("one"), form = byId("filter"), find = byId("find");
  var model = byId("model"), reason = byId("reason"), sort = byId("sort");

  /* Chunks stand in the page or in files beside it. A file assigns its text to one name; one is read at a time. */
  var beside = island.dataset.beside, reading = Promise.resolve(), kept = new Map(), KEPT = 4;
  function read(name) {
    var found = reading.then(function () {
      return new Promise(function (done, failed) {
        var script = make("script");
        script.onload = script.onerror = function () {
          var text = globalThis.gradestackChunk;
          delete globalThis.gradestackChunk;
          script.remove();
          if (typeof text === "string") { done(gradestackBytes(text)); } else { failed(new Error(beside + "/" + name + ".js is not beside this page")); }
        };
        script.src = beside + "/" + name + ".js";
        document.head.append(script);
      });
    });
    reading = found.catch(function () { /* told by whoever asked */ });
    return found;
  }
  function checked(number, bytes) {
    if (!globalThis.crypto || !crypto.subtle) { return bytes; }
    return crypto.subtle.digest("SHA-256", bytes).then(function (sum) {
      var found = Array.from(new Uint8Array(sum), function (byte) { return byte.toString(16).padStart(2, "0"); }).join("");
      if (found !== data.chunks.sums[number - 1]) { throw new Error(beside + "/chunk-" + number + ".js is of another page"); }
      return bytes;
    });
  }
  function chunk(number) {
    var found = kept.get(number), held = byId("chunk" + number);
    kept.delete(number);
    if (!found) {
      found = held ? Promise.resolve(gradestackBytes(held.textContent))
        : read("chunk-" + number).then(function (bytes) { return checked(number, bytes); });
      found = found.then(gradestackUnpacked).then(function (answer) { return answer.text(); }).then(function (text) { return text.split("\n"); });
    }
    kept.set(number, found);
    found.catch(function () { kept.delete(number); });
    if (kept.size > KEPT) { kept.delete(kept.keys().next().value); }
    return found;
  }
  function score(row) { var value = data.s[row]; return value === null ? "" : value.toFixed(3); }
  function kindText(kind) {
    var parts = data.kinds[kind], about = parts[2] + (parts[3] ? "." + parts[3] : "");
    return (about ? about + ": " : "") + parts[1].replace(/_/g, " ");
  }
  function gist(row) {
    var kinds = data.sets[data.k[row]];
    return kinds.slice(0, 2).map(kindText).join(", ") + (kinds.length > 2 ? " (+" + (kinds.length - 2) + ")" : "");
  }
  function siblings(row) {
    var found = [];
    for (var other = 0; other < data.i.length; other++) {
      if (data.i[other] === data.i[row] && data.m[other] === data.m[row]) { found.push(other); }
    }
    return found;
  }
  /* A sample's name in the address: task.trial, which stays when the order of the input changes. */
  function alike(row, other) {
    return data.i[row] === data.i[other] && data.m[row] === data.m[other] && data.r[row] === data.r[other];
  }
  function nameOf(row) {
    var run = data.runs[data.r[row]], repeated = 1;
    for (var other = 0; other < row; other++) { repeated += alike(row, other) ? 1 : 0; }
    return (data.models.length > 1 ? data.models[data.m[row]] + "/" : "") + data.ids[data.i[row]] +
      (run ? "." + run : "") + (repeated > 1 ? "~" + repeated : "");
  }
  function named(name) {
    for (var row = 0; row < data.i.length; row++) {
      if (name.indexOf(data.ids[data.i[row]]) >= 0 && nameOf(row) === name) { return row; }
    }
    return -1;
  }

  function draw() {
    var first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - 4);
    var last = Math.min(shown.length, first + Math.ceil(list.clientHeight / HEIGHT) + 8);
    room.style.height = shown.length * HEIGHT + "px";
    room.textContent = "";
    for (var place = first; place < last; place++) {
      var row = shown[place], verdict = +data.v[row], line = make("div", "line v" + verdict), run = data.runs[data.r[row]];
      var id = make("span", "line-id", data.ids[data.i[row]]);
      line.id = "line" + row;
      line.setAttribute("role", "option");
      line.setAttribute("aria-selected", String(row === current));
      line.setAttribute("aria-setsize", String(shown.length));
      line.setAttribute("aria-posinset", String(place + 1));
      line.style.top = place * HEIGHT + "px";
      line.dataset.row = row;
      if (run) { id.append(make("small", "", "·" + run)); }
      var word = make("span", "line-word", MARKS[verdict] + " ");
      word.append(make("span", "", data.words[verdict]));
      line.append(word, id, make("span", "n", score(row)), make("span", "line-gist", gist(row)));
      room.append(line);
    }
    if (current >= 0 && byId("line" + current)) { list.setAttribute("aria-activedescendant", "line" + current); }
    else { list.removeAttribute("aria-activedescendant"); }
  }

  /* The row of a sample, in a chunk of single ones or of all, with what plugins show of it. */
  function loaded(row) {
    var picked = data.chunks.picked, first = data.chunks.first, number = 0, place = -1;
    for (var each = picked.length - 1; each >= 0 && place < 0; each--) {
      place = picked[each].indexOf(row);
      number = first.length + data.chunks.panels.length + each + 1;
    }
    if (place < 0) {
      number = first.length;
      while (number && first[number - 1] > row) { number--; }
      place = row - first[number - 1];
    }
    var own = panelsOf(row).catch(function (error) { return [make("p", "note", error.message + ".")]; });
    return Promise.all([chunk(number), own]).then(function (found) {
      return gradestackSample(found[0][place], { line: row + 1, longest: data.longest, panels: found[1], lacking: lacking() });
    });
  }
  /* What plugins show of a sample, rendered with the page. */
  function panelsOf(row) {
    var each = data.chunks.panels.findIndex(function (rows) { return rows.indexOf(row) >= 0; });
    if (each < 0) { return Promise.resolve([]); }
    return chunk(data.chunks.first.length + each + 1).then(function (lines) {
      var texts = JSON.parse(lines[data.chunks.panels[each].indexOf(row)]);
      return texts.map(function (html) { return document.importNode(new DOMParser().parseFromString(html, "text/html").querySelector(".panel"), true); });
    });
  }
  function lacking() {
    var titles = data.chunks.without;
    if (!titles.length) { return null; }
    return make("p", "note", titles.join(", ") + ": in a run of this size drawn for the worst samples only; “gradestack view RUN_DIR” draws it for each.");
  }

  function show(row) {
    var verdict = +data.v[row], run = data.runs[data.r[row]], head = make("h3", ""), line = make("p", "one-line");
    current = row;
    head.append("Task " + data.ids[data.i[row]] + (run ? ", trial " + run : ""));
    line.append(make("span", "pill v" + verdict, MARKS[verdict] + " " + data.words[verdict]));
    if (data.s[row] !== null) { line.append(make("span", "soft", " score "), make("b", "", score(row))); }
    if (data.models[data.m[row]]) { line.append(make("span", "soft", " " + data.models[data.m[row]])); }
    one.textContent = "";
    one.scrollTop = 0;
    one.append(head, line);
    var trials = siblings(row);
    if (trials.length > 1) {
      var bar = make("p", "trials");
      trials.slice(0, 40).forEach(function (other, place) {
        var button = make("button", "", MARKS[+data.v[other]] + " trial " + (data.runs[data.r[other]] || place + 1) + "  " + score(other));
        button.type = "button";
        button.setAttribute("aria-pressed", String(other === row));
        button.addEventListener("click", function () { go(other); });
        bar.append(button);
      });
      one.append(bar);
    }
    one.append(waiting(row));
  }
  function waiting(row) {
    var holder = make("div", "waiting"), told = make("ul", "reasons");
    data.sets[data.k[row]].forEach(function (kind) { told.append(make("li", "", data.kinds[kind][0] + ": " + kindText(kind))); });
    holder.append(told);
    loaded(row).then(function (found) { holder.replaceWith(found); }, function (error) {
      holder.append(make("p", "note", error.message + ": see results.jsonl, line " + (row + 1) + "."));
    });
    return holder;
  }

  function scrollTo(row) {
    var place = shown.indexOf(row), top = place * HEIGHT;
    if (place >= 0 && (top < list.scrollTop || top > list.scrollTop + list.clientHeight - HEIGHT)) {
      list.scrollTop = Math.max(0, top - 3 * HEIGHT);
    }
  }
  function go(row, quiet) {
    show(row);
    scrollTo(row);
    draw();
    if (!quiet) { remember(); }
  }
  function step(by) {
    var place = shown.indexOf(current) + by;
    if (place >= 0 && place < shown.length) { go(shown[place]); }
  }

  /* All samples in one order, found once, by counting: scores have three digits, so that few are distinct. */
  function ordered(name) {
    if (!orders[name]) {
      var distinct = Array.from(new Set(data.s)).concat(0).filter(function (each) { return each !== null; });
      distinct = Array.from(new Set(distinct)).sort(function (a, b) { return a - b; });
      var rank = new Map(distinct.map(function (each, place) { return [each, place]; })), top = distinct.length;
      rank.set(null, rank.get(0));
      var key = {
        worst: function (row) { return data.v[row] * top + rank.get(data.s[row]); },
        low: function (row) { return (data.s[row] === null ? top : 0) + rank.get(data.s[row]); },
        high: function (row) { return data.s[row] === null ? top : top - 1 - rank.get(data.s[row]); },
        order: function () { return 0; }
      }[name];
      orders[name] = counted(key, MARKS.length * top + 1);
    }
    return orders[name];
  }
  function counted(key, size) {
    var rows = data.i.length, keys = new Uint32Array(rows), starts = new Uint32Array(size + 1), found = new Uint32Array(rows);
    for (var row = 0; row < rows; row++) { keys[row] = key(row); starts[keys[row] + 1]++; }
    for (var place = 0; place < size; place++) { starts[place + 1] += starts[place]; }
    for (row = 0; row < rows; row++) { found[starts[keys[row]]++] = row; }
    return found;
  }

  function boxes() { return Array.prototype.slice.call(form.querySelectorAll("input[name=verdict]")); }
  function flags(values, test) { return Uint8Array.from(values, function (each) { return test(each) ? 1 : 0; }); }
  function apply() {
    var open = {}, words = find.value.trim().toLowerCase(), wanted = model && model.value !== "" ? +model.value : -1;
    var picked = kindsOf(reason ? reason.value : "");
    boxes().forEach(function (box) { open[box.value] = box.checked; });
    if (words && !lower) { lower = data.ids.map(function (id) { return id.toLowerCase(); }); }
    var kinds = data.kinds.map(function (parts) { return parts.join(" ").toLowerCase().indexOf(words) >= 0; });
    var sets = flags(data.sets, function (set) { return !picked.length || set.some(function (each) { return picked.indexOf(each) >= 0; }); });
    var told = flags(data.sets, function (set) { return !words || set.some(function (each) { return kinds[each]; }); });
    var ids = flags(words ? lower : [], function (id) { return id.indexOf(words) >= 0; });
    var order = ordered(sort.value), found = new Uint32Array(order.length), count = 0;
    for (var place = 0; place < order.length; place++) {
      var row = order[place], set = data.k[row];
      if (open[data.v[row]] !== false && (wanted < 0 || data.m[row] === wanted) && sets[set] && (told[set] || ids[data.i[row]])) {
        found[count++] = row;
      }
    }
    shown = found.subarray(0, count);
    byId("shown-count").textContent = count.toLocaleString("en") + " of " + data.i.length.toLocaleString("en");
    byId("nothing").hidden = count > 0;
    draw();
  }

  function remember() {
    var state = new URLSearchParams();
    if (current >= 0) { state.set("sample", nameOf(current)); }
    if (find.value) { state.set("q", find.value); }
    if (model && model.value) { state.set("model", data.models[+model.value]); }
    kindsOf(reason ? reason.value : "").forEach(function (kind) { state.append("reason", data.kinds[kind].join("|")); });
    if (sort.value !== "worst") { state.set("sort", sort.value); }
    var off = boxes().filter(function (box) { return !box.checked; }).map(function (box) { return box.value; });
    if (off.length) { state.set("without", off.join("")); }
    tasks.tell(state);
    try { history.replaceState(null, "", "#" + state.toString()); } catch (error) { /* not everywhere */ }
  }
  function recall() {
    var hash = location.hash.slice(1), plain = /^s(\d+)$/.exec(hash);
    if (plain) { return open(plain[1] - 1); }
    if (hash.indexOf("=") < 0) { return false; }
    var state = new URLSearchParams(hash), told = state.getAll("reason"), off = state.get("without") || "";
    find.value = state.get("q") || "";
    sort.value = state.get("sort") || "worst";
    if (sort.selectedIndex < 0) { sort.value = "worst"; }
    if (model) { model.value = state.get("model") ? String(data.models.indexOf(state.get("model"))) : ""; }
    pick(Array.from(data.kinds.keys()).filter(function (kind) { return told.indexOf(data.kinds[kind].join("|")) >= 0; }));
    boxes().forEach(function (box) { box.checked = off.indexOf(box.value) < 0; });
    tasks.recall(state);
    apply();
    return state.get("sample") !== null && open(named(state.get("sample")));
  }
  function open(row) {
    if (!(row >= 0 && row < data.i.length)) { return false; }
    if (shown.indexOf(row) < 0) { clear(); apply(); }
    go(row);
    byId("samples").scrollIntoView();
    return true;
  }
  function clear() {
    find.value = "";
    if (model) { model.value = ""; }
    if (reason) { reason.value = ""; }
    boxes().forEach(function (box) { box.checked = true; });
  }
  /* The reasons an option stands for: the number of one, or those of several that a finding is about. */
  function kindsOf(value) { return value.split(" ").filter(Boolean).map(Number); }
  function aboutOf(kinds) {
    var first = data.kinds[kinds[0]], same = kinds.every(function (kind) { return data.kinds[kind][3] === first[3]; });
    return first[2] + (same && first[3] ? "." + first[3] : "") + ": any reason";
  }
  function pick(kinds) {
    if (!reason || !kinds.length) { return; }
    reason.value = kinds.join(" ");
    if (reason.selectedIndex < 0) {
      var option = make("option", "", kinds.length > 1 ? aboutOf(kinds) : kindText(kinds[0]));
      option.value = kinds.join(" ");
      reason.append(option);
      reason.value = option.value;
    }
  }
  function changed() {
    apply();
    list.scrollTop = 0;
    if (shown.length && shown.indexOf(current) < 0) { show(shown[0]); }
    draw();
    remember();
  }

  form.addEventListener("submit", function (event) { event.preventDefault(); });
  form.addEventListener("change", changed);
  find.addEventListener("input", function () { clearTimeout(timer); timer = setTimeout(changed, 60); });
  list.addEventListener("scroll", function () { requestAnimationFrame(draw); });
  list.addEventListener("click", function (event) {
    var line = event.target.closest(".line");
    if (line) { go(+line.dataset.row); }
  });
  document.addEventListener("click", function (event) {
    var link = event.target.closest("a[href^='#']");
    if (!link || !data) { return; }
    var plain = /^#s(\d+)$/.exec(link.getAttribute("href"));
    if (plain) { event.preventDefault(); open(plain[1] - 1); one.focus({ preventScroll: true }); }
    if (link.classList.contains("pick")) {
      event.preventDefault();
      clear();
      pick(kindsOf(link.dataset.kind));
      if (link.dataset.only) { boxes().forEach(function (box) { box.checked = box.value === link.dataset.only; }); }
      changed();
      byId("samples").scrollIntoView();
    }
  });
  document.addEventListener("keydown", function (event) {
    if (!data || event.ctrlKey || event.metaKey || event.altKey) { return; }
    if (event.key === "Escape") { list.focus(); return; }
    if (/INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) { return; }
    var by = { j: 1, k: -1 }[event.key];
    if (event.target === list) { by = by || { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key]; }
    if (by) { event.preventDefault(); step(by); }
    if (event.key === "/") { event.preventDefault(); find.focus(); }
    if (event.key === "Enter" && event.target === list) { event.preventDefault(); one.focus(); }
  });
  /* A link to the samples that a filter finds. */
  window.addEventListener("hashchange", function () {
    if (location.hash.indexOf("=") < 0) { recall(); return; }
    clear();
    if (!recall() && shown.length) { go(shown[0], true); }
    byId("samples").scrollIntoView();
  });
  window.addEventListener("resize", draw);

  /* A browser that cannot unpack the list shows what it shows without scripts. */
  function plain() {
    var all = byId("all"), text = all.querySelector("noscript").textContent;
    all.append.apply(all, Array.from(new DOMParser().parseFromString(text, "text/html").body.childNodes));
    all.style.display = "block";
    form.hidden = true;
    ["task-view", "task-says"].forEach(function (id) { if (byId(id)) { byId(id).hidden = true; } });
    document.querySelector(".split").hidden = true;
    root.classList.add("ready");
  }

  Promise.resolve(island.textContent).then(function (text) { return text ? gradestackBytes(text) : read("index"); }).then(gradestackUnpacked).then(function (answer) {
    return answer.json();
  }).then(function (found) {
    data = found;
    data.v = Uint8Array.from({ length: data.v.length }, function (_, row) { return data.v.charCodeAt(row) - 48; });
    var longest = data.ids.reduce(function (most, id) { return Math.max(most, id.length); }, 0);
    tasks = gradestackTasks(data, remember);
    list.parentNode.style.setProperty("--id", Math.min(7.5, Math.max(4.2, longest / 2 + 1.5)) + "rem");
    gradestackSave(data, function () { return shown; });
    if (byId("whole-map")) { gradestackMap(data, function (row) { open(row); one.focus({ preventScroll: true }); }); }
    apply();
    if (!recall() && shown.length) { go(shown[0], true); }
    root.classList.add("ready");
  }).catch(plain);
})();
