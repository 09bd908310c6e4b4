"use strict";
const INK = {
  light: { ink: "#1d2329", soft: "#5b6670", line: "#d9dee3", range: ["#0072b2", "#c2500a", "#00805c", "#a3447f", "#56b4e9", "#b07d00"] },
  dark: { ink: "#e8ebee", soft: "#a6b0ba", line: "#3a434c", range: ["#6cb8f0", "#f59a5a", "#3ecfa3", "#e7a0c9", "#9ad4f7", "#e8c15a"] },
};
const dark = matchMedia("(prefers-color-scheme: dark)");

const config = () => {
  const { ink, soft, line, range } = INK[dark.matches ? "dark" : "light"];
  const label = { labelColor: soft, titleColor: ink, labelFontSize: 12, titleFontSize: 13, titleFontWeight: "normal" };
  return {
    background: null, font: "system-ui, sans-serif", view: { stroke: null }, padding: 4,
    axis: { ...label, gridColor: line, domainColor: line, tickColor: line, labelLimit: 190 },
    legend: { ...label, symbolSize: 90, columns: innerWidth < 600 ? 1 : 0 }, range: { category: range }, title: { color: ink },
    mark: { color: range[0] }, line: { color: range[0] }, rule: { color: soft }, text: { color: ink }, rect: { color: ink },
    tick: { color: soft }, style: { "guide-label": { font: "system-ui, sans-serif" } },
  };
};

/* The specification with every "@name" filled in: from the controls, else from the first line that is shown. */
const filled = (spec, known) => JSON.parse(
  JSON.stringify(spec).replace(/"type":"linear"(,"zero":false)?/g, known.scale === "log" ? '"type":"log"' : "$&").replace(/@([a-z_]+)/g, (all, name) =>
    name in known ? JSON.stringify(String(known[name])).slice(1, -1) : all));

/* Columns without a word in any row that is shown. */
const hideEmpty = table => {
  const shown = [...table.tBodies[0].rows].filter(row => !row.hidden);
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const empty = shown.length > 0 && !shown.some(row => row.cells[column].textContent.trim());
    for (const row of table.rows) row.cells[column].hidden = empty;
  });
};

/* Names of marks where there is room for them: beside every mark, over none, and no two in one place. */
const ANCHORS = {
  names_marks: ["right", "left", "top", "bottom", "top-right", "bottom-right", "top-left", "bottom-left"],
  ends_marks: ["right", "top-right", "bottom-right"],
};
const placed = spec => {
  for (const mark of spec.marks.filter(one => one.name in ANCHORS)) {
    mark.transform = [{
      type: "label", size: { signal: "[width, height]" }, anchor: ANCHORS[mark.name], offset: [7], padding: 0,
      avoidMarks: ["marks_marks"], sort: { field: "datum.weight", order: "descending" },
    }];
  }
  return spec;
};

