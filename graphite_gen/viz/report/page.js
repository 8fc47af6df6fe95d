"use strict";

// Galleries: a graph enlarges, arrows go on, Escape closes.
const viewer = document.getElementById("viewer");
const picture = document.getElementById("viewer-picture");
const caption = document.getElementById("viewer-caption");
const tiles = [...document.querySelectorAll("button.tile")];
let shown = 0;

function enlarge(index) {
  shown = (index + tiles.length) % tiles.length;
  const tile = tiles[shown];
  picture.replaceChildren(tile.querySelector("svg").cloneNode(true));
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

// The table: rows that have every word asked for, in the order of a column, each with its file.
const search = document.getElementById("search");
const count = document.getElementById("count");
const body = document.querySelector("#samples-table tbody");
const rows = [...body.rows];

// At the start of a word, so that 'valid' does not find 'invalid', nor 15 all that has it behind the point.
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
    const text = row.dataset.text;
    row.hidden = !words.every((word) => has(text, word));
    left += !row.hidden;
  }
  count.textContent = `${left} of ${rows.length} graphs`;
}

function compare(a, b) {
  // As numbers where both are: as texts, 0.1234 comes after 0.2.
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
