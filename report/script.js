"use strict";
// Rows that open, columns that sort, boxes that the keyboard scrolls. Without this the page is whole, and all is open.

const missing = new Set(["", "–", "no record"]);
const raised = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** What a cell sorts by: its data-order, the number that it begins with, or its text; null where there is no value. */
function key(cell) {
  if (!cell) return null;
  if (cell.dataset.order) return Number(cell.dataset.order);
  const parts = [...cell.childNodes].filter((node) => node.nodeName !== "SMALL");
  const plain = parts.map((node) => node.textContent).join("").trim();
  if (missing.has(plain)) return null;
  const text = plain.replace(/−/g, "-").replace(/(\d),(?=\d{3})/g, "$1");
  const power = text.match(/^([+-]?[\d.]+)·10(⁻?)([⁰¹²³⁴⁵⁶⁷⁸⁹]+)/);
  if (power) {
    const exponent = Number([...power[3]].map((digit) => raised.indexOf(digit)).join(""));
    return Number(power[1]) * 10 ** (power[2] ? -exponent : exponent);
  }
  const number = text.match(/^[+-]?\d+(\.\d+)?/);
  return number ? Number(number[0]) : text;
}

/** Numbers before texts, cells without a value last in either direction. */
function compare(one, other, direction) {
  if (one === null || other === null) return (one === null) - (other === null);
  if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1;
  return direction * (typeof one === "number" ? one - other : one.localeCompare(other, undefined, { numeric: true }));
}

/** A heading becomes a button: ascending, descending, and as it was. */
function sortable(heading, units, cellOf) {
  const headings = [...heading.parentElement.children], column = headings.indexOf(heading), original = [...units];
  const button = document.createElement("button");
  button.type = "button";
  button.append(...heading.childNodes);
  heading.append(button);
  heading.setAttribute("aria-sort", "none");
  button.addEventListener("click", () => {
    const next = { none: "ascending", ascending: "descending", descending: "none" }[heading.getAttribute("aria-sort")];
    for (const other of headings) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", next);
    const direction = next === "descending" ? -1 : 1;
    const keys = new Map(original.map((unit) => [unit, key(cellOf(unit, column))]));
    const sorted = [...original];
    if (next !== "none") sorted.sort((one, other) => compare(keys.get(one), keys.get(other), direction));
    sorted.forEach((unit) => unit.parentElement.append(unit));
  });
}

/** A figure that a row shows is the one below, whose image the page holds once. */
function showFigures(row) {
  for (const link of row.querySelectorAll("a.figure:not([data-done])")) {
    const image = document.getElementById(link.getAttribute("href").slice(1))?.querySelector("img");
    link.dataset.done = "";
    if (!image) continue;
    const box = document.createElement("div"), copy = image.cloneNode();
    box.className = "scroll";
    if (image.closest(".wide")) copy.dataset.wide = "";
    box.append(copy);
    const reading = document.createElement("p");
    reading.className = "note";
    reading.textContent = image.closest("figure").querySelector(".reading").textContent;
    link.after(box, reading);
  }
}

function open(button, wanted) {
  const row = document.getElementById(button.getAttribute("aria-controls"));
  button.setAttribute("aria-expanded", String(wanted));
  row.hidden = !wanted;
  if (wanted) showFigures(row);
  markScrolling();
}

/** Boxes that do scroll take the keyboard's focus. */
function markScrolling() {
  for (const box of document.querySelectorAll(".scroll")) {
    if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

/** The target of a link may be in a row or a table that is closed. */
function reveal() {
  const target = document.getElementById(location.hash.slice(1));
  if (!target) return;
  const row = target.matches("[id^=claim-]") ? target.closest("tbody") : target.closest(".verdicts > tbody");
  if (row) open(row.querySelector(".claim button"), true);
  const closed = target.closest("details");
  if (closed) closed.open = true;
  target.scrollIntoView();
}

const verdicts = document.querySelector(".verdicts");
const openers = [];
for (const claim of verdicts.querySelectorAll(".claim")) {
  const heading = claim.querySelector("th"), button = document.createElement("button");
  button.type = "button";
  button.setAttribute("aria-controls", claim.nextElementSibling.id);
  button.append(...heading.childNodes);
  heading.append(button);
  button.addEventListener("click", () => open(button, button.getAttribute("aria-expanded") !== "true"));
  claim.addEventListener("click", (event) => { if (!event.target.closest("button")) button.click(); });
  openers.push(button);
  open(button, false);
}
for (const heading of verdicts.tHead.querySelectorAll("th")) {
  sortable(heading, verdicts.tBodies, (body, column) => body.rows[0].cells[column]);
}
for (const body of document.querySelectorAll("figure.table table:not(.words) tbody")) {
  const rows = [...body.rows].filter((row) => row.cells[0].matches("[scope=row]"));
  if (rows.length < 3) continue;
  const headings = body.querySelectorAll(".header th");
  for (const heading of headings) sortable(heading, rows, (row, column) => row.cells[column]);
}

const tools = document.createElement("div");
tools.className = "tools";
for (const [text, wanted] of [["Open all", true], ["Close all", false]]) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.addEventListener("click", () => openers.forEach((opener) => open(opener, wanted)));
  tools.append(button);
}
verdicts.parentElement.before(tools);

document.addEventListener("toggle", markScrolling, true);
addEventListener("resize", markScrolling);
addEventListener("hashchange", reveal);
addEventListener("beforeprint", () => {
  openers.forEach((opener) => open(opener, true));
  for (const closed of document.querySelectorAll("details")) closed.open = true;
});
reveal();