const drawn = new WeakMap();
const draw = async section => {
  const { spec, values, match } = section.payload, controls = [...section.querySelectorAll("[data-role]")];
  const known = {}, tests = [];
  let sought = null; /* what finds the marks of some names */
  const narrow = (control, name) => { /* to the values of what the controls before it leave */
    const left = new Set(values.filter(one => tests.every(test => test(one))).map(one => String(one[name])));
    for (const option of control.options) option.hidden = option.disabled = !left.has(option.value);
    if (!left.has(control.value)) control.value = [...control.options].map(one => one.value).find(one => left.has(one)) ?? "";
  };
  for (const control of controls) {
    const { role, of } = control.dataset, name = control.name;
    if (role === "token") {
      if (of) narrow(control, of);
      known[name] = control.value;
      known[`${name}_title`] = control.selectedOptions[0] ? control.selectedOptions[0].textContent : "";
    } else if (role === "most") {
      const most = parseFloat(control.value);
      if (!Number.isNaN(most)) tests.push(one => one[known[of]] !== null && one[known[of]] <= most);
    } else if (role === "find") {
      const words = control.value.toLowerCase().split(/[\s,;]+/).filter(Boolean);
      const whole = new Set(values.map(one => String(one[of])));
      if (words.length) sought = text => words.some(word => whole.has(word) ? text === word : text.toLowerCase().includes(word));
    } else {
      narrow(control, name);
      const asked = control.value;
      tests.push(one => !(name in one) || String(one[name]) === asked);
    }
  }
  const passes = one => tests.every(test => test(one));
  const shown = values.filter(passes).map(one => {
    const found = sought !== null && sought(String(one.model));
    const weight = (one[`weight_${known.cost}`] ?? one.weight ?? 0) + (found ? 1e6 : 0);
    return { ...one, href: one.href && root + one.href, found, pale: sought !== null && !found, weight };
  });
  let count = 0;
  const rows = [...section.querySelectorAll("tbody tr[data-line]")], found = [];
  for (const row of rows) {
    if (match.length) count += !(row.hidden = !passes(match[row.dataset.line]));
    const stressed = sought !== null && !row.hidden && sought(row.cells[0].textContent.trim());
    row.classList.toggle("found", stressed);
    if (stressed) found.push(row);
  }
  if (match.length) hideEmpty(rows[0].closest("table"));
  if (found.length) found[0].closest(".wide").scrollTop = found[0].offsetTop - found[0].closest("table").tHead.offsetHeight;
  const output = section.querySelector("output");
  if (output && match.length) output.textContent = `${count} row${count === 1 ? "" : "s"} below${sought ? `, ${found.length} found` : ""}`;
  const chart = section.querySelector(".chart");
  const text = filled(spec, { ...(shown[0] || {}), ...known });
  text.description = section.words;
  text.datasets = { shown };
  text.width ??= chart.clientWidth;
  chart.classList.toggle("empty", !shown.length);
  const before = drawn.get(section);
  if (!shown.length) { chart.textContent = "Nothing matches."; return; }
  const result = await vegaEmbed(chart, text, {
    actions: false, logLevel: 1, renderer: "svg", ast: true, config: config(), patch: placed, tooltip: { theme: dark.matches ? "dark" : "light" },
  });
  if (before) before.finalize();
  drawn.set(section, result);
  chart.dataset.drawn = "yes";
};

const root = document.querySelector("link[rel=stylesheet]").getAttribute("href").replace(/assets\/style\.css$/, "");
const plots = [...document.querySelectorAll("[data-plot]")];
for (const section of plots) {
  section.payload = JSON.parse(section.querySelector("script").textContent);
  [...section.querySelectorAll("tbody tr")].forEach((row, line) => { row.dataset.line = line; });
  section.words = section.querySelector(".chart").getAttribute("aria-label");
  const form = section.querySelector("form");
  if (form) {
    form.hidden = false;
    form.addEventListener("input", () => draw(section));
    form.addEventListener("submit", event => event.preventDefault());
  }
}
const again = () => plots.filter(section => drawn.has(section)).forEach(draw);
dark.addEventListener("change", again);
let width = innerWidth, waiting = 0;
addEventListener("resize", () => {
  if (innerWidth === width) return; /* a phone's bars come and go */
  width = innerWidth;
  clearTimeout(waiting);
  waiting = setTimeout(again, 200);
});

/* Tables: a click on a header sorts. */
const key = cell => {
  const text = cell.textContent.trim(), value = cell.dataset.value;
  return value === undefined ? [text === "" ? 2 : 1, 0, text] : [0, Number(value), text];
};
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th"), body = head.closest("table").tBodies[0], column = head.cellIndex;
    const down = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down < 0 ? "descending" : "ascending");
    const rows = [...body.rows].map(row => [key(row.cells[column]), row]);
    rows.sort(([a], [b]) => a[0] - b[0] || down * (a[1] - b[1] || a[2].localeCompare(b[2], undefined, { numeric: true })));
    body.append(...rows.map(pair => pair[1]));
  });
}

/* Lists: what is typed leaves the lines that have all its words. */
const find = document.querySelector(".find");
if (find) {
  const asked = find.querySelector("input"), told = find.querySelector("output");
  const lines = [...document.querySelectorAll("main .cards > li, main tbody tr")];
  const texts = lines.map(line => line.textContent.toLowerCase());
  find.hidden = false;
  asked.addEventListener("input", () => {
    const words = asked.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    lines.forEach((line, i) => { count += !(line.hidden = !words.every(word => texts[i].includes(word))); });
    told.textContent = words.length ? `${count} of ${lines.length}` : "";
  });
}

const reveal = () => {
  const found = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let one = found && found.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
  if (found) found.scrollIntoView({ block: "center" });
};
addEventListener("hashchange", reveal);
reveal();

/* Plots, one after another, those nearest to what is seen first. */
const away = section => Math.abs(section.getBoundingClientRect().top);
(async () => {
  for (const section of [...plots].sort((one, other) => away(one) - away(other))) {
    await draw(section);
    await new Promise(done => setTimeout(done));
  }
})();
