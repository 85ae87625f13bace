// Tables sort by a click on a header; numbers "x [low, high]" of a column are drawn below it on one axis.
/** A cell's text with plain numbers: −1,024.5 is -1024.5, and 4·10⁻³ is 4e-3. */
function plain(cell) {
  const text = cell.textContent.trim().replaceAll("−", "-").replace(/(\d),(?=\d{3})/g, "$1");
  return text.replace("·10", "e").replace(/[⁻⁰-⁹¹²³]/g, (raised) => "-0123456789"["⁻⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(raised)]);
}

/** What a cell sorts by: the number that it begins with, or its text; null where it holds nothing. */
function key(cell) {
  const text = plain(cell), number = text.match(/^[+-]?\d+(\.\d+)?(e-?\d+)?/);
  return ["", "–", "no record"].includes(text) ? null : number ? Number(number[0]) : text;
}

/** Numbers before texts, nothing last in either direction. */
function compare(one, other, direction) {
  if (one === null || other === null) return (one === null) - (other === null);
  if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1;
  return direction * (typeof one === "number" ? one - other : one.localeCompare(other));
}

function sortable(heading, rows, column) {
  const button = document.createElement("button");
  button.append(...heading.childNodes);
  heading.append(button);
  button.addEventListener("click", () => {
    const next = { ascending: "descending", descending: "none" }[heading.ariaSort] ?? "ascending";
    for (const other of heading.parentElement.cells) other.ariaSort = "none";
    heading.ariaSort = next;
    const by = (row) => key(row.cells[column]), direction = next === "descending" ? -1 : 1;
    const sorted = next === "none" ? rows : rows.toSorted((one, other) => compare(by(one), by(other), direction));
    rows[0].parentElement.append(...sorted);
  });
}

/** A line from low to high with a dot at x; where the column has signs, zero is on its axis. */
function drawIntervals(cells) {
  const pattern = /^([+-]?[\d.]+) \[([+-]?[\d.]+), ([+-]?[\d.]+)\]/;
  const found = cells.map((cell) => plain(cell).match(pattern)?.slice(1).map(Number));
  const ends = found.flatMap((numbers) => numbers ?? []);
  if (ends.length < 6) return; // alone it says nothing
  if (cells.some((cell) => /^[+-]/.test(plain(cell)))) ends.push(0);
  const low = Math.min(...ends), width = Math.max(...ends) - low || 1;
  const at = (value) => (4 + 92 * (value - low) / width).toFixed(1);
  const zero = ends.includes(0) ? `<path class=zero d="M${at(0)} 0V10"/>` : "";
  found.forEach((numbers, index) => {
    if (!numbers) return;
    const [mean, from, to] = numbers.map(at);
    cells[index].insertAdjacentHTML("beforeend", `<svg width=100 height=10 aria-hidden=true>${zero}
      <path d="M${from} 5H${to}"/><circle cx=${mean} cy=5 r=3 /></svg>`);
  });
}

for (const table of document.querySelectorAll("table")) {
  const rows = [...table.tBodies[0]?.rows ?? []];
  [...table.rows[0].cells].forEach((heading, column) => {
    drawIntervals(rows.map((row) => row.cells[column]));
    if (rows.length > 1) sortable(heading, rows, column);
  });
}
for (const word of document.querySelectorAll("td strong")) word.dataset.word = word.textContent;
