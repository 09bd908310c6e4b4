"use strict";
const key = cell => {
  const text = cell.textContent.trim();
  const plain = text.replace(/,/g, "").replace(/^(≈|about|at least|at most) /, "");
  const found = plain.match(/^([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(k?)/);
  return found ? [0, Number(found[1]) * (found[2] ? 1000 : 1), text] : [text === "" ? 2 : 1, 0, text];
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
const reveal = () => {
  const row = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let one = row && row.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
  if (row) row.scrollIntoView({ block: "nearest" });
};
addEventListener("hashchange", reveal);
reveal();
