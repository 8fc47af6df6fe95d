"use strict";

// Gallery: selecting a graph enlarges it, arrow keys show the next one, Escape closes.
const viewer = document.getElementById("viewer");
const picture = document.getElementById("viewer-picture");
const caption = document.getElementById("viewer-caption");
const tiles = [...document.querySelectorAll("button.tile")];
let shown = 0;

function enlarge(index) {
  shown = (index + tiles.length) % tiles.length;
  const tile = tiles[shown];
  picture.replaceChildren(tile.querySelector("img").cloneNode(true));
  caption.textContent = tile.dataset.caption;
  if (!viewer.open) viewer.showModal();
}

tiles.forEach((tile, index) => tile.addEventListener("click", () => enlarge(index)));
document.getElementById("viewer-previous").addEventListener("click", () => enlarge(shown - 1));
document.getElementById("viewer-next").addEventListener("click", () => enlarge(shown + 1));
document.getElementById("viewer-close").addEventListener("click", () => viewer.close());
viewer.addEventListener("click", (event) => { if (event.target === viewer) viewer.close(); });
viewer.addEventListener("close", () => tiles[shown].focus());
viewer.addEventListener("keydown", (event) => {
  if (event.key === "ArrowLeft") enlarge(shown - 1);
  if (event.key === "ArrowRight") enlarge(shown + 1);
});

// Table of samples: filter by words, sort by column, download as GraphML.
const search = document.getElementById("search");
const count = document.getElementById("count");
const body = document.querySelector("#samples-table tbody");
const rows = [...body.rows];
// The last column holds the download button.
const texts = new Map(rows.map((row) => [row, [...row.cells].slice(0, -1).map((cell) => cell.textContent).join(" ").toLowerCase()]));

// Matches the start of a word, so that 'valid' does not find 'invalid' and 15 does not find 0.15.
function has(text, word) {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    if (at === 0 || !/[\p{L}\p{N}.]/u.test(text[at - 1])) return true;
  }
  return false;
}

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let left = 0;
  for (const row of rows) {
    row.hidden = !words.every((word) => has(texts.get(row), word));
    left += !row.hidden;
  }
  count.textContent = `${left} of ${rows.length} graphs`;
}

function compare(a, b) {
  // Numbers first: as strings, 0.1234 would sort after 0.2.
  return Number(a) - Number(b) || a.localeCompare(b, "en", { numeric: true });
}

search.addEventListener("input", filter);
filter();

document.querySelectorAll("#samples-table button.sort").forEach((button) => {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const column = head.cellIndex;
    const up = head.getAttribute("aria-sort") !== "ascending";
    head.parentElement.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[column].textContent;
    rows.sort((a, b) => compare(key(a), key(b)) * (up ? 1 : -1));
    body.append(...rows);
  });
});

const files = JSON.parse(document.getElementById("graphml").textContent);

body.addEventListener("click", (event) => {
  const button = event.target.closest("button.download");
  if (!button) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([files[button.dataset.index]], { type: "application/graphml+xml" }));
  link.download = `graph-${button.dataset.index}.graphml`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
});
