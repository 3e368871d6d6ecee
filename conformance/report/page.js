"use strict";
(async () => {
  const packed = Uint8Array.from(atob(document.getElementById("data").textContent), (char) => char.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const data = await new Response(unpacked).json();
  const TITLE = 2; // of a case
  const FILTERS = ["section", "level", "state", "in", "q"];
  const BROKEN = "efkw";

  const table = document.getElementById("table");
  const form = document.getElementById("filter");
  const dialog = document.getElementById("details");
  const about = document.getElementById("about");
  const several = data.implementations.length > 1;

  const casesOf = data.clauses.map(() => []);
  data.cases.forEach((one, place) => casesOf[one[1]].push(place));
  const placeOf = new Map(data.clauses.map((clause, place) => [clause.id, place]));
  const rows = [...table.querySelectorAll("tr[data-clause]")].map((element) => {
    const place = placeOf.get(element.dataset.clause);
    const clause = data.clauses[place];
    return {
      element, place, clause,
      words: `${clause.id} ${clause.statement}`.toLowerCase(),
      cases: casesOf[place].map((one) => ({ place: one, words: `${data.cases[one][0]} ${data.cases[one][TITLE]}`.toLowerCase() })),
    };
  });

  /** Return an element; strings among its children become text, never markup. */
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.flat().filter((child) => child !== "" && child != null));
    return element;
  }
  /** Return text whose parts between backticks are code. */
  const prose = (words) => words.split(/`([^`]+)`/).map((part, place) => (place % 2 ? make("code", {}, part) : part));
  const glyph = (letter) => make("span", { class: `g ${letter}`, "aria-hidden": "true" });

  // The hash has the whole state: the filters, and what the details show.

  const read = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  function hash(wanted) {
    const kept = [...FILTERS, "clause", "case"].filter((name) => wanted[name]).map((name) => [name, wanted[name]]);
    return `#${new URLSearchParams(kept)}`;
  }
  function go(wanted, how = "pushState", state = null) {
    history[how](state, "", hash(wanted));
    show();
  }
  const implementation = (name) => data.implementations.findIndex((one) => one.name === name);

  let filtered = null; // the hash by which the page is filtered

  function show() {
    const wanted = read();
    if (location.hash.length > 1 && !location.hash.includes("=")) return; // a place in the page
    const found = wanted.case ? data.cases.findIndex((one) => one[0] === wanted.case) : -1;
    const place = found < 0 ? placeOf.get(wanted.clause) : data.cases[found][1];
    const page = place !== undefined && filtered ? { ...wanted, in: filtered.in } : wanted; // the page stays as it is
    if (!filtered || FILTERS.some((name) => (page[name] || "") !== (filtered[name] || ""))) filter(page);
    filtered = page;
    if (place === undefined) {
      if (dialog.open) dialog.close();
    } else {
      details(place, several ? implementation(wanted.in) : 0, found);
    }
  }

  // Filter

  function filter(wanted) {
    for (const name of FILTERS) {
      const field = form.elements[name];
      if (field && field !== document.activeElement) field.value = wanted[name] || "";
      if (field && field.value !== (wanted[name] || "") && field.tagName === "SELECT") field.value = "";
    }
    const only = several ? implementation(wanted.in) : 0;
    const states = (only < 0 ? data.implementations : [data.implementations[only]]).map((one) => one.states);
    const letter = Object.keys(data.states).find((key) => data.states[key] === wanted.state);
    const words = (wanted.q || "").toLowerCase().split(/\s+/).filter(Boolean);
    const has = (text) => words.every((word) => text.includes(word));
    let left = 0;
    const seen = new Set();
    for (const row of rows) {
      const { clause } = row;
      let stays = (!wanted.section || clause.section === wanted.section) && (!wanted.level || clause.level === wanted.level);
      let hits = [];
      if (stays && (letter || words.length)) {
        const named = has(row.words);
        const cases = row.cases.filter((one) => !letter || states.some((each) => each[one.place] === letter));
        if (!named) hits = cases.filter((one) => has(one.words));
        stays = (named && (!letter || cases.length > 0)) || hits.length > 0;
      }
      row.element.hidden = !stays;
      name(row, hits, wanted);
      if (stays) {
        left += 1;
        seen.add(clause.id);
      }
    }
    for (const body of table.tBodies) body.hidden = !body.querySelector("tr[data-clause]:not([hidden])");
    for (const article of document.querySelectorAll("[data-of]")) article.hidden = !seen.has(article.dataset.of);
    column(only, letter);
    document.getElementById("count").textContent = `${left} of ${rows.length} clauses`;
    document.getElementById("none").hidden = left > 0;
    table.hidden = left === 0;
    form.querySelector("button").hidden = !FILTERS.some((name) => wanted[name]);
  }

  /** List in a row the cases that match the search. */
  function name(row, hits, wanted) {
    row.element.querySelector(".hits")?.remove();
    if (!hits.length) return;
    const links = hits.slice(0, 3).map(({ place }) => {
      const id = data.cases[place][0];
      return make("a", { href: hash({ ...wanted, case: id }) }, id);
    });
    const more = hits.length > 3 ? `and ${hits.length - 3} more cases` : "";
    row.element.cells[0].append(make("span", { class: "hits" }, links, more));
  }

  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [sheet];

  /** Show the column of one implementation, or all for -1. */
  function column(only, letter) {
    if (!several) return;
    const dense = table.dataset.form;
    table.className = only < 0 ? dense : "one";
    const quiet = letter ? `#table td > a:not(.${letter}) { color: var(--s); background: none; }` : "";
    const away = `#table tr > :not(:first-child):not(:nth-child(${only + 2})), .verdicts tbody tr:not([data-impl="${only}"])`;
    sheet.replaceSync(only < 0 ? quiet : `${away} { display: none; }`);
    about.hidden = only < 0;
    for (const one of about.querySelectorAll("details")) {
      one.hidden = only >= 0 && Number(one.dataset.impl) !== only;
      one.open = only >= 0 && !one.hidden;
    }
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", ({ target }) => {
    const wanted = { ...read(), [target.name]: target.value };
    go(wanted, target.name === "q" ? "replaceState" : "pushState");
  });
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    go({});
    form.elements.q.focus();
  });

  // Details

  function details(place, only, wanted) {
    const clause = data.clauses[place];
    const close = make("button", { type: "button", "aria-label": "Close" }, "Close");
    close.addEventListener("click", leave);
    const title = make("h2", { id: "details-title", tabindex: "-1", autofocus: true }, clause.id);
    const level = clause.level ? `, ${clause.level.toUpperCase()}` : "";
    const list = make("ol", { class: "cases" }, inOrder(place, only, wanted).map((one) => caseItem(one, only, wanted)));
    dialog.replaceChildren(
      make("div", { class: "sheet" },
        make("header", {}, make("div", {}, make("p", { class: "brow" }, `${clause.section}${level}`), title), close),
        make("p", { class: "statement" }, prose(clause.statement)),
        clause.rationale ? make("p", { class: "why" }, prose(clause.rationale)) : "",
        make("div", { class: "who" }, several ? chooser(place, only) : make("p", {}, summary(place, only))),
        list));
    if (!dialog.open) dialog.showModal(); // when it closes, the focus goes back by itself
    const aim = dialog.querySelector(".wanted");
    if (aim) aim.scrollIntoView({ block: "start" });
    else dialog.scrollTop = 0;
  }

  /** The cases of a clause; for one implementation, those that were tested, failures first. */
  function inOrder(place, only, wanted) {
    if (only < 0) return casesOf[place];
    const order = Object.keys(data.states);
    const rank = (one) => order.indexOf(data.implementations[only].states[one]);
    const tested = casesOf[place].filter((one) => rank(one) < order.length - 1 || one === wanted);
    return tested.sort((one, other) => rank(one) - rank(other) || one - other);
  }

  function count(place, only) {
    const counts = {};
    for (const one of casesOf[place]) {
      const letter = data.implementations[only].states[one];
      counts[letter] = (counts[letter] || 0) + 1;
    }
    return counts;
  }
  function summary(place, only) {
    const counts = count(place, only);
    const parts = Object.keys(data.states).filter((letter) => counts[letter]);
    return parts.map((letter) => `${counts[letter]} ${data.states[letter]}`).join(", ");
  }
  function chooser(place, only) {
    const options = data.implementations.map((one, number) =>
      make("option", { value: one.name, selected: number === only }, `${one.name}: ${summary(place, number)}`));
    const select = make("select", {}, make("option", { value: "" }, `all implementations: ${casesOf[place].length} cases`), options);
    select.addEventListener("change", () => {
      go({ ...read(), in: select.value }, "replaceState", history.state);
      dialog.querySelector("select").focus();
    });
    return make("label", {}, "Implementation", select);
  }

  function caseItem(place, only, wanted) {
    const [id, , title] = data.cases[place];
    const letters = (only < 0 ? data.implementations : [data.implementations[only]]).map((one) => one.states[place]);
    const letter = Object.keys(data.states).find((key) => letters.includes(key)) || "x";
    const broken = letters.filter((one) => BROKEN.includes(one)).length;
    const word = only < 0 && broken ? `${broken} of ${letters.length}: ${data.states[letter]}` : data.states[letter];
    const body = make("details", { class: place === wanted ? "wanted" : undefined },
      make("summary", {}, glyph(letter), make("span", { class: "id" }, id), make("span", { class: `word ${letter}` }, word),
        make("span", { class: "title" }, prose(title))));
    const fill = () => body.children.length < 2 && body.append(...fields(place, only));
    body.addEventListener("toggle", fill);
    if (place === wanted || (only >= 0 && broken)) {
      fill();
      body.open = true;
    }
    return make("li", {}, body);
  }

  function fields(place, only) {
    const [id, , , kind, known] = data.cases[place];
    const list = make("dl", { class: "case" });
    const add = (name, value, code = true) => list.append(make("dt", {}, name), make("dd", {}, code ? make("code", {}, value) : value));
    const one = data.implementations[only];
    const failure = one && one.failures[place];
    const parts = [list];
    if (failure) {
      const [fact, rows, further, bugs] = failure;
      parts.unshift(make("p", { class: "fact" }, fact), rows.length ? evidence(rows) : "");
      likely(bugs, add);
      for (const [label, value] of further) add(label, value);
    } else {
      for (const [label, value] of known) add(label, value);
      if (kind === "property") add("property", "tested on generated examples", false);
      const reason = one && one.reasons.find(([, cases]) => cases.includes(place));
      if (reason) add("skipped", reason[0], false);
    }
    if (one) {
      const inPython = one.command.startsWith("check(");
      add("rerun", inPython ? `${one.command.slice(0, -1)}, case='${id}')` : `${one.command} --bpe-case ${id}`);
      if (kind !== "corpus") add("explain", `bpe-conformance explain ${id}`);
    } else {
      const links = data.implementations.filter((each) => BROKEN.includes(each.states[place])).map((each) =>
        make("a", { href: hash({ ...read(), clause: "", case: id, in: each.name }) }, `${each.name}: ${data.states[each.states[place]]}`));
      if (links.length) add("did not pass", make("ul", { class: "plain" }, links.map((link) => make("li", {}, link))), false);
    }
    return parts.filter(Boolean);
  }

  /** Aligned rows; one without a label points at the first difference in the row above. */
  function evidence(rows) {
    const lines = rows.flatMap(([label, value]) =>
      value.split("\n").map((line, number) =>
        make("span", { class: label ? undefined : "pointer" }, make("i", {}, `${(number ? "" : label).padEnd(10)} `), `${line}\n`)));
    return make("pre", { class: "evidence", tabindex: "0" }, lines);
  }

  function likely(bugs, add) {
    bugs.slice(0, 3).forEach((bug) => {
      const [sentence, fix] = data.bugs[bug] || ["", ""];
      add("likely", make("span", {}, make("code", {}, bug), sentence && [": ", prose(sentence)].flat(), fix && make("span", {}, " ", make("b", {}, "Fix:"), " ", prose(fix))), false);
    });
  }

  function leave() {
    if (history.state && history.state.opened) history.back();
    else go({ ...read(), clause: "", case: "" });
  }
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    leave();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) leave();
  });

  // Links are hashes. Links to details keep the filters, and Close undoes the link that opened the details.

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href*='=']");
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    const target = Object.fromEntries(new URLSearchParams(link.hash.slice(1)));
    if (!target.clause && !target.case) {
      go({ ...read(), ...target });
      about.scrollIntoView();
      return;
    }
    const wanted = { ...read(), clause: "", case: "", ...target };
    if (dialog.open) go(wanted, "replaceState", history.state);
    else {
      link.focus();
      go(wanted, "pushState", { opened: true });
    }
  });
  window.addEventListener("popstate", show);
  window.addEventListener("hashchange", show);

  // The tab key stops once in the table; the arrow keys go from cell to cell.

  const stops = [...table.querySelectorAll("a")];
  stops.forEach((link) => (link.tabIndex = -1));
  const visible = (link) => link && link.offsetParent !== null;
  const MOVES = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  let stop = table.querySelector("tbody a");
  stop.tabIndex = 0;
  table.addEventListener("focusin", ({ target }) => {
    if (target.tagName !== "A") return;
    stop.tabIndex = -1;
    stop = target;
    stop.tabIndex = 0;
  });
  table.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move || event.altKey || event.ctrlKey || event.metaKey) return;
    const cell = event.target.closest("td, th");
    const all = [...table.rows].filter((row) => !row.hidden && !row.parentElement.hidden && !row.classList.contains("section"));
    let [row, place] = [all.indexOf(cell.parentElement), cell.cellIndex];
    for (;;) {
      row += move[0];
      place += move[1];
      const next = all[row] && all[row].cells[place];
      if (!next) return;
      const link = next.querySelector("a");
      if (visible(link)) {
        event.preventDefault();
        link.focus();
        link.scrollIntoView({ block: "nearest", inline: "nearest" });
        return;
      }
    }
  });
  table.addEventListener("pointerover", ({ target }) => {
    const link = target.closest("td > a");
    if (!link || link.title) return;
    const { clause, in: name } = Object.fromEntries(new URLSearchParams(link.hash.slice(1)));
    link.title = `${clause}, ${name}: ${link.getAttribute("aria-label")}`;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || dialog.open || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    form.elements.q.focus();
  });

  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("main details:not([open])")];
    opened.forEach((one) => (one.open = true));
  });
  window.addEventListener("afterprint", () => opened.forEach((one) => (one.open = false)));

  table.dataset.form = table.className;
  form.hidden = false;
  document.body.classList.add("js");
  new ResizeObserver(() => {
    const sticks = getComputedStyle(form).position === "sticky";
    document.documentElement.style.setProperty("--bar", sticks ? `${form.offsetHeight}px` : "0px");
  }).observe(form);
  show();
})();
