/* What a screen reader and a keyboard need of a page: the findings as texts, none where all is well. */
(() => {
  const found = new Set();
  const seen = (one) => one.checkVisibility();
  const named = (one) => (one.getAttribute("aria-label") || (one.getAttribute("aria-labelledby") || "").split(" ")
    .map((id) => (document.getElementById(id) || {}).textContent || "").join(" ")).trim();
  let level = 0;
  document.querySelectorAll("h1, h2, h3, h4, h5, h6").forEach((heading) => {
    if (!seen(heading)) { return; }
    const own = +heading.tagName[1];
    if (own > level + 1) { found.add(`heading ${own} after ${level}: ${heading.textContent.slice(0, 40)}`); }
    level = own;
  });
  if ([...document.querySelectorAll("h1")].filter(seen).length !== 1) { found.add("not one h1"); }
  const landmarks = new Set();
  document.querySelectorAll("section, nav, form, [role=region], [role=search]").forEach((one) => {
    const key = `${one.getAttribute("role") || one.tagName.replace("SECTION", "region")} ${named(one)}`;
    if (!named(one)) { found.add(`no name: ${one.outerHTML.slice(0, 60)}`); }
    if (landmarks.has(key)) { found.add(`two landmarks: ${key}`); }
    landmarks.add(key);
  });
  document.querySelectorAll("th").forEach((cell) => {
    if (seen(cell) && !cell.textContent.trim()) { found.add(`empty heading in table ${cell.closest("table").className}`); }
  });
  document.querySelectorAll("svg[role=img]").forEach((image) => { if (!named(image)) { found.add("picture without a name"); } });
  document.querySelectorAll("a, button, input, select").forEach((control) => {
    const text = control.textContent.trim() || named(control) || (control.labels && control.labels.length);
    if (seen(control) && !text) { found.add(`no name: ${control.outerHTML.slice(0, 60)}`); }
  });
  document.querySelectorAll("*").forEach((one) => {
    const style = getComputedStyle(one), scrolls = /auto|scroll/.test(style.overflowX + style.overflowY);
    const wide = one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1;
    if (scrolls && wide && one.clientHeight && seen(one) && one.tabIndex < 0 && !one.querySelector("a, button, [tabindex]")) {
      found.add(`scrolls, but not by keyboard: ${one.tagName} ${one.className}`);
    }
  });
  return [...found];
})()
