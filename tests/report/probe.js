// Goes through the page as a reader would and tells the window around it what it found.
const problems = [];
addEventListener("error", (event) => problems.push(String(event.message)));
console.error = (...words) => problems.push(words.join(" "));

const wide = () => document.scrollingElement.scrollWidth - innerWidth;
const lines = (body) => [...body.querySelectorAll("tr:has(> th[scope=row])")];
const column = (body, index) => lines(body).map((row) => row.cells[index].textContent.trim());

addEventListener("load", async () => {
  const found = { width: innerWidth, problems, beyond: [wide()] };
  try {
    const claim = document.querySelector(".claim th button");
    const row = document.getElementById(claim.getAttribute("aria-controls"));
    found.closed = [claim.getAttribute("aria-expanded"), row.offsetHeight];
    claim.focus();
    found.focused = document.activeElement === claim;
    claim.click();
    found.opened = [claim.getAttribute("aria-expanded"), row.offsetHeight];
    found.shown = row.querySelectorAll("img").length;
    found.beyond.push(wide());

    document.querySelectorAll(".tools button")[0].click();
    document.querySelectorAll("details").forEach((closed) => { closed.open = true; });
    found.beyond.push(wide());

    // A column with numbers on both sides of zero, which texts would not sort.
    const cells = (heading) => column(heading.closest("tbody"), heading.cellIndex);
    const negative = (heading) => cells(heading).filter((text) => text[0] === "−");
    const headings = [...document.querySelectorAll("details figure.table th[aria-sort]")];
    const heading = headings.find((one) => negative(one).length > 1), body = heading.closest("tbody");
    found.columns = [["none", column(body, heading.cellIndex)]];
    for (let click = 0; click < 3; click += 1) {
      heading.querySelector("button").click();
      found.columns.push([heading.getAttribute("aria-sort"), column(body, heading.cellIndex)]);
    }
    const order = () => [...document.querySelectorAll(".verdicts > tbody")].map((claim) => claim.id);
    const verdict = document.querySelector(".verdicts thead th:last-child");
    found.rows = order();
    verdict.querySelector("button").click();
    const words = [...document.querySelectorAll(".verdicts .claim > td:last-child")];
    found.ranks = words.map((cell) => Number(cell.dataset.order));
    found.pairs = [...document.querySelectorAll(".verdicts > tbody")].every((body) => body.rows.length === 2);
    verdict.querySelector("button").click();
    verdict.querySelector("button").click();
    found.back = JSON.stringify(order()) === JSON.stringify(found.rows);

    const images = [...document.images];
    await Promise.all(images.map((image) => image.decode().catch(() => null)));
    found.images = images.length;
    found.broken = images.filter((image) => !image.naturalWidth).length;
    const scrolling = [...document.querySelectorAll(".scroll")].filter((box) => box.scrollWidth > box.clientWidth + 1);
    found.reached = scrolling.every((box) => box.tabIndex === 0);
    document.querySelectorAll("details").forEach((closed) => { closed.open = false; });
    const link = document.querySelector('.shown a[href^="#table-"]');
    location.hash = link.hash;
    await new Promise((done) => setTimeout(done, 100));
    found.revealed = document.getElementById(link.hash.slice(1)).open;
  } catch (error) {
    problems.push(String(error));
  }
  parent.postMessage(found, "*");
});
