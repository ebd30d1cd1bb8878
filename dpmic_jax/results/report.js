"use strict";
(() => {
  const one = (selector, within = document) => within.querySelector(selector);
  const content = JSON.parse(one("#content").textContent);
  const body = one("#pairs").tBodies[0];
  const heads = Array.from(one("#pairs").tHead.rows[0].cells);
  const pairs = Array.from(body.rows, (row, rank) => {
    const [x, y, ...numbers] = Array.from(row.cells), star = numbers.pop();
    const names = (x.textContent + "\n" + y.textContent).toLowerCase();
    return {
      row, rank, names, ends: row.dataset.at.split(" ").map((end) => content.names[end]),
      at: row.dataset.at,
      sorted: [
        x.textContent, y.textContent, ...numbers.map((cell) => Number(cell.firstChild.value)), Number(star.textContent !== ""),
      ],
    };
  });

  const words = one("#words"), least = one("#least"), slide = one("#slide"), starred = one("#starred");
  const group = one("#group"), other = one("#other");
  const count = one("#count"), more = one("#more");
  // Groups of columns are those whose names begin alike, up to the first of "_", ".", "-" and " ".
  const groupOf = (name) => name.split(/[_.\- ]/, 1)[0];
  const sizes = new Map();
  for (const name of content.names) sizes.set(groupOf(name), (sizes.get(groupOf(name)) || 0) + 1);
  const groups = Array.from(sizes).filter(([, size]) => size > 1);
  if (groups.length > 1) for (const choice of [group, other]) {
    groups.forEach(([name, size]) => choice.add(new Option(`${name} (${size})`, name)));
    choice.parentElement.hidden = false;
  }
  const between = ([x, y]) => {
    const within = (name, choice) => !choice.value || groupOf(name) === choice.value;
    return (within(x, group) && within(y, other)) || (within(y, group) && within(x, other));
  };

  let limit = 500; // rows at a time: a browser is slow with tens of thousands
  const show = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fitting = pairs.filter(({ names, ends, sorted: [, , mic, ...rest] }) =>
      mic >= Number(least.value) && (rest.at(-1) || !starred.checked) && between(ends) && wanted.every((word) => names.includes(word)));
    body.replaceChildren(...fitting.slice(0, limit).map((pair) => pair.row));
    more.hidden = !(fitting.length > limit);
    count.textContent = `${fitting.length} of ${pairs.length} pairs${more.hidden ? "" : `, the first ${limit} shown`}`;
  };
  words.addEventListener("input", show);
  for (const choice of [starred, group, other]) choice.addEventListener("change", show);
  least.addEventListener("input", () => { slide.value = least.value; show(); });
  slide.addEventListener("input", () => { least.value = slide.value; show(); });
  more.addEventListener("click", () => { limit += 1000; show(); });
  one("#filter").addEventListener("submit", (event) => event.preventDefault());
  one("#filter").hidden = false;

  // Texts rise at first, numbers fall; what is equal keeps the order of the release.
  const collator = new Intl.Collator("en", { numeric: true });
  const compare = (column) => (column > 1 ? (a, b) => a - b : collator.compare);
  heads.forEach((head, column) => {
    one("button", head).addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const rising = before ? before === "descending" : !(column > 1);
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const sign = rising ? 1 : -1;
      pairs.sort((a, b) => sign * compare(column)(a.sorted[column], b.sorted[column]) || a.rank - b.rank);
      show();
    });
  });
  show();

  // What a picture says of the cell under the pointer, or of the one that arrow keys lead to.
  const tell = (figure, across, down, say) => {
    const box = one(".box", figure), grid = one(".grid", figure);
    const mark = one(".mark", figure), said = one("output", figure);
    const at = [0, 0];
    const show = (x, y) => {
      at[0] = Math.max(0, Math.min(across - 1, x));
      at[1] = Math.max(0, Math.min(down - 1, y));
      mark.setAttribute("x", at[0]);
      mark.setAttribute("y", at[1]);
      mark.setAttribute("visibility", "visible");
      said.textContent = say(at[0], at[1]);
    };
    const point = (event) => {
      const there = grid.getBoundingClientRect();
      const x = (event.clientX - there.left) / there.width, y = (event.clientY - there.top) / there.height;
      if (Math.min(x, y, 1 - x, 1 - y) >= 0) show(Math.floor(x * across), Math.floor(y * down));
    };
    box.addEventListener("pointermove", point);
    box.addEventListener("pointerdown", point);
    box.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      show(at[0] + step[0], at[1] + step[1]);
    });
    said.textContent = "Point at a cell, or use the arrow keys.";
  };

  const names = content.names, released = new Map();
  for (const pair of pairs) {
    released.set(pair.at, pair);
    released.set(pair.at.split(" ").reverse().join(" "), pair);
  }
  document.querySelectorAll(".map").forEach((map) => {
    const order = map.dataset.order.split(" ");
    tell(map, names.length, names.length, (across, down) => {
      const x = order[across], y = order[down];
      if (x === y) return names[x];
      const pair = released.get(`${x} ${y}`), what = `${names[y]}, ${names[x]}: `;
      if (!pair) return what + content.none;
      return what + content.tell.replace(/\{(\d+)\}/g, (_, column) => pair.row.cells[column].textContent).replace(/ +/g, " ");
    });
  });
  document.querySelectorAll(".histogram").forEach((figure, number) => {
    const { x, y, counts, records } = content.histograms[number];
    tell(figure, x.labels.length, y.labels.length, (across, down) => {
      const up = y.labels.length - 1 - down;
      return `${x.name} ${x.labels[across]}, ${y.name} ${y.labels[up]}: about ${records[across][up]} (noisy count ${counts[across][up]})`;
    });
  });

  // Pictures in tabs: arrow keys, Home and End move between them.
  const tabs = Array.from(document.querySelectorAll("[role=tab]"));
  const panels = tabs.map((tab) => one("#" + tab.getAttribute("aria-controls")));
  const select = (chosen) => tabs.forEach((tab, number) => {
    tab.setAttribute("aria-selected", number === chosen);
    tab.tabIndex = number === chosen ? 0 : -1;
    panels[number].hidden = number !== chosen;
  });
  if (tabs.length > 1) {
    tabs[0].parentElement.hidden = false;
    panels.forEach((panel, number) => {
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", tabs[number].id);
    });
    select(0);
    tabs.forEach((tab, number) => {
      tab.addEventListener("click", () => select(number));
      tab.addEventListener("keydown", ({ key }) => {
        const last = tabs.length - 1;
        const next = { ArrowRight: number === last ? 0 : number + 1, ArrowLeft: number ? number - 1 : last, Home: 0, End: last }[key];
        if (next === undefined) return;
        select(next);
        tabs[next].focus();
      });
    });
  }
})();
