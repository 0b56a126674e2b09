"use strict";
// Filters, order, studies side by side, ages, and updates of a served page. The page is readable without this script.
(() => {
  const FILTER_FROM = 2;
  const SEARCHED = ".asks, .tags, .finding, .unreadable, .failures code";
  const find = (id) => document.getElementById(id);
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const list = document.querySelector(".studies");
  const itemsOf = (root) => [...root.querySelectorAll("li[data-study]")];
  const nameOf = (item) => item.dataset.study;
  const tickOf = (item) => item.querySelector(".tick input");

  // --- the reader's settings, kept over updates and a reload
  const KEY = `studies:${location.pathname}`;
  const remembered = () => {
    try {
      return JSON.parse(sessionStorage.getItem(KEY)) ?? {};
    } catch {
      return {};
    }
  };
  const state = { ticked: [], tags: [], opened: {}, words: "", state: "", sort: "", reversed: false, ...remembered() };
  const remember = () => {
    try {
      sessionStorage.setItem(KEY, JSON.stringify(state));
    } catch {} // some browsers have no storage for files
  };

  // --- ages
  const UNITS = [["d", 86400], ["h", 3600], ["min", 60]];
  const ago = (seconds) => {
    const unit = UNITS.find(([, length]) => seconds >= length);
    return unit ? `${Math.floor(seconds / unit[1])} ${unit[0]} ago` : "just now";
  };
  const showAges = () => {
    for (const time of document.querySelectorAll("time")) {
      time.title ||= time.textContent;
      time.textContent = ago((Date.now() - Date.parse(time.dateTime)) / 1000);
    }
  };

  // --- filters and order
  let served = itemsOf(list).map(nameOf); // the order in the served page
  const ORDERS = {
    "": (first, second) => served.indexOf(nameOf(first)) - served.indexOf(nameOf(second)),
    name: (first, second) => nameOf(first).localeCompare(nameOf(second), undefined, { numeric: true }),
  };
  for (const key of ["newest", "trials", "done", "failed"])
    ORDERS[key] = (first, second) => second.dataset[key] - first.dataset[key] || ORDERS[""](first, second);
  const tagsOf = (item) => item.dataset.tags.split(" ").filter(Boolean);

  const showTags = (items) => {
    const counts = new Map(state.tags.map((tag) => [tag, 0])); // a selected tag that no study has any more can still be cleared
    for (const tag of items.flatMap(tagsOf)) counts.set(tag, (counts.get(tag) ?? 0) + 1);
    const names = [...counts.keys()].sort();
    find("tags").replaceChildren(
      ...names.map((tag) => make("button", { type: "button", class: "tag", "data-tag": tag }, `${tag} `, make("span", { class: "small" }, `${counts.get(tag)}`))),
    );
    for (const button of document.querySelectorAll("button.tag")) button.ariaPressed = state.tags.includes(button.dataset.tag);
  };

  const arrange = () => {
    const items = itemsOf(list);
    const wanted = state.words.toLowerCase().split(/\s+/).filter(Boolean);
    for (const item of items) {
      const parts = [...item.querySelectorAll(SEARCHED)].map((part) => part.textContent);
      const text = [nameOf(item), ...parts].join("\n").toLowerCase();
      const is = item.dataset.states.split(" ");
      item.hidden = !(
        wanted.every((word) => text.includes(word)) &&
        (!state.state || is.includes(state.state)) &&
        state.tags.every((tag) => tagsOf(item).includes(tag))
      );
    }
    const sorted = [...items].sort(ORDERS[state.sort] ?? ORDERS[""]);
    if (state.reversed) sorted.reverse();
    if (sorted.some((item, i) => item !== items[i])) keepingFocus(() => list.append(...sorted));
    const shown = items.filter((item) => !item.hidden).length;
    find("shown").textContent = shown < items.length ? `${shown} of ${items.length}` : "";
    keepingFocus(() => showTags(items));
    find("controls").hidden = items.length < FILTER_FROM && shown === items.length;
  };

  // --- studies side by side
  let data = JSON.parse(find("beside").textContent);
  const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);
  const joinAnd = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);
  const valueOf = (study, row, key) => {
    const place = study.keys.indexOf(key);
    return place < 0 ? study.same[key] ?? "–" : row[2][place];
  };
  // Match cells as `study report --compare` does: equal cells, else cells with equal values of all hyperparameters that
  // a study sweeps. Return lines, each with a row, or undefined, for each study.
  const matched = (studies) => {
    const keys = [...new Set(["model", ...studies.flatMap((study) => study.keys)])];
    const lines = [];
    const [byId, byKey] = [new Map(), new Map()];
    studies.forEach((study, i) => {
      for (const row of study.rows) {
        const key = JSON.stringify(keys.map((name) => valueOf(study, row, name)));
        const alike = (byKey.get(key) ?? []).find((line) => !line[i]);
        const line = byId.get(row[0]) ?? alike ?? lines[lines.push(studies.map(() => undefined)) - 1];
        line[i] = row;
        byId.set(row[0], line);
        if (!byKey.get(key)?.includes(line)) byKey.set(key, [...(byKey.get(key) ?? []), line]);
      }
    });
    const differing = [...new Set(studies.flatMap((study) => Object.keys(study.same)))].filter((key) => {
      const values = studies.map((study) => study.same[key]).filter((value) => value !== undefined);
      return !keys.includes(key) && new Set(values).size > 1;
    });
    return { lines, differing };
  };
  // A name has the values that vary in its own study, so the longest name of a cell is the most specific.
  const cellNameOf = (line) => line.map((row) => row?.[1] ?? "").reduce((first, second) => (second.length > first.length ? second : first));

  const tableOf = (names, studies, lines) => {
    const cells = (tag, study, i, texts) =>
      study.columns.map((_, c) => make(tag, { class: c ? "n" : "n from", ...(tag === "th" ? { scope: "col" } : {}) }, texts?.[c] ?? ""));
    const rowOf = (line, attributes = {}) =>
      make("tr", attributes, make("td", { class: "t" }, cellNameOf(line)), ...studies.flatMap((study, i) => cells("td", study, i, line[i]?.[3])));
    const head = [make("th", { class: "t", scope: "col", rowspan: 2 }, "cell")];
    studies.forEach((study, i) => head.push(make("th", { class: "from", colspan: study.columns.length, scope: "colgroup" }, names[i])));
    const titles = studies.flatMap((study, i) => cells("th", study, i, study.columns));
    const isIn = (line) => line.filter(Boolean).length;
    const body = make("tbody", {}, ...lines.filter((line) => isIn(line) > 1).map((line) => rowOf(line)));
    studies.forEach((_, i) => {
      const only = lines.filter((line) => isIn(line) === 1 && line[i]);
      const width = 1 + studies.reduce((sum, study) => sum + study.columns.length, 0);
      if (only.length) body.append(make("tr", {}, make("th", { class: "t", colspan: width, scope: "colgroup" }, make("span", {}, `only in ${names[i]}`))));
      body.append(...only.map((line) => rowOf(line, { class: "only" })));
    });
    const table = make("table", {}, make("thead", {}, make("tr", {}, ...head), make("tr", {}, ...titles)), body);
    return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "studies side by side" }, table);
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
        getSelection().selectAllChildren(code); // some browsers don't let files write to the clipboard
      }
    });
    return make("div", { class: "command" }, make("pre", {}, code), button);
  };

  const section = find("comparison");
  const status = find("ticked");
  const showTicks = () => {
    for (const item of itemsOf(list).filter(tickOf)) {
      tickOf(item).checked = state.ticked.includes(nameOf(item));
      item.classList.toggle("ticked", tickOf(item).checked);
    }
  };
  const compare = () => {
    showTicks();
    const names = state.ticked.filter((name) => data.studies[name]); // in the order of ticking
    section.hidden = names.length < 2;
    status.hidden = names.length === 0;
    const clear = make("button", { type: "button" }, "Untick all");
    clear.addEventListener("click", () => ((state.ticked = []), compare(), remember()));
    const place = section.querySelector(".scroll")?.scrollLeft ?? 0;
    if (names.length === 1) status.replaceChildren(`${names[0]} is ticked: tick studies to compare it with. `, clear);
    if (names.length < 2) return section.replaceChildren();
    status.replaceChildren(make("a", { href: "#comparison" }, `Compared: ${joinAnd(names)}`), " ", clear);
    const studies = names.map((name) => data.studies[name]);
    const { lines, differing } = matched(studies);
    const different = differing.map((key) => {
      const values = new Set(studies.map((study) => study.same[key]).filter((value) => value !== undefined));
      const where = [...values].map((value) => `${value} in ${joinAnd(names.filter((_, i) => studies[i].same[key] === value))}`);
      return `${data.titles[key] ?? key} ${where.join(", ")}`;
    });
    const hasBoth = lines.some((line) => line.filter(Boolean).length > 1);
    const two = names.length === 2 && hasBoth;
    const advice = two ? "To test whether the studies differ:" : "To test whether two of them differ, tick only these.";
    section.replaceChildren(
      make("h2", {}, joinAnd(names)),
      ...(hasBoth ? [] : [make("p", {}, "These studies have no cell in common.")]),
      ...(different.length ? [make("p", { class: "small" }, `Other differences: ${different.join("; ")}.`)] : []),
      tableOf(names, studies, lines),
      ...(hasBoth ? [make("p", { class: "small" }, `Intervals are at 95%. ${advice}`)] : []),
      ...(two ? [commandOf(names)] : []),
    );
    section.querySelector(".scroll").scrollLeft = place;
  };

  // --- focus and open details of replaced elements
  const FOCUSABLE = "a, input, button, summary, [tabindex]";
  const markOf = (element) => {
    const { localName, className } = element.parentElement;
    return [localName, className, element.localName, element.getAttribute("href") ?? element.dataset.tag].join(" ");
  };
  const keepingFocus = (change) => {
    const before = document.activeElement;
    const holder = before?.closest("li[data-study], #about, #tags, #ticked, #comparison");
    const mark = holder && markOf(before);
    change();
    if (!holder || document.activeElement === before) return;
    const now = holder.id ? find(holder.id) : itemsOf(list).find((item) => nameOf(item) === nameOf(holder));
    const again = [...(now?.querySelectorAll(FOCUSABLE) ?? [])].find((element) => markOf(element) === mark);
    again?.focus({ preventScroll: true });
  };
  const openDetails = (item) => {
    for (const details of item.querySelectorAll("details")) {
      details.open = state.opened[`${nameOf(item)} ${details.className}`] ?? details.open;
    }
  };

  // --- updates from the served page
  const sources = new Map(itemsOf(list).map((item) => [nameOf(item), item.outerHTML]));
  const scriptOf = (page) => page.querySelector("body > script").textContent;
  const update = (page) => {
    if (scriptOf(page) !== scriptOf(document)) return location.reload(); // the script has changed
    const fresh = itemsOf(page);
    const header = document.querySelector("header");
    const was = header.cloneNode(true);
    for (const time of was.querySelectorAll("time")) time.textContent = time.title;
    const headerNow = page.querySelector("header");
    if (was.textContent !== headerNow.textContent) keepingFocus(() => header.replaceWith(document.importNode(headerNow, true)));
    document.querySelector(".empty").hidden = fresh.length > 0;
    served = fresh.map(nameOf);
    const there = new Map(itemsOf(list).map((item) => [nameOf(item), item]));
    for (const [name, item] of there) if (!served.includes(name)) (item.remove(), sources.delete(name));
    for (const item of fresh) {
      const name = nameOf(item);
      const source = item.outerHTML;
      if (sources.get(name) === source) continue;
      sources.set(name, source);
      const next = document.importNode(item, true);
      openDetails(next);
      const old = there.get(name);
      keepingFocus(() => (old ? old.replaceWith(next) : list.append(next)));
    }
    const beside = page.getElementById("beside").textContent;
    const isSame = find("beside").textContent === beside;
    if (!isSame) {
      find("beside").textContent = beside;
      data = JSON.parse(beside);
    }
    arrange();
    showAges();
    showTicks();
    if (!isSame) keepingFocus(compare);
  };

  const isServed = location.protocol.startsWith("http") && document.body.dataset.live === "yes";
  let version = null;
  const isRead = () => document.visibilityState !== "visible" || !getSelection().isCollapsed;
  const follow = async () => {
    if (isRead()) return; // don't change the page while it is hidden or text is selected
    const connection = find("connection");
    let text, latest;
    try {
      const answer = await fetch(location.pathname, { cache: "no-cache" });
      if (!answer.ok) throw new Error(answer.statusText);
      [text, latest] = [await answer.text(), answer.headers.get("ETag")];
    } catch {
      if (connection.hidden) connection.textContent = `No answer from study ui since ${new Date().toLocaleTimeString()}. The page updates again once it answers.`;
      connection.hidden = false;
      return;
    }
    connection.hidden = true;
    if (latest === version || isRead()) return;
    version = latest;
    update(new DOMParser().parseFromString(text, "text/html"));
  };
  const followOn = async () => {
    await follow();
    setTimeout(followOn, Number(document.body.dataset.refreshS) * 1000);
  };

  document.documentElement.classList.add("js");
  for (const [id, key, property, event] of [
    ["filter", "words", "value", "input"],
    ["state", "state", "value", "change"],
    ["sort", "sort", "value", "change"],
    ["reversed", "reversed", "checked", "change"],
  ]) {
    find(id)[property] = state[key];
    find(id).addEventListener(event, () => ((state[key] = find(id)[property]), arrange(), remember()));
  }
  find("controls").addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("click", (event) => {
    const tag = event.target.closest?.("button.tag")?.dataset.tag;
    if (tag === undefined) return;
    state.tags = state.tags.includes(tag) ? state.tags.filter((known) => known !== tag) : [...state.tags, tag];
    arrange();
    remember();
  });
  list.addEventListener("change", (event) => {
    const name = event.target.value;
    state.ticked = [...state.ticked.filter((known) => known !== name), ...(event.target.checked ? [name] : [])];
    compare();
    remember();
  });
  list.addEventListener("toggle", (event) => {
    const item = event.target.closest("li[data-study]");
    if (item) state.opened[`${nameOf(item)} ${event.target.className}`] = event.target.open;
    remember();
  }, true);
  itemsOf(list).forEach(openDetails);
  arrange();
  showAges();
  setInterval(showAges, 15000);
  compare();
  if (isServed) {
    document.addEventListener("visibilitychange", follow);
    followOn();
  }
})();
