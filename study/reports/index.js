"use strict";
// Two studies side by side, ages, a filter, and a page that follows a running study. Without it the page reads the same.
(() => {
  const FILTER_FROM = 8;
  const data = JSON.parse(document.getElementById("beside").textContent);
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const ticks = [...document.querySelectorAll(".tick input")];
  const filter = document.getElementById("filter");

  // --- what a reader has set, over a reload
  const KEY = `studies:${location.pathname}`;
  const remember = () => {
    const state = { ticked: ticks.filter((tick) => tick.checked).map((tick) => tick.value), words: filter.value };
    state.focus = document.activeElement?.id ?? "";
    state.study = document.activeElement?.closest("li[data-study]")?.dataset.study ?? "";
    try {
      sessionStorage.setItem(KEY, JSON.stringify(state));
    } catch {} // a browser that keeps nothing for files
  };
  const remembered = () => {
    try {
      return JSON.parse(sessionStorage.getItem(KEY)) ?? {};
    } catch {
      return {};
    }
  };

  // --- ages
  const UNITS = [["d", 86400], ["h", 3600], ["min", 60]];
  const ago = (seconds) => {
    const unit = UNITS.find(([, length]) => seconds >= length);
    return unit ? `${Math.floor(seconds / unit[1])} ${unit[0]} ago` : "just now";
  };
  const times = [...document.querySelectorAll("time")].map((time) => {
    time.title = time.textContent;
    return time;
  });
  const showAges = () => {
    for (const time of times) time.textContent = ago((Date.now() - Date.parse(time.dateTime)) / 1000);
  };

  // --- a filter
  const studies = [...document.querySelectorAll("li[data-study]")];
  const texts = studies.map((study) => study.textContent.toLowerCase());
  const showFiltered = () => {
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    studies.forEach((study, i) => (study.hidden = !wanted.every((word) => texts[i].includes(word))));
    const shown = studies.filter((study) => !study.hidden).length;
    filter.nextElementSibling.textContent = wanted.length ? `${shown} of ${studies.length}` : "";
  };

  // --- two studies side by side
  const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);
  const valueOf = (study, row, key) => {
    const place = study.keys.indexOf(key);
    return place < 0 ? study.same[key] ?? "–" : row[2][place];
  };
  // As `study report --compare` matches cells: those that are the same, else by what either study sweeps.
  const matched = (one, other) => {
    const ids = new Set(one.rows.map(([id]) => id));
    const isShared = other.rows.some(([id]) => ids.has(id));
    const keys = [...new Set(["model", ...one.keys, ...other.keys])];
    const keyOf = (study) => (row) => (isShared ? row[0] : JSON.stringify(keys.map((key) => valueOf(study, row, key))));
    const there = new Map(other.rows.map((row) => [keyOf(other)(row), row]));
    const both = [];
    const alone = [];
    for (const row of one.rows) {
      const key = keyOf(one)(row);
      if (there.has(key)) both.push([row, there.get(key)]);
      else alone.push(row);
      there.delete(key);
    }
    const differing = Object.keys(one.same).filter((key) => {
      const [here, beside] = [one.same[key], other.same[key]];
      return !isShared && !keys.includes(key) && beside !== undefined && here !== beside;
    });
    return { both, alone: [alone, [...there.values()]], differing };
  };
  // A name says what varies in its own study: of two names of one cell, the longer says more.
  const nameOf = (row, beside) => (beside && beside[1].length > row[1].length ? beside[1] : row[1]);

  const tableOf = (names, pair, { both, alone }) => {
    const cells = (study, row) =>
      study.columns.map((_, i) => make("td", { class: i ? "n" : "n from" }, row ? row[3][i] : ""));
    const line = (rows, attributes = {}) => {
      const name = rows[0] && rows[1] ? nameOf(...rows) : (rows[0] ?? rows[1])[1];
      return make("tr", attributes, make("td", { class: "t" }, name), ...cells(pair[0], rows[0]), ...cells(pair[1], rows[1]));
    };
    const head = [make("th", { class: "t", scope: "col", rowspan: 2 }, "cell")];
    pair.forEach((study, i) => head.push(make("th", { class: "from", colspan: study.columns.length, scope: "colgroup" }, names[i])));
    const titles = pair.flatMap((study) => study.columns.map((title, i) => make("th", { class: i ? "n" : "n from", scope: "col" }, title)));
    const body = make("tbody", {}, ...both.map((rows) => line(rows)));
    alone.forEach((rows, i) => {
      const width = 1 + pair[0].columns.length + pair[1].columns.length;
      if (rows.length) body.append(make("tr", {}, make("th", { class: "t", colspan: width, scope: "colgroup" }, `only in ${names[i]}`)));
      for (const row of rows) body.append(line(i ? [undefined, row] : [row, undefined], { class: "only" }));
    });
    const table = make("table", {}, make("thead", {}, make("tr", {}, ...head), make("tr", {}, ...titles)), body);
    return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "two studies side by side" }, table);
  };

  const commandOf = (names) => {
    const command = ["study report", quoted(names[0]), "--compare", quoted(names[1]), data.option].filter(Boolean).join(" ");
    const code = make("code", {}, command);
    const button = make("button", { type: "button" }, "Copy");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(command);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code); // a browser that doesn't let files write to the clipboard
      }
    });
    return make("div", { class: "command" }, make("pre", {}, code), button);
  };

  const section = document.getElementById("comparison");
  const status = document.getElementById("ticked");
  const compare = () => {
    const names = ticks.filter((tick) => tick.checked).map((tick) => tick.value);
    for (const tick of ticks) tick.closest("li").classList.toggle("ticked", tick.checked);
    section.hidden = names.length !== 2;
    status.hidden = names.length === 0;
    if (names.length === 1) status.textContent = `${names[0]} is ticked: tick the study to compare it with.`;
    if (names.length > 2) status.textContent = `${names.length} studies are ticked, but two are compared: untick ${names.length - 2}.`;
    if (names.length !== 2) return section.replaceChildren();
    status.replaceChildren(make("a", { href: "#comparison" }, `Compared: ${names[0]} and ${names[1]}`));
    const pair = names.map((name) => data.studies[name]);
    const joined = matched(...pair);
    const title = (key) => data.titles[key] ?? key;
    const differing = joined.differing.map((key) => `${title(key)} ${pair[0].same[key]} in ${names[0]}, ${pair[1].same[key]} in ${names[1]}`);
    const none = "No cell of either has a counterpart in the other.";
    section.replaceChildren(
      make("h2", {}, `${names[0]} and ${names[1]}`),
      ...(joined.both.length ? [] : [make("p", {}, none)]),
      ...(differing.length ? [make("p", { class: "small" }, `What else differs: ${differing.join("; ")}.`)] : []),
      tableOf(names, pair, joined),
      ...(joined.both.length ? [make("p", { class: "small" }, "Intervals are at 95%. Whether the studies differ is for a test to say:"), commandOf(names)] : []),
    );
  };

  // --- following a running study, but not under a reader's hand
  const isRead = () => document.visibilityState !== "visible" || !getSelection().isCollapsed;
  const reload = () => {
    remember();
    location.reload();
  };
  const { live, running, refreshS } = document.body.dataset;
  if (live === "yes") {
    if (Number(running)) setInterval(() => isRead() || reload(), Number(refreshS) * 1000);
    document.addEventListener("visibilitychange", () => isRead() || reload());
  }

  document.documentElement.classList.add("js");
  const state = remembered();
  for (const tick of ticks) {
    tick.checked = (state.ticked ?? []).includes(tick.value);
    tick.addEventListener("change", () => (compare(), remember()));
  }
  filter.value = state.words ?? "";
  filter.parentElement.hidden = studies.length < FILTER_FROM && !filter.value;
  filter.addEventListener("input", () => (showFiltered(), remember()));
  showFiltered();
  showAges();
  setInterval(showAges, 15000);
  compare();
  const holder = studies.find((study) => study.dataset.study === state.study);
  const focused = holder ? holder.querySelector("input") : document.getElementById(state.focus);
  if (state.focus) focused?.focus({ preventScroll: true });
})();
