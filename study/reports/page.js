"use strict";
// Sorting, filtering, sideways scrolling, trials of a row, values of a figure's points. The page is readable without
// this script.
(() => {
  const FILTER_FROM = 8;
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  // The sort key of a cell: the number behind its text, else the text; null, for an empty cell, sorts last.
  const valueOf = (cell) => {
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    const text = cell.textContent.trim();
    if (text === "" || text === "–") return null;
    const number = Number(text.replaceAll(",", ""));
    return Number.isNaN(number) ? text : number;
  };
  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  };

  const sortable = (table) => {
    const body = table.tBodies[0];
    for (const header of table.tHead.rows[0].cells) {
      const button = header.querySelector("button.sort");
      if (!button) continue;
      button.addEventListener("click", () => {
        const column = header.cellIndex;
        const down = header.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.rows[0].cells) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
        header.setAttribute("aria-sort", down ? "descending" : "ascending");
        const opened = new Map([...body.querySelectorAll("tr.trials")].map((row) => [row.dataset.of, row]));
        const rows = [...body.querySelectorAll("tr[data-row]")].map((row) => [valueOf(row.cells[column]), row]);
        rows.sort(([a], [b]) => (down && a !== null && b !== null ? compare(b, a) : compare(a, b)));
        for (const [, row] of rows) {
          body.append(row);
          if (opened.has(row.dataset.row)) body.append(opened.get(row.dataset.row));
        }
      });
    }
  };

  const filterable = (table) => {
    const rows = [...table.tBodies[0].querySelectorAll("tr[data-row]")];
    if (rows.length < FILTER_FROM) return;
    const input = make("input", { type: "search", placeholder: "filter rows", "aria-label": "filter rows" });
    const count = make("span", { class: "small", role: "status" });
    const texts = new Map(rows.map((row) => [row, [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase()]));
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        row.hidden = !wanted.every((word) => texts.get(row).includes(word));
        shown += !row.hidden;
        const trials = row.nextElementSibling;
        if (trials && trials.classList.contains("trials")) trials.hidden = row.hidden;
      }
      count.textContent = wanted.length ? `${shown} of ${rows.length}` : "";
    });
    table.closest(".scroll").before(make("p", { class: "filter screen" }, input, " ", count));
  };

  // Key columns stay at the left; if they need too much of the width, one column with all their texts replaces them.
  const MOST_OF_BOX = 0.45;
  const scrollable = (box) => {
    const table = box.querySelector("table");
    const leading = [...table.tHead.rows[0].cells].filter((cell) => cell.matches(".o, .key"));
    const hasNames = table.querySelector("thead .name") !== null;
    const look = () => {
      box.classList.toggle("scrolled", box.scrollLeft > 0);
      box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
    };
    const lay = () => {
      table.classList.remove("compact");
      let left = 0;
      let key = 0;
      for (const cell of leading) {
        if (cell.matches(".key")) {
          table.style.setProperty(`--place-${key}`, "sticky");
          table.style.setProperty(`--left-${key}`, `${left}px`);
          table.dataset.edge = key;
          key += 1;
        }
        left += cell.offsetWidth;
      }
      const isTooWide = box.scrollWidth > box.clientWidth + 1 && left > MOST_OF_BOX * box.clientWidth;
      table.classList.toggle("compact", hasNames && isTooWide);
      look();
    };
    box.addEventListener("scroll", look, { passive: true });
    const sizes = new ResizeObserver(lay);
    sizes.observe(box);
    sizes.observe(table);
  };

  // A faded edge shows that a drawing continues to the right.
  const fadable = (box) => {
    const look = () => box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
    box.addEventListener("scroll", look, { passive: true });
    new ResizeObserver(look).observe(box);
  };

  const OUTCOMES = { s: "solved", u: "unsolved", d: "diverged", f: "failed", e: "finished", p: "stopped" };
  const linked = (text, address) =>
    address && /^https?:/.test(address) ? make("a", { href: address, target: "_blank", rel: "noopener" }, text) : text;
  const shown = (value) => (value === null ? "–" : Math.abs(value) >= 1e4 && Number.isInteger(value) ? value.toLocaleString("en") : String(value));

  const trialsOf = (data, row) => {
    const head = ["seed", "outcome", ...data.numbers.map(([title]) => title), "id", ""];
    const table = make("table", {}, make("thead", {}, make("tr", {}, ...head.map((title) => make("th", { scope: "col" }, title)))));
    const body = make("tbody");
    data.row.forEach((of, i) => {
      if (of !== row) return;
      const address = data.link && data.link.replace(data.place, data.trial_id[i]);
      const numbers = data.numbers.map(([, values]) => make("td", { class: "n" }, shown(values[i])));
      const files = (data.files[data.trial_id[i]] || []).flatMap((name) => [
        make("a", { href: `../files/${data.trial_id[i]}/${name.split("/").map(encodeURIComponent).join("/")}` }, name), " ",
      ]);
      const error = data.errors[i] && (files.length ? data.errors[i].trim().split("\n").pop() : data.errors[i]);
      const more = make("span", {}, ...files, error || linked(address ? "MLflow" : "", address));
      body.append(make("tr", {}, make("td", { class: "n" }, String(data.seed[i])), make("td", {}, OUTCOMES[data.outcome[i]] || "?"), ...numbers, make("td", {}, make("code", {}, data.trial_id[i].slice(0, 8))), make("td", {}, more)));
    });
    table.append(body);
    const cell = data.cells && data.cells[row];
    return [make("p", { class: "small" }, `${body.rows.length} trials with a result. `, linked(cell ? "All of them in MLflow" : "", cell)), table];
  };

  const openable = (data) => {
    for (const button of document.querySelectorAll("button.open")) {
      button.addEventListener("click", () => {
        const row = button.closest("tr");
        const open = button.getAttribute("aria-expanded") === "true";
        button.setAttribute("aria-expanded", String(!open));
        if (open) {
          row.nextElementSibling.remove();
          return;
        }
        const inside = make("td", { colspan: row.cells.length }, ...trialsOf(data, Number(row.dataset.row)));
        row.after(make("tr", { class: "trials", "data-of": row.dataset.row }, inside));
      });
    }
  };

  // Open everything for printing, and restore it afterwards. A table that is too wide for paper is folded.
  const MOST_ON_PAPER_PX = 1000; // on A4: Chromium shrinks a page by a third at most
  const printable = () => {
    const opened = [];
    window.addEventListener("beforeprint", () => {
      for (const part of document.querySelectorAll("details:not([open])")) {
        part.open = true;
        opened.push(part);
      }
      for (const table of document.querySelectorAll("table.sortable")) {
        table.classList.add("measured");
        table.classList.toggle("wide", table.offsetWidth > MOST_ON_PAPER_PX);
        table.classList.remove("measured");
      }
    });
    window.addEventListener("afterprint", () => {
      for (const part of opened.splice(0)) part.open = false;
    });
  };

  // Show the value of the point nearest to the pointer, since points lie close and a finger is wide.
  const REACH_PX = 16;
  const MARK_PX = 10;
  const tips = () => {
    const tip = make("div", { class: "tip", role: "tooltip" });
    document.body.append(tip);
    const hide = () => tip.classList.remove("on");
    const tell = (place, text) => {
      tip.textContent = text;
      tip.classList.add("on");
      const left = place.x - tip.offsetWidth / 2;
      const most = document.documentElement.clientWidth - tip.offsetWidth - 4;
      tip.style.left = `${Math.max(4, Math.min(left, most)) + window.scrollX}px`;
      const above = place.y - tip.offsetHeight - MARK_PX;
      tip.style.top = `${(above > 0 ? above : place.y + MARK_PX) + window.scrollY}px`;
    };
    // Marks have the drawing's coordinates, also where a stack shows its parts.
    const placeOf = (mark) => {
      const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => Number(mark.getAttribute(name)));
      return mark.tagName === "circle" ? [mark.cx.baseVal.value, mark.cy.baseVal.value] : [x + width / 2, y + height / 2];
    };
    for (const figure of document.querySelectorAll("figure")) {
      const marks = [...figure.querySelectorAll(".tips > *")].map((mark) => {
        const title = mark.querySelector("title");
        const text = title ? title.textContent : "";
        if (title) title.remove(); // else the browser shows the title, too
        return [...placeOf(mark), text];
      });
      if (!marks.length) continue;
      for (const svg of figure.querySelectorAll("svg")) {
        const look = (event) => {
          const onScreen = svg.getScreenCTM();
          const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(onScreen.inverse());
          let nearest = null;
          let least = REACH_PX / onScreen.a;
          for (const mark of marks) {
            const away = Math.hypot(at.x - mark[0], at.y - mark[1]);
            if (away < least) [nearest, least] = [mark, away];
          }
          if (nearest === null) hide();
          else tell(new DOMPoint(nearest[0], nearest[1]).matrixTransform(onScreen), nearest[2]);
        };
        svg.addEventListener("pointermove", look);
        svg.addEventListener("pointerdown", look);
        svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hide());
      }
    }
    document.addEventListener("pointerdown", (event) => event.target.closest?.("figure svg") || hide());
    document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  };

  document.documentElement.classList.add("js");
  for (const table of document.querySelectorAll("table.sortable")) {
    sortable(table);
    filterable(table);
    scrollable(table.closest(".scroll"));
  }
  for (const box of document.querySelectorAll(".drawing:not(.stackable)")) fadable(box);
  const trials = document.getElementById("trials");
  if (trials) openable(JSON.parse(trials.textContent));
  printable();
  tips();
})();
