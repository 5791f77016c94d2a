/* Values of rows as texts and elements, in the words and forms of the page's templates. */
var gradestackValues = (function () {
  "use strict";
  var INLINE = 72, DEEPEST = 8, MOST_COMPARED = 10000;
  var HIDDEN = new RegExp("[\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e" +
    "\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\ufffe\\uffff\\ud800-\\udfff\\u{e0000}-\\u{e007f}]", "gu");
  var LEAF = /[\[{](?:"(?:[^"\\]|\\.){0,72}"|[^\[\]{}"]){0,72}[\]}]/sy, TOKEN = /"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+/gs;

  /* Characters that hide or reorder text are made visible, as everywhere on the page. */
  function visible(text) {
    return text.replace(/\r\n/g, "\n").replace(HIDDEN, function (found) {
      var code = found.codePointAt(0), hex = code.toString(16).toUpperCase();
      return code < 32 ? String.fromCharCode(0x2400 + code) : code === 127 ? "\u2421" : "\u27e8U+" + hex.padStart(4, "0") + "\u27e9";
    });
  }
  function make(tag, css) {
    var element = document.createElement(tag);
    if (css) { element.className = css; }
    for (var place = 2; place < arguments.length; place++) {
      var part = arguments[place];
      if (part !== null && part !== "") { element.append(typeof part === "string" ? visible(part) : part); }
    }
    return element;
  }
  function raw(value) { return !!JSON.isRawJSON && JSON.isRawJSON(value); }
  function isMap(value) { return !!value && typeof value === "object" && !Array.isArray(value) && !raw(value); }
  function map(value) { return isMap(value) ? value : {}; }
  function list(value) { return Array.isArray(value) ? value : []; }
  function text(value) { return typeof value === "string" ? value : ""; }
  function has(value, key) { return Object.prototype.hasOwnProperty.call(value, key); }
  function plain(value) { return raw(value) ? Number(value.rawJSON) : value; }
  function amount(value) { var found = plain(value); return typeof found === "number" ? found : null; }
  function count(value) { return value.toLocaleString("en"); }
  /* A number that reads otherwise than it was written keeps its digits. */
  function parse(json) {
    return JSON.parse(json, function (key, value, context) {
      var kept = typeof value === "number" && JSON.rawJSON && context && String(value) !== context.source;
      return kept ? JSON.rawJSON(context.source) : value;
    });
  }
  function compact(value) {
    if (raw(value)) { return value.rawJSON; }
    if (Array.isArray(value)) { return "[" + value.map(compact).join(", ") + "]"; }
    if (!isMap(value)) { return value === undefined ? "" : JSON.stringify(value); }
    return "{" + Object.keys(value).map(function (key) { return JSON.stringify(key) + ": " + compact(value[key]); }).join(", ") + "}";
  }
  function brief(value, most) {
    var found = visible((typeof value === "string" ? value : compact(value)).slice(0, 4 * most)).split(/\s+/).filter(Boolean).join(" ");
    var letters = found.length > most ? Array.from(found) : [];
    return letters.length > most ? letters.slice(0, most - 1).join("").trimEnd() + "…" : found;
  }
  /* With so many decimals; what lies in the middle goes to the even digit, as where the page was made. */
  function fixed(value, decimals) {
    var scale = Math.pow(10, decimals), low = Math.floor(Math.abs(value) * scale), middle = Number.isInteger(16 * value) && Math.abs(value) * scale % 1 === 0.5;
    return middle && low % 2 === 0 ? (value < 0 ? "-" : "") + (low / scale).toFixed(decimals) : value.toFixed(decimals);
  }
  /* A number in short; whole ones have no decimals, however they are to be counted. */
  function number(value) {
    var written = raw(value) ? value.rawJSON : String(value), found = plain(value), size = Math.abs(found);
    if (typeof found === "boolean") { return found ? "yes" : "no"; }
    if (typeof found !== "number") { return found === null || found === undefined ? "n/a" : brief(found, 140); }
    if (!/[.e]/i.test(written)) { return size < 1e15 ? count(found) : written.length > 24 ? written.slice(0, 23) + "…" : written; }
    if (size >= 1e6 || (size > 0 && size < 0.0005)) {
      return found.toPrecision(3).replace(/\.?0*(e|$)/, "$1").replace(/e([+-])(\d)$/, "e$10$2");
    }
    if (size >= 1000) { return fixed(found, 1).replace(/\B(?=(\d{3})+\.)/g, ","); }
    return fixed(found, size < 100 ? 3 : 1);
  }
  function same(one, other) {
    one = plain(one);
    other = plain(other);
    if (one === other) { return true; }
    if (!one || !other || typeof one !== "object" || typeof other !== "object" || Array.isArray(one) !== Array.isArray(other)) { return false; }
    var keys = Object.keys(one);
    return keys.length === Object.keys(other).length && keys.every(function (key) { return has(other, key) && same(one[key], other[key]); });
  }

  /* A text that values have in common when they are the same, and else not. */
  function keyOf(value) {
    value = plain(value);
    if (Array.isArray(value)) { return "[" + value.map(keyOf).join() + "]"; }
    if (!value || typeof value !== "object") { return value === undefined ? "" : typeof value === "number" ? String(value + 0) : JSON.stringify(value); }
    return "{" + Object.keys(value).sort().map(function (key) { return JSON.stringify(key) + ":" + keyOf(value[key]); }).join() + "}";
  }
  /* The places, as lists of keys, at which two values differ: in the first, and in the second. */
  function differences(expected, actual) {
    var left = [], right = [];
    function differ(one, other, here, there) {
      if (same(one, other)) { return; }
      var deeper = here.length < DEEPEST;
      if (deeper && isMap(one) && isMap(other) && Object.keys(one).length && Object.keys(other).length) {
        Object.keys(other).forEach(function (key) { if (!has(one, key)) { right.push(there.concat(key)); } });
        Object.keys(one).forEach(function (key) {
          if (has(other, key)) { differ(one[key], other[key], here.concat(key), there.concat(key)); } else { left.push(here.concat(key)); }
        });
      } else if (deeper && list(one).length && list(other).length && one.length * other.length <= MOST_COMPARED) {
        var free = other.map(function (_, place) { return place; }), wanted = [];
        one.forEach(function (value, place) {
          var twin = free.find(function (index) { return same(value, other[index]); });
          if (twin === undefined) { wanted.push(place); } else { free = free.filter(function (index) { return index !== twin; }); }
        });
        wanted.forEach(function (place, order) {
          if (order < free.length) { differ(one[place], other[free[order]], here.concat(String(place)), there.concat(String(free[order]))); }
          else { left.push(here.concat(String(place))); }
        });
        free.slice(wanted.length).forEach(function (index) { right.push(there.concat(String(index))); });
      } else {
        left.push(here);
        right.push(there);
      }
    }
    differ(expected, actual, [], []);
    return [left, right];
  }
  function below(mark, path) { return path.every(function (key, place) { return mark[place] === key; }); }
  function short(value) {
    var found = value && typeof value === "object" && !raw(value) && Object.keys(value).length > INLINE ? "" : compact(value);
    return found.length > INLINE ? "" : found;
  }
  function spread(value, path, key, marks, marked) {
    var inner = marks.some(function (mark) { return mark.length > path.length && below(mark, path); });
    var whole = inner && !marked ? "" : short(value), listed = Array.isArray(value), names = listed || isMap(value) ? Object.keys(value) : [];
    if (whole || !names.length || path.length >= DEEPEST) { return [[path.length, key + (whole || compact(value)), marked]]; }
    var found = [[path.length, key + (listed ? "[" : "{"), marked]];
    names.forEach(function (name, place) {
      var at = path.concat(name), own = marked || marks.some(function (mark) { return mark.length === at.length && below(mark, at); });
      var lines = spread(value[name], at, listed ? "" : JSON.stringify(name) + ": ", marks, own);
      if (place < names.length - 1) { lines[lines.length - 1][1] += ","; }
      found = found.concat(lines);
    });
    found.push([path.length, listed ? "]" : "}", marked]);
    return found;
  }
  /* A value as indented lines, those inside a marked place marked; empty without any. */
  function code(value, marks, limit) {
    var held = make("code", "json"), room = limit, lines = spread(value, [], "", marks, marks.some(function (mark) { return !mark.length; }));
    for (var place = 0; place < lines.length; place++) {
      var line = lines[place], shown = line[1];
      room -= shown.length + 1;
      if (room < 0) { shown = room + shown.length > 0 ? shown.slice(0, room + shown.length) + "…" : ""; }
      if (place) { held.append("\n"); }
      if (shown || room >= 0) { held.append("  ".repeat(line[0]), line[2] ? make("mark", "", shown) : visible(shown)); }
      if (room < 0) { held.append(shown ? "\n… cut here" : "… cut here"); break; }
    }
    return held;
  }
  /* A text of JSON spread over lines, white space alone changed; null for any other. */
  function laidOut(value) {
    if (!/^\s*[{[]/.test(value)) { return null; }
    try { JSON.parse(value); } catch (error) { return null; }
    var depth = 0, at = 0, opened = false, found = "", match, leaf;
    function inline(part) { return part.match(TOKEN).map(function (each) { return /^[,:]$/.test(each) ? each + " " : each; }).join(""); }
    for (TOKEN.lastIndex = 0; (match = TOKEN.exec(value)); TOKEN.lastIndex = at) {
      LEAF.lastIndex = match.index;
      leaf = LEAF.exec(value);
      var tight = leaf && leaf[0].length <= INLINE;
      at = match.index + (tight ? leaf[0] : match[0]).length;
      var part = tight ? inline(leaf[0]) : match[0], closing = part === "]" || part === "}";
      depth -= closing ? 1 : 0;
      if (opened !== closing && depth + (closing ? 1 : 0) <= DEEPEST) { found += "\n" + "  ".repeat(depth); }
      opened = part === "[" || part === "{";
      depth += opened ? 1 : 0;
      found += part === "," ? (depth <= DEEPEST ? ",\n" + "  ".repeat(depth) : ", ") : part === ":" ? ": " : part;
    }
    return found;
  }

  return {
    amount: amount, brief: brief, code: code, compact: compact, count: count, differences: differences, has: has, isMap: isMap, keyOf: keyOf,
    laidOut: laidOut, list: list, make: make, map: map, number: number, parse: parse, plain: plain, same: same, text: text
  };
})();
