"""What results/report.html looks like and does: its style sheet and its script, both inside the page."""

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --accent: #0b62a3; }
@media (prefers-color-scheme: dark) { :root { --accent: #7cc4ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1300px; padding: 1rem; font: 15px/1.5 system-ui, sans-serif; }
a { color: var(--accent); }
h1 { font-size: 1.5rem; margin: .5rem 0; }
h2 { font-size: 1.25rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .3rem; overflow-wrap: anywhere; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1rem; list-style: none; margin: .2rem 0; padding: 0; }
.wide { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; margin: .4rem 0; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .6rem; text-align: left; vertical-align: top; }
h4 { margin: .8rem 0 0; }
td.number { text-align: right; white-space: nowrap; }
th { vertical-align: bottom; } th.number { text-align: right; }
th button { all: unset; cursor: pointer; font-weight: 600; }
th button:focus-visible { outline: 2px solid var(--accent); }
th[aria-sort=ascending] button::after { content: " \\2191"; }
th[aria-sort=descending] button::after { content: " \\2193"; }
tbody tr:hover { background: var(--soft); }
.facts, .notes { font-size: .87rem; overflow-wrap: anywhere; }
.status { white-space: nowrap; }
.status b { display: inline-block; width: 1.3em; text-align: center; border-radius: .2em; background: var(--soft); }
.reproduced b { color: #060; background: #0a04; } .better b { color: #036; background: #06c4; }
.not-reproduced b { color: #700; background: #c004; } .unstable b { color: #630; background: #f804; }
@media (prefers-color-scheme: dark) { .status b { color: inherit; } }
figure { margin: .8rem 0; } figure svg { max-width: 100%; height: auto; background: #fff; }
figcaption { font-size: .87rem; }
details { font-size: .87rem; margin: .3rem 0; } summary { cursor: pointer; }
code { font-size: .92em; overflow-wrap: anywhere; }
@media (max-width: 600px) { body { padding: .6rem; font-size: 14px; } th, td { padding: .2rem .35rem; } }
"""
SCRIPT = """
"use strict";
const key = cell => {
  const text = cell.textContent.trim();
  const plain = text.replace(/,/g, "").replace(/^(about|at least|at most|median) /, "");
  const found = plain.match(/^([+-]?\\d+(?:\\.\\d+)?(?:e[+-]?\\d+)?)/);
  return found ? [0, Number(found[1]), text] : [text === "" ? 2 : 1, 0, text];
};
const compare = (a, b) => a[0] - b[0] || a[1] - b[1] || a[2].localeCompare(b[2]);
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th"), table = head.closest("table"), body = table.tBodies[0];
    const column = [...head.parentNode.children].indexOf(head);
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].map(row => [key(row.cells[column]), row]);
    rows.sort((a, b) => (down ? -1 : 1) * compare(a[0], b[0]));
    body.append(...rows.map(pair => pair[1]));
  });
}
"""
SIGNS = {
    "reproduced": "✓",
    "better": "↑",
    "within PI only": "≈",
    "not reproduced": "✗",
    "unstable": "!",
    "partial": "…",
    "underspecified": "?",
    "not run": "–",
}
