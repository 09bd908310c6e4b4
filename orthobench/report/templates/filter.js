const box = document.querySelector(".filter"), asked = box.querySelector("input"), told = box.querySelector("output");
const filter = () => {
  const words = asked.value.toLowerCase().split(/\s+/).filter(Boolean);
  const has = text => words.every(word => text.toLowerCase().includes(word));
  let count = 0;
  for (const article of document.querySelectorAll("main > article")) {
    for (const section of article.querySelectorAll("section")) {
      const name = `${article.querySelector("h2").textContent} ${section.querySelector("h3").textContent} `;
      let left = 0;
      for (const row of section.querySelectorAll("tbody tr")) {
        row.hidden = words.length > 0 && !has(name + row.textContent);
        left += !row.hidden && !row.closest("details");
      }
      for (const table of section.querySelectorAll(".wide")) table.hidden = !table.querySelector("tbody tr:not([hidden])");
      section.hidden = words.length > 0 && left === 0;
      count += left;
    }
    article.hidden = !article.querySelector("section:not([hidden])");
  }
  told.textContent = words.length ? `${count} rows` : "";
};
box.hidden = false;
asked.addEventListener("input", filter);
addEventListener("hashchange", () => { if (asked.value) { asked.value = ""; filter(); } });
filter();
