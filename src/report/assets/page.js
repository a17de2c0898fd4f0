// The page works without this script: it adds tooltips, sorting, filters, switches and downloads.
(() => {
  "use strict";
  const $ = (s, e = document) => e.querySelector(s);
  const $$ = (s, e = document) => [...e.querySelectorAll(s)];
  const root = document.documentElement;
  root.classList.add("has-js");

  // Theme: system, then whatever was chosen.
  const theme = $("#theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const shown = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  const paint = () => { if (theme) theme.textContent = shown() === "dark" ? "Light" : "Dark"; };
  try { const kept = localStorage.getItem("restride-theme"); if (kept === "dark" || kept === "light") root.dataset.theme = kept; } catch { /* no storage here */ }
  theme?.addEventListener("click", () => {
    root.dataset.theme = shown() === "dark" ? "light" : "dark";
    try { localStorage.setItem("restride-theme", root.dataset.theme); } catch { /* no storage here */ }
    paint();
  });
  dark.addEventListener("change", paint);
  paint();

  // Which section is in view.
  const links = new Map($$(".top nav a").map((a) => [a.hash.slice(1), a]));
  const watch = new IntersectionObserver((all) => {
    for (const e of all) if (e.isIntersecting && links.has(e.target.id)) {
      for (const a of links.values()) a.removeAttribute("aria-current");
      links.get(e.target.id).setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  $$("main > section").forEach((s) => watch.observe(s));

  // One tooltip for the page. Titles of points move into it, so that they do not show twice.
  const tip = $("#tip");
  const text = new WeakMap();
  for (const p of $$(".pt")) {
    const title = $("title", p);
    text.set(p, title ? title.textContent : p.dataset.tip);
    title?.remove();
  }
  let lit = null, shownAt = 0;
  const hide = () => { lit?.classList.remove("on"); lit = null; if (tip) tip.hidden = true; };
  const show = (p) => {
    if (p === lit) return;
    lit?.classList.remove("on");
    lit = p;
    p.classList.add("on");
    tip.textContent = text.get(p) || "";
    tip.hidden = false;
    shownAt = scrollY;
    const bar = p.matches(".bar");
    const r = (bar ? $("svg", p) : p).getBoundingClientRect();
    const box = tip.getBoundingClientRect();
    const width = root.clientWidth;
    const x = Math.min(Math.max(r.left + r.width / 2 - box.width / 2, 8), width - box.width - 8);
    const above = r.top - box.height - 10;
    tip.style.left = `${x + scrollX}px`;
    tip.style.top = `${(above > 50 ? above : r.bottom + 10) + scrollY}px`;
  };
  const visible = (chart) => $$(".pt", chart).filter((p) => !p.closest(".off") && p.getClientRects().length);
  // A page that scrolls or grows under a resting mouse makes pointer events too: only a mouse that moved counts.
  let mouse = "";
  addEventListener("pointermove", (e) => { mouse = `${e.clientX} ${e.clientY}`; });
  root.addEventListener("pointerleave", (e) => { if (e.pointerType === "mouse") hide(); });
  const rests = (e) => e.pointerType === "mouse" && mouse === `${e.clientX} ${e.clientY}`;
  const middle = (p) => { const r = p.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; };
  for (const chart of $$("[data-chart]")) {
    const points = chart.matches("svg") && $("use.pt", chart);
    const point = (e) => {
      if (rests(e)) return;
      const under = e.target.closest(".pt");
      if (under) return show(under);
      if (!points) return hide();
      let best = null, least = 34 * 34;
      for (const p of visible(chart)) {
        const [x, y] = middle(p), d = (x - e.clientX) ** 2 + (y - e.clientY) ** 2;
        if (d < least) { least = d; best = p; }
      }
      if (best) show(best); else hide();
    };
    chart.addEventListener("pointermove", point);
    // A tap shows and stays: a finger that was lifted has left the chart, but not the reader.
    chart.addEventListener("pointerdown", (e) => { if (e.pointerType !== "mouse") point(e); });
    chart.addEventListener("pointerleave", (e) => { if (e.pointerType === "mouse" && !rests(e) && chart.contains(lit)) hide(); });
    chart.addEventListener("blur", hide);
    chart.addEventListener("keydown", (e) => {
      if (e.key === "Escape") return hide();
      const across = { ArrowRight: 1, ArrowLeft: -1 }[e.key], along = { ArrowDown: 1, ArrowUp: -1 }[e.key];
      const ends = { Home: 0, End: -1 }[e.key];
      if (across === undefined && along === undefined && ends === undefined) return;
      const all = visible(chart);
      if (!all.length) return;
      e.preventDefault();
      const at = all.indexOf(lit);
      if (at < 0) return show(all[0]);
      if (ends !== undefined) return show(all.at(ends));
      const list = chart.matches("svg") ? along : undefined;
      if (list === undefined) return show(all[Math.min(Math.max(at + (across ?? along), 0), all.length - 1)]);
      // Up and down: the nearest point of the next series.
      const groups = $$("[data-series]", chart).filter((g) => !g.matches(".off") && $(".pt", g));
      const next = groups[groups.indexOf(lit.closest("[data-series]")) + along];
      if (!next) return;
      const x = middle(lit)[0];
      show($$(".pt", next).reduce((a, b) => (Math.abs(middle(a)[0] - x) <= Math.abs(middle(b)[0] - x) ? a : b)));
    });
  }
  // A scroll event comes a frame late: one from before the tooltip was shown finds the page where it was.
  addEventListener("scroll", () => { if (lit && scrollY !== shownAt && !lit.closest("[data-chart]").matches(":focus")) hide(); }, { passive: true });

  // Series on and off.
  for (const legend of $$(".legend[data-for]")) {
    const figure = legend.closest("figure");
    for (const item of $$("[data-key]", legend)) {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...item.childNodes);
      item.append(button);
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(on));
        for (const g of $$(`[data-series="${item.dataset.key}"]`, figure)) g.classList.toggle("off", !on);
        hide();
      });
    }
  }

  // Sorting: by data-v where there is one, else by the text.
  for (const table of $$("table.sortable")) {
    const heads = $$("thead th", table), body = $("tbody", table);
    heads.forEach((th, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...th.childNodes);
      th.append(button);
      button.addEventListener("click", () => {
        const down = th.getAttribute("aria-sort") === "ascending";
        heads.forEach((h) => h.removeAttribute("aria-sort"));
        th.setAttribute("aria-sort", down ? "descending" : "ascending");
        const keyed = [...body.rows].map((row) => {
          const cell = row.cells[column];
          return [cell.dataset.v === undefined ? NaN : Number(cell.dataset.v), cell.textContent, row];
        });
        const numeric = keyed.some(([v]) => !Number.isNaN(v));
        keyed.sort(([a, s], [b, t]) => {
          if (!numeric) return (down ? -1 : 1) * s.localeCompare(t, "en", { numeric: true });
          if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
          return down ? b - a : a - b;
        });
        body.append(...keyed.map(([, , row]) => row));
      });
    });
  }

  // Filters.
  for (const tools of $$("[data-filter]")) {
    const rows = $$("tbody tr", document.getElementById(tools.dataset.filter));
    const word = $("input", tools), group = $("select", tools), said = $(".shown", tools);
    const apply = () => {
      const words = word.value.toLowerCase().split(/\s+/).filter(Boolean);
      let n = 0;
      for (const row of rows) {
        const content = row.textContent.toLowerCase();
        row.hidden = !((!group.value || row.dataset.group === group.value) && words.every((w) => content.includes(w)));
        n += !row.hidden;
      }
      said.textContent = n === rows.length ? `${n} cases` : `${n} of ${rows.length} cases`;
    };
    word.addEventListener("input", apply);
    group.addEventListener("change", apply);
    apply();
  }

  // Downloads of what the page carries. One address a button, kept: nobody can say when the browser has read it.
  for (const b of $$("[data-download]")) {
    const i = b.dataset.record;
    const link = document.createElement("a");
    const offer = (name, type, content) => Object.assign(link, { href: URL.createObjectURL(new Blob([content], { type })), download: name });
    b.addEventListener("click", () => {
      if (!link.href && b.dataset.download === "json") offer("record.json", "application/json", $(`#record-${i}`).textContent);
      else if (!link.href) offer("cases.csv", "text/csv", JSON.parse($(`#cases-${i}`).textContent));
      link.click();
    });
  }

  // Explorer: every number below was computed by the library and stands in the page.
  for (const view of $$(".view")) {
    const data = JSON.parse($(".view-data", view).textContent);
    const logical = new Map($$("[data-k]", view).map((c) => [Number(c.dataset.k), c]));
    const memory = new Map($$("[data-m]", view).map((c) => [Number(c.dataset.m), c]));
    const bands = new Map($$("[data-line]", view).map((c) => [Number(c.dataset.line), c]));
    const formula = $(".formula", view), pos = $(".pos", view), play = $("[data-step=play]", view), grid = $("[data-grid]", view);
    const idle = formula?.textContent;
    let k = -1, timer = 0, marked = [];
    const mark = (e, c) => { if (e) { e.classList.add(c); marked.push([e, c]); } };
    const clear = () => { for (const [e, c] of marked) e.classList.remove(c); marked = []; };
    const go = (next) => {
      clear();
      k = next;
      const m = data.index[k];
      mark(logical.get(k), "on");
      if (m !== null) { mark(memory.get(m), "on"); mark(bands.get(data.line[k]), "on"); }
      formula.textContent = data.formula[k];
      pos.textContent = `${k + 1} of ${data.index.length}`;
    };
    const stop = () => { clearInterval(timer); timer = 0; play.textContent = "▶ Play"; play.setAttribute("aria-pressed", "false"); };
    const end = data.index.length - 1;
    const step = (by) => { stop(); go(Math.min(Math.max(k + by, 0), end)); };
    const start = () => {
      if (k >= end) k = -1;
      play.textContent = "❚❚ Pause";
      play.setAttribute("aria-pressed", "true");
      go(k + 1);
      timer = setInterval(() => (k >= end ? stop() : go(k + 1)), Math.max(60, Math.min(380, 9000 / (end + 1))));
    };
    if (end < 0 || !formula) continue;
    view.addEventListener("pointerover", (e) => {
      const cell = e.target.closest("[data-k],[data-m]");
      if (!cell || timer || rests(e)) return;
      if (cell.dataset.k !== undefined) return go(Number(cell.dataset.k));
      // A memory cell: all positions that read it.
      clear();
      const m = Number(cell.dataset.m), readers = [];
      data.index.forEach((v, i) => { if (v === m) { readers.push(i); mark(logical.get(i), "near"); } });
      mark(cell, "on");
      formula.textContent = readers.length
        ? `buffer[${m}] is read ${readers.length === 1 ? "once" : `${readers.length} times`}: ${readers.slice(0, 6).map((i) => data.at[i]).join(", ")}${readers.length > 6 ? ", …" : ""}`
        : `buffer[${m}] is never read by this view`;
    });
    view.addEventListener("click", (e) => {
      const cell = e.target.closest("[data-k]");
      if (cell) { stop(); go(Number(cell.dataset.k)); }
      const way = e.target.closest("[data-step]")?.dataset.step;
      if (way === "play") return timer ? stop() : start();
      if (way) step({ first: -1e9, back: -1, next: 1, last: 1e9 }[way]);
    });
    grid.addEventListener("keydown", (e) => {
      const columns = data.columns;
      const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, Home: -1e9, End: 1e9 }[e.key];
      if (by !== undefined) { e.preventDefault(); if (k < 0) { stop(); go(0); } else if (Math.abs(by) > 1e8 || (k + by >= 0 && k + by <= end)) step(by); }
      if (e.key === " ") { e.preventDefault(); timer ? stop() : start(); }
      if (e.key === "Escape") { stop(); clear(); k = -1; formula.textContent = idle; pos.textContent = ""; }
    });
  }
})();
