"use strict";
// Sorting, filtering, scrolling sideways, trials of a row, values of a figure's points. Without it the page reads the
// same.
(() => {
  const FILTER_FROM = 8;
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  // What a cell sorts by: the number behind its text, else the text; nothing goes last.
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

  // The columns that tell rows apart stay at the left, as many as leave room for others; an edge says where more is.
  const MOST_OF_BOX = 0.6;
  const scrollable = (box) => {
    const table = box.querySelector("table");
    const head = [...table.tHead.rows[0].cells];
    const rest = head.findIndex((cell) => !cell.matches(".o, .key"));
    const leading = head.slice(0, rest < 0 ? head.length : rest);
    const look = () => {
      box.classList.toggle("scrolled", box.scrollLeft > 0);
      box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
    };
    const lay = () => {
      let left = 0;
      let key = 0;
      table.dataset.edge = "";
      for (const cell of leading) {
        const fits = left + cell.offsetWidth <= MOST_OF_BOX * box.clientWidth;
        if (cell.matches(".key")) {
          table.style.setProperty(`--place-${key}`, fits ? "sticky" : "static");
          table.style.setProperty(`--left-${key}`, `${left}px`);
          if (fits) table.dataset.edge = key;
          key += 1;
        }
        left += cell.offsetWidth;
      }
      look();
    };
    box.addEventListener("scroll", look, { passive: true });
    const sizes = new ResizeObserver(lay);
    sizes.observe(box);
    sizes.observe(table);
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

  // On paper nothing can be opened: all is, and then as it was.
  const printable = () => {
    const opened = [];
    window.addEventListener("beforeprint", () => {
      for (const part of document.querySelectorAll("details:not([open])")) {
        part.open = true;
        opened.push(part);
      }
    });
    window.addEventListener("afterprint", () => {
      for (const part of opened.splice(0)) part.open = false;
    });
  };

  // The point nearest to the pointer tells its value: points lie close, and a finger is wide.
  const REACH_PX = 16;
  const tips = () => {
    const tip = make("div", { class: "tip", role: "tooltip" });
    document.body.append(tip);
    const hide = () => tip.classList.remove("on");
    const tell = (mark, text) => {
      const box = mark.getBoundingClientRect();
      tip.textContent = text;
      tip.classList.add("on");
      const left = box.left + box.width / 2 - tip.offsetWidth / 2;
      const most = document.documentElement.clientWidth - tip.offsetWidth - 4;
      tip.style.left = `${Math.max(4, Math.min(left, most)) + window.scrollX}px`;
      const above = box.top - tip.offsetHeight - 4;
      tip.style.top = `${(above > 0 ? above : box.bottom + 4) + window.scrollY}px`;
    };
    for (const svg of document.querySelectorAll("figure svg")) {
      const marks = [...svg.querySelectorAll(".tips > *")].map((mark) => {
        const title = mark.querySelector("title");
        const text = title ? title.textContent : "";
        if (title) title.remove(); // else the browser shows it, too
        return [mark, text];
      });
      if (!marks.length) continue;
      let centres = [];
      const measure = () => {
        const { left, top } = svg.getBoundingClientRect();
        centres = marks.map(([mark]) => {
          const box = mark.getBoundingClientRect();
          return [box.left + box.width / 2 - left, box.top + box.height / 2 - top];
        });
      };
      const look = (event) => {
        const { left, top } = svg.getBoundingClientRect();
        let nearest = -1;
        let least = REACH_PX;
        centres.forEach(([x, y], i) => {
          const away = Math.hypot(event.clientX - left - x, event.clientY - top - y);
          if (away < least) [nearest, least] = [i, away];
        });
        if (nearest < 0) hide();
        else tell(...marks[nearest]);
      };
      svg.addEventListener("pointerenter", measure);
      svg.addEventListener("pointermove", look);
      svg.addEventListener("pointerdown", (event) => (measure(), look(event)));
      svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hide());
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
  const trials = document.getElementById("trials");
  if (trials) openable(JSON.parse(trials.textContent));
  printable();
  tips();
})();
