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
  var tasks = null, data = null, shown = [], orders = {}, ranks = null, names = null, current = -1, timer = 0, found = null, loading = false;
  var room = byId("room"), one = byId("one"), form = byId("filter"), find = byId("find"), sort = byId("sort"), wipe = byId("clear");
  var split = document.querySelector(".split");
  var chips = Array.prototype.slice.call(form.querySelectorAll(".term"));

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
    if (data.chunks.served || !globalThis.crypto || !crypto.subtle) { return bytes; }
    return crypto.subtle.digest("SHA-256", bytes).then(function (sum) {
      var found = Array.from(new Uint8Array(sum), function (byte) { return byte.toString(16).padStart(2, "0"); }).join("");
      if (found !== (number === "text" ? data.chunks.text : data.chunks.sums[number - 1])) { throw new Error(beside + "/chunk-" + number + ".js is of another page"); }
      return bytes;
    });
  }
  function textOf(number) {
    var held = byId("chunk" + number), bytes = held ? Promise.resolve(gradestackBytes(held.textContent))
      : read("chunk-" + number).then(function (bytes) { return checked(number, bytes); });
    return bytes.then(gradestackUnpacked).then(function (answer) { return answer.text(); });
  }
  function chunk(number) {
    var found = kept.get(number);
    kept.delete(number);
    if (!found) { found = textOf(number).then(function (text) { return text.split("\n"); }); }
    kept.set(number, found);
    found.catch(function () { kept.delete(number); });
    if (kept.size > KEPT) { kept.delete(kept.keys().next().value); }
    return found;
  }
  function score(row) { var value = data.s[row]; return value === null ? "" : value.toFixed(3); }
  function kindText(kind) {
    var parts = data.kinds[kind], about = parts[3] || parts[2];
    return (about ? about + ": " : "") + parts[1] + (parts[3] && parts[2] ? " in " + parts[2] : "");
  }
  function pathOf(kind) { return data.kinds[kind].slice(1).filter(Boolean).join("›"); }
  function isLost(row) { return data.v[row] === 1 || data.v[row] === 2 && data.s[row] !== null && data.s[row] < 1; }
  /* As is_failed has it: not passed, ended in an error, or missing. */
  function isFailed(row) { return isLost(row) || data.v[row] === 0 || data.v[row] === 3; }
  function amount(name, row) {
    var value = name === "score" ? data.s[row] : data.took[name] ? data.took[name][row] : null;
    return value === undefined ? null : value;
  }
  function gist(row) {
    var told = Array.from(new Set(data.sets[data.k[row]].map(kindText)));
    return told.slice(0, 2).join(", ") + (told.length > 2 ? " (+" + (told.length - 2) + ")" : "");
  }
  function siblings(row) {
    var found = [];
    for (var other = 0; other < data.i.length; other++) {
      if (data.i[other] === data.i[row]) { found.push(other); }
    }
    return found.sort(function (a, b) { return data.m[a] - data.m[b] || a - b; });
  }
  /* A sample's name in the address: task.trial, which stays when the order of the input changes. */
  function alike(row, other) {
    return data.m[row] === data.m[other] && data.r[row] === data.r[other] && data.ids[data.i[row]] === data.ids[data.i[other]];
  }
  function nameOf(row) {
    var run = data.runs[data.r[row]], repeated = 1;
    for (var other = 0; other < row; other++) { repeated += alike(row, other) ? 1 : 0; }
    return (data.models.length > 1 ? data.models[data.m[row]] + "/" : "") + data.ids[data.i[row]] +
      (run ? "." + run : "") + (repeated > 1 ? "~" + repeated : "");
  }
  function rowOf(name) {
    for (var row = 0; row < data.i.length; row++) {
      if (name.indexOf(data.ids[data.i[row]]) >= 0 && nameOf(row) === name) { return row; }
    }
    return -1;
  }

  function several() { return data.models.filter(Boolean).length > 1; }
  function short(before, value, after) { return value === null ? "" : before + +value.toPrecision(3) + after; }
  function draw() {
    var first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - 4);
    var last = Math.min(shown.length, first + Math.ceil(list.clientHeight / HEIGHT) + 8);
    room.style.height = shown.length * HEIGHT + "px";
    room.textContent = "";
    for (var place = first; place < last; place++) {
      var row = shown[place], verdict = +data.v[row], line = make("div", "line v" + verdict), run = data.runs[data.r[row]];
      var id = make("span", "line-id", data.ids[data.i[row]]), parts = [make("span", "line-word", MARKS[verdict]), id];
      line.id = "line" + row;
      line.setAttribute("role", "option");
      line.setAttribute("aria-selected", String(row === current));
      line.setAttribute("aria-setsize", String(shown.length));
      line.setAttribute("aria-posinset", String(place + 1));
      line.style.top = place * HEIGHT + "px";
      line.dataset.row = row;
      if (run) { id.append(make("small", "", "·" + run)); }
      parts[0].append(make("span", "sr", " " + data.words[verdict]));
      if (several()) { parts.push(make("span", "soft", data.models[data.m[row]])); }
      parts.push(make("span", "n", score(row)), make("span", "line-gist", gist(row)));
      if (data.took.cost) { parts.push(make("span", "n soft more", short("$", amount("cost", row), ""))); }
      if (data.took.seconds) { parts.push(make("span", "n soft more", short("", amount("seconds", row), " s"))); }
      line.append.apply(line, parts);
      room.append(line);
    }
    if (current >= 0 && byId("line" + current)) { list.setAttribute("aria-activedescendant", "line" + current); }
    else { list.removeAttribute("aria-activedescendant"); }
  }

  /* The row of a sample as text, in a chunk of single ones or of all. */
  function rowText(row) {
    if (data.chunks.served) { return chunk("s" + (row + 1)).then(function (lines) { return lines[0]; }); }
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
    return chunk(number).then(function (lines) { return lines[place]; });
  }
  /* The sample of a sub-agent, of the same run where an id has several. */
  function childOf(row, id) {
    var place = data.ids.indexOf(id), rows = [];
    data.i.forEach(function (each, other) { if (each === place) { rows.push(other); } });
    var found = rows.find(function (each) { return data.runs[data.r[each]] === data.runs[data.r[row]]; });
    if (found === undefined) { found = rows[0]; }
    return found === undefined ? null : { href: "#s" + (found + 1), json: rowText(found) };
  }
  function loaded(row) {
    var own = panelsOf(row).catch(function (error) { return [make("p", "note", error.message + ".")]; });
    return Promise.all([rowText(row), own]).then(function (found) {
      return gradestackSample(found[0], { line: data.apart ? 0 : row + 1, longest: data.longest, panels: found[1], lacking: lacking(), child: childOf.bind(null, row) });
    });
  }
  /* What plugins show of a sample, rendered with the page. */
  function panelsOf(row) {
    var each = data.chunks.panels.findIndex(function (rows) { return rows.indexOf(row) >= 0; }), served = data.chunks.served;
    if (each < 0 && !served) { return Promise.resolve([]); }
    return chunk(served ? "s" + (row + 1) : data.chunks.first.length + each + 1).then(function (lines) {
      var texts = JSON.parse(lines[served ? 1 : data.chunks.panels[each].indexOf(row)]);
      return texts.map(function (html) { return document.importNode(new DOMParser().parseFromString(html, "text/html").querySelector(".panel"), true); });
    });
  }
  function lacking() {
    var titles = data.chunks.without;
    if (!titles.length) { return null; }
    return make("p", "note", titles.join(", ") + ": in a run of this size drawn for the worst samples only; “gradestack view RUN_DIR” draws it for each.");
  }

  function show(row) {
    var verdict = +data.v[row], run = data.runs[data.r[row]], head = make("div", "one-head"), title = make("h3", ""), line = make("p", "one-line");
    var back = make("button", "quiet back", "← List"), link = make("button", "quiet", "Copy link");
    current = row;
    title.append("Task " + data.ids[data.i[row]] + (run ? ", trial " + run : ""));
    back.type = link.type = "button";
    back.addEventListener("click", function () { split.classList.remove("reading"); draw(); list.focus(); });
    link.addEventListener("click", function () {
      remember();
      function told(text) { link.textContent = text; }
      if (!navigator.clipboard) { told("In the address bar"); return; }
      navigator.clipboard.writeText(location.href.split("#")[0] + "#" + new URLSearchParams({ sample: nameOf(row) })).then(function () { told("Copied"); }, function () { told("In the address bar"); });
    });
    head.append(back, title, link);
    if (data.chunks.served) {
      var json = make("a", "", "JSON");
      json.href = "rows/" + (row + 1) + ".json";
      link.before(json);
    }
    line.append(make("span", "pill v" + verdict, MARKS[verdict] + " " + data.words[verdict]));
    if (data.s[row] !== null) { line.append(make("span", "soft", " score "), make("b", "", score(row))); }
    if (data.models[data.m[row]]) { line.append(" ", make("code", "", data.models[data.m[row]])); }
    if (gist(row)) { line.append(make("span", "soft", " " + gist(row))); }
    one.textContent = "";
    one.scrollTop = 0;
    one.append(head, line);
    if (siblings(row).length > 1) { one.append(trials(row)); }
    one.append(waiting(row));
  }
  /* All trials of the task, model by model: a mark each, of the open one with its name. */
  function trials(row) {
    var bar = make("p", "trials"), before = -1, first = 0;
    siblings(row).slice(0, 200).forEach(function (other, place) {
      if (data.m[other] !== before) { first = place; }
      var name = "trial " + (data.runs[data.r[other]] || place - first + 1), button = make("button", "v" + data.v[other], MARKS[+data.v[other]]);
      if (several() && data.m[other] !== before) { bar.append(make("code", "", data.models[data.m[other]])); }
      before = data.m[other];
      button.type = "button";
      button.title = name + ": " + data.words[+data.v[other]];
      button.setAttribute("aria-label", button.title);
      button.setAttribute("aria-pressed", String(other === row));
      button.addEventListener("click", function () { go(other); });
      bar.append(button);
    });
    return bar;
  }
  function waiting(row) {
    var holder = make("div", "waiting"), told = make("ul", "reasons");
    data.sets[data.k[row]].forEach(function (kind) { told.append(make("li", "", data.kinds[kind][0] + ": " + kindText(kind))); });
    holder.append(told);
    loaded(row).then(function (found) { holder.replaceWith(found); }, function (error) {
      holder.append(make("p", "note", error.message + (data.apart ? "." : ": see results.jsonl, line " + (row + 1) + ".")));
    });
    return holder;
  }

  /* List and open run take what is left of the window below them. */
  function fit() {
    var top = split.getBoundingClientRect().top + window.scrollY;
    if (top > 0) { split.style.setProperty("--pane", "calc(100vh - " + Math.ceil(top + 78) + "px)"); }
  }
  function reveal(row) {
    var place = shown.indexOf(row), top = place * HEIGHT;
    if (place >= 0 && (top < list.scrollTop || top > list.scrollTop + list.clientHeight - HEIGHT)) {
      list.scrollTop = Math.max(0, top - 3 * HEIGHT);
    }
  }
  function go(row, quiet) {
    show(row);
    reveal(row);
    draw();
    if (!quiet) { remember(); }
  }
  function step(by) {
    var place = shown.indexOf(current) + by;
    if (place >= 0 && place < shown.length) { go(shown[place]); }
  }

  /* All samples in one order, found once, by counting: scores have three digits, so that few are distinct. */
  function ordered(name) {
    if (!ranks) { ranks = ranked(); }
    if (!orders[name]) {
      var top = ranks.top, rank = ranks.rows, key = {
        worst: function (row) { return data.v[row] * top + rank[row]; },
        low: function (row) { return (data.s[row] === null ? top : 0) + rank[row]; },
        high: function (row) { return data.s[row] === null ? top : top - 1 - rank[row]; },
        order: function () { return 0; }
      }[name];
      orders[name] = key ? counted(key, MARKS.length * top + 1) : Uint32Array.from(data.i.keys()).sort(function (a, b) {
        return (amount(name, b) === null ? -1 : amount(name, b)) - (amount(name, a) === null ? -1 : amount(name, a)) || a - b;
      });
    }
    return orders[name];
  }
  function ranked() {
    var distinct = Array.from(new Set(data.s).add(0)).filter(function (each) { return each !== null; }).sort(function (a, b) { return a - b; });
    var rank = new Map(distinct.map(function (each, place) { return [each, place]; }));
    rank.set(null, rank.get(0));
    return { top: distinct.length, rows: Uint32Array.from(data.s, function (each) { return rank.get(each); }) };
  }
  function counted(key, size) {
    var rows = data.i.length, keys = new Uint32Array(rows), starts = new Uint32Array(size + 1), found = new Uint32Array(rows);
    for (var row = 0; row < rows; row++) { keys[row] = key(row); starts[keys[row] + 1]++; }
    for (var place = 0; place < size; place++) { starts[place + 1] += starts[place]; }
    for (row = 0; row < rows; row++) { found[starts[keys[row]]++] = row; }
    return found;
  }

  function boxes() { return Array.prototype.slice.call(form.querySelectorAll("input[name=verdict]")); }
  /* What is searched for: words, and terms such as tool:refund, cost>0.01 or passed:no; quotes hold spaces together. */
  var TERM = /(?:(tool|expected|uncalled|cause|reason|model|task|label|facet|passed)(:)|(score|cost|seconds|tokens)(>=|<=|>|<))(?:"((?:[^"\\]|\\.)*)"|(\S+))|"((?:[^"\\]|\\.)*)"|(\S+)/gi;
  function termsOf(query) {
    return Array.from(query.matchAll(TERM), function (match) {
      var quoted = match[5] !== undefined ? match[5] : match[7], text = quoted !== undefined ? quoted.replace(/\\(.)/g, "$1") : match[6] || match[8];
      return { key: (match[1] || match[3] || "").toLowerCase(), sign: match[4] || ":", text: text.toLowerCase() };
    });
  }
  function flags(values, test) { return Uint8Array.from(values, function (each) { return test(each) ? 1 : 0; }); }
  /* Those that are the text, else those that contain it. */
  function named(names, text, alike) {
    var lower = names.map(function (name) { return name.toLowerCase(); });
    var same = alike || function (name) { return name === text; };
    return lower.some(same) ? flags(lower, same) : flags(lower, function (name) { return name.indexOf(text) >= 0; });
  }
  function among(sets, known) { return flags(sets, function (set) { return set.some(function (each) { return known[each]; }); }); }
  function paths() { return data.kinds.map(function (_, kind) { return pathOf(kind); }); }
  /* Lines as one text, which is searched in a fraction of the time; and those that have a text. */
  function lined(text, count) {
    var ends = new Uint32Array(count), at = -1;
    for (var line = 0; line < count; line++) { at = text.indexOf("\n", at + 1); ends[line] = at < 0 ? text.length : at; }
    return { text: text, ends: ends };
  }
  function texts(text, lines) {
    var hits = new Uint8Array(lines ? lines.ends.length : data.i.length), line = 0, at = -1;
    while (lines && (at = lines.text.indexOf(text, at + 1)) >= 0) {
      while (lines.ends[line] < at) { line++; }
      hits[line] = 1;
      at = lines.ends[line];
    }
    return hits;
  }
  function testOf(term) {
    var text = term.text, known, kinds, ids, tools, hits;
    function under(path) { return path === text || path.indexOf(text + "›") === 0; }
    switch (term.key) {
      case "model": known = named(data.models, text); return function (row) { return known[data.m[row]]; };
      case "task": known = named(data.ids, text); return function (row) { return known[data.i[row]]; };
      case "tool": known = among(data.called, named(data.tools, text)); return function (row) { return known[data.t[row]]; };
      case "expected":
        known = text === "none" ? flags(data.called, function (set) { return !set.length; }) : among(data.called, named(data.tools, text));
        return function (row) { return data.e[row] >= 0 && known[data.e[row]]; };
      case "uncalled":
        known = among(data.called, named(data.tools, text));
        return function (row) { return data.e[row] >= 0 && known[data.e[row]] && !known[data.t[row]]; };
      case "reason": known = among(data.sets, named(paths(), text, under)); return function (row) { return known[data.k[row]]; };
      case "cause":
        kinds = named(paths(), text, under);
        known = flags(data.main, function (kind) { return kind >= 0 ? kinds[kind] : text === data.no_reason; });
        return function (row) { return known[data.k[row]] && isFailed(row); };
      case "label": hits = texts("\u0001" + text.replace(" → ", "\u0002") + "\u0001", found); return function (row) { return hits[row]; };
      case "facet":
        known = text.slice(text.indexOf("=") + 1);
        hits = ['"' + known + '"', known + ",", known + "}", '["' + known.split(", ").join('","') + '"]'].map(function (each) { return texts('"' + text.split("=")[0] + '"\u0003' + each, found); });
        return function (row) { return hits.some(function (each) { return each[row]; }); };
      case "passed": return function (row) { return text === "no" ? isLost(row) : data.v[row] === 5 || data.v[row] === 2 && !isLost(row); };
      case "": break;
      default: return function (row) {
        var value = amount(term.key, row), bound = parseFloat(text);
        return value !== null && { ">": value > bound, ">=": value >= bound, "<": value < bound, "<=": value <= bound }[term.sign];
      };
    }
    function within(names) { return flags(names, function (name) { return name.toLowerCase().indexOf(text) >= 0; }); }
    kinds = among(data.sets, within(data.kinds.map(function (parts) { return parts.join(" "); })));
    if (!names) { names = lined(data.ids.join("\n").toLowerCase(), data.ids.length); }
    ids = texts(text, names);
    tools = among(data.called, within(data.tools));
    hits = texts(text, found);
    return function (row) { return ids[data.i[row]] || kinds[data.k[row]] || tools[data.t[row]] || hits[row]; };
  }
  function apply() {
    var open = {}, tests = termsOf(find.value).map(testOf);
    if (find.value) { load(); }
    boxes().forEach(function (box) { open[box.value] = box.checked; });
    var order = ordered(sort.value), kept = new Uint32Array(order.length), count = 0;
    for (var place = 0; place < order.length; place++) {
      var row = order[place], test = open[data.v[row]] === false ? -1 : 0;
      while (test >= 0 && test < tests.length) { test = tests[test](row) ? test + 1 : -1; }
      if (test >= 0) { kept[count++] = row; }
    }
    shown = kept.subarray(0, count);
    byId("shown-count").textContent = count.toLocaleString("en") + " of " + data.i.length.toLocaleString("en");
    byId("nothing").hidden = count > 0;
    wipe.hidden = !find.value && boxes().every(function (box) { return box.checked; });
    chips.forEach(function (chip) { chip.setAttribute("aria-pressed", String(find.value.indexOf(chip.dataset.term) >= 0)); });
  }

  function remember() {
    var state = new URLSearchParams(), off = boxes().filter(function (box) { return !box.checked; }).map(function (box) { return box.value; });
    if (gradestackViews.now() !== "samples") { state.set("view", gradestackViews.now()); }
    if (current >= 0) { state.set("sample", nameOf(current)); }
    if (find.value) { state.set("q", find.value); }
    if (sort.value !== "worst") { state.set("sort", sort.value); }
    if (off.length) { state.set("without", off.join("")); }
    tasks.tell(state);
    try { history.replaceState(null, "", "#" + state.toString()); } catch (error) { /* not everywhere */ }
  }
  function recall() {
    var hash = location.hash.slice(1), plain = /^s(\d+)$/.exec(hash);
    if (plain) { return open(plain[1] - 1); }
    if (hash.indexOf("=") < 0) { return false; }
    var state = new URLSearchParams(hash), off = state.get("without") || "";
    find.value = state.get("q") || "";
    sort.value = state.get("sort") || "worst";
    if (sort.selectedIndex < 0) { sort.value = "worst"; }
    boxes().forEach(function (box) { box.checked = off.indexOf(box.value) < 0; });
    tasks.recall(state);
    apply();
    draw();
    return state.get("sample") !== null && open(rowOf(state.get("sample")), state.get("view"));
  }
  function open(row, view) {
    if (!(row >= 0 && row < data.i.length)) { return false; }
    gradestackViews.show(view || "samples");
    fit();
    if (shown.indexOf(row) < 0) { clear(); apply(); }
    split.classList.add("reading");
    go(row);
    return true;
  }
  function clear() {
    find.value = "";
    boxes().forEach(function (box) { box.checked = true; });
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
  wipe.addEventListener("click", function () { clear(); changed(); find.focus(); });
  chips.forEach(function (chip) {
    chip.addEventListener("click", function () {
      var term = chip.dataset.term, without = find.value.replace(term, "").replace(/\s+/g, " ").trim();
      find.value = find.value.indexOf(term) >= 0 ? without : (find.value + " " + term).trim();
      changed();
    });
  });
  find.addEventListener("focus", function () { if (data) { load(); } });
  find.addEventListener("input", function () { clearTimeout(timer); timer = setTimeout(changed, 20); });
  list.addEventListener("scroll", function () { requestAnimationFrame(draw); });
  list.addEventListener("click", function (event) {
    var line = event.target.closest(".line");
    if (line) { split.classList.add("reading"); go(+line.dataset.row); }
  });
  document.addEventListener("click", function (event) {
    var link = event.target.closest("a[href^='#']");
    if (!link || !data) { return; }
    var plain = /^#s(\d+)$/.exec(link.getAttribute("href"));
    if (plain) { event.preventDefault(); open(plain[1] - 1); one.focus({ preventScroll: true }); }
  });
  document.addEventListener("keydown", function (event) {
    if (!data || event.ctrlKey || event.metaKey || event.altKey) { return; }
    if (event.key === "Escape") { split.classList.remove("reading"); list.focus(); return; }
    if (/INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) { return; }
    if (gradestackViews.now() !== "samples" && event.key !== "/") { return; }
    var by = { j: 1, k: -1 }[event.key];
    if (event.target === list) { by = by || { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key]; }
    if (by) { event.preventDefault(); step(by); }
    if (event.key === "/") { event.preventDefault(); gradestackViews.show("samples"); find.focus(); }
    if (event.key === "Enter" && (event.target === list || event.target === document.body)) { event.preventDefault(); split.classList.add("reading"); one.focus(); }
  });
  /* A link to the samples that a filter finds. */
  window.addEventListener("hashchange", function () {
    if (!data) { return; }
    if (location.hash.indexOf("=") < 0) { recall(); return; }
    clear();
    list.scrollTop = 0;
    if (!recall() && shown.length) { split.classList.remove("reading"); go(shown[0], true); }
  });
  window.addEventListener("resize", function () { if (data) { fit(); draw(); } });

  /* What is searched beside names and reasons: read when the list is there. */
  function load() {
    if (loading || !data.chunks.text) { return; }
    loading = true;
    textOf("text").then(function (text) {
      found = lined(text, data.i.length);
      root.classList.add("searchable");
      if (find.value) { apply(); draw(); }
    }, function () { /* names and reasons are searched all the same */ });
  }

  /* A browser that cannot unpack the list shows what it shows without scripts. */
  function plain() {
    var all = byId("all"), text = all.querySelector("noscript").textContent;
    all.append.apply(all, Array.from(new DOMParser().parseFromString(text, "text/html").body.childNodes));
    all.style.display = "block";
    form.hidden = true;
    ["task-view", "task-says"].forEach(function (id) { if (byId(id)) { byId(id).hidden = true; } });
    split.hidden = true;
    root.classList.add("ready");
  }

  Promise.resolve(island.textContent).then(function (text) { return text ? gradestackBytes(text) : read("index"); }).then(gradestackUnpacked).then(function (answer) {
    return answer.json();
  }).then(function (found) {
    data = found;
    data.v = Uint8Array.from({ length: data.v.length }, function (_, row) { return data.v.charCodeAt(row) - 48; });
    var longest = data.ids.reduce(function (most, id) { return Math.max(most, id.length); }, 0);
    tasks = gradestackTasks(data, remember);
    list.parentNode.style.setProperty("--id", "min(" + Math.max(4.2, 0.6 * longest + 0.8) + "rem, 25vw)");
    gradestackSave(data, function () { return shown; });
    if (byId("whole-map")) { gradestackMap(data, function (row) { open(row); one.focus({ preventScroll: true }); }); }
    apply();
    list.parentNode.style.setProperty("--more", (data.took.cost ? " 4.6rem" : "") + (data.took.seconds ? " 3.6rem" : ""));
    list.parentNode.classList.toggle("several", several());
    if (!recall() && shown.length) { go(shown[0], true); }
    root.classList.add("ready");
    if (data.chunks.text && !beside) { setTimeout(load, 0); }
  }).catch(plain);
})();
