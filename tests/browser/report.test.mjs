// The report page in a real browser: of recorded machines with and without counters, of data that tempts a
// page into NaN, of hostile names, of several records, and of this machine.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { PAGES, becomes, launch, open, settled, shot, sideways } from "./browser.mjs";

const SECTIONS = ["summary", "machine", "walks", "mountain", "copies", "tiles", "peers", "change", "views", "raw"];
const REPORTS = readdirSync(PAGES, { withFileTypes: true }).filter((d) => d.isDirectory()).map((d) => d.name);

let browser;
before(async () => { browser = await launch(); });
after(async () => { await browser?.close(); });

test("there is a page of every kind of record", () => {
  for (const name of ["counters", "no-counters", "hostile", "several", "change"]) assert.ok(REPORTS.includes(name), name);
});

for (const name of REPORTS) describe(`report ${name}`, () => {
  const path = join(name, "report.html");

  for (const [device, width] of [["desktop", 1280], ["phone", 390]]) for (const colorScheme of ["light", "dark"]) {
    test(`${device}, ${colorScheme}: quiet, complete, no sideways scrolling`, async () => {
      const page = await open(browser, path, { viewport: { width, height: 850 }, colorScheme });
      for (const id of SECTIONS) {
        assert.equal(await page.locator(`section#${id}`).count(), 1, id);
        assert.ok((await page.locator(`section#${id} h2`).innerText()).length > 0, id);
        assert.ok((await page.locator(`section#${id}`).innerText()).length > 40, `${id} says something`);
      }
      assert.equal(await sideways(page), 0, "no sideways scrolling");
      assert.doesNotMatch(await page.locator("main").innerText(), /NaN|\bInfinity\b|undefined|\[object/);
      const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number));
      assert.equal(ground[0] < 80, colorScheme === "dark");
      // What cannot be seen is not in the way: exactly one form of each chart is shown.
      for (const chart of await page.locator("figure:has(svg.chart)").all()) {
        assert.equal(await chart.locator("svg.chart:visible").count(), 1);
      }
      await shot(page, `${name}-${device}-${colorScheme}`);
      assert.deepEqual(page.problems, []);
      await page.context().close();
    });
  }

  test("readable without JavaScript", async () => {
    const page = await open(browser, path, { javaScriptEnabled: false, viewport: { width: 390, height: 850 } });
    for (const id of SECTIONS) assert.ok(await page.locator(`section#${id} h2`).isVisible(), id);
    assert.equal(await page.locator(".js:visible").count(), 0, "no controls without effect");
    const charts = await page.locator("figure").count();
    assert.equal(await page.locator("figure details.data").count(), charts, "numbers under every chart");
    await page.locator("figure details.data summary").first().click();
    await page.locator("figure details.data table").first().waitFor({ state: "visible" });
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });

  test("downloads equal the record", async () => {
    const page = await open(browser, path);
    const records = readdirSync(join(PAGES, name)).filter((f) => /^record.*\.json$/.test(f)).sort();
    const tables = readdirSync(join(PAGES, name)).filter((f) => /^cases.*\.csv$/.test(f)).sort();
    for (const [i, file] of records.entries()) {
      const fetch = async (kind) => {
        const [download] = await Promise.all([
          page.waitForEvent("download"), page.locator(`[data-download=${kind}][data-record="${i}"]`).click(),
        ]);
        return readFileSync(await download.path(), "utf8");
      };
      assert.deepEqual(JSON.parse(await fetch("json")), JSON.parse(readFileSync(join(PAGES, name, file), "utf8")));
      assert.equal(await fetch("csv"), readFileSync(join(PAGES, name, tables[i]), "utf8"));
    }
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });

  test("every chart has a name, a description and a keyboard", async () => {
    const page = await open(browser, path);
    for (const chart of await page.locator("svg.chart:visible").all()) {
      const names = await chart.evaluate((svg) => svg.getAttribute("aria-labelledby").split(" ").map((id) => document.getElementById(id)?.textContent));
      assert.equal(names.length, 2);
      for (const n of names) assert.ok(n && n.length > 5);
      assert.equal(await chart.getAttribute("tabindex"), "0");
    }
    const ids = await page.evaluate(() => [...document.querySelectorAll("[id]")].map((e) => e.id));
    assert.equal(new Set(ids).size, ids.length, "ids are unique");
    await page.context().close();
  });
});

describe("what the script adds", () => {
  let page;
  before(async () => { page = await open(browser, join("counters", "report.html")); });
  after(async () => { assert.deepEqual(page.problems, []); await page.context().close(); });
  const tip = () => page.locator("#tip");
  const told = () => tip().evaluate((e) => (e.hidden ? "" : e.textContent));
  /** The mouse where no chart is, and no tooltip left from before. */
  const away = async () => {
    await page.mouse.move(5, 5);
    await page.evaluate(() => document.activeElement?.blur());
    await becomes(told, "");
  };
  /** Puts the mouse beside a mark that stands still in view. */
  const beside = async (mark) => {
    await mark.scrollIntoViewIfNeeded();
    await settled(page);
    const box = await mark.boundingBox();
    await page.mouse.move(box.x + box.width / 2 + 4, box.y + box.height / 2 + 3);
  };

  test("a tooltip by mouse names the nearest point", async () => {
    await away();
    await beside(page.locator("#walk-times svg.wide .series.s1 .pt").nth(5));
    await becomes(told, /^transposed: [\d.]+ ns at \d+ KiB/);
    await page.mouse.move(5, 5);
    await becomes(told, "");
  });

  test("a tooltip goes with a scroll, and not with a scroll event that came late", async () => {
    await away();
    await beside(page.locator("#walk-times svg.wide .series.s1 .pt").nth(5));
    const text = await becomes(told, /^transposed/);
    await page.evaluate(() => dispatchEvent(new Event("scroll")));
    assert.equal(await told(), text);
    await page.evaluate(() => scrollBy(0, 40));
    await becomes(told, "");
  });

  test("a tooltip by keyboard walks along and between series", async () => {
    await away();
    await page.locator("#walk-times svg.wide").focus();
    await page.keyboard.press("ArrowRight");
    const first = await becomes(told, /^row-major/);
    await page.keyboard.press("ArrowRight");
    await becomes(told, (text) => text !== first);
    await page.keyboard.press("ArrowDown");
    await becomes(told, /^transposed/);
    await page.keyboard.press("End");
    await becomes(told, /^chase/);
    await page.keyboard.press("Escape");
    await becomes(told, "");
  });

  test("bars and heat maps have tooltips too", async () => {
    await away();
    await page.locator(".bars .bar").first().hover();
    await becomes(told, /of memcpy/);
    await page.locator("#tiles-0 svg.wide .cell").first().hover();
    await becomes(told, /GB\/s/);
    // The mouse rests on one chart while the keyboard walks through another, which scrolls the page.
    await page.locator("#mountain-0 svg.wide").focus();
    await page.keyboard.press("ArrowRight");
    const text = await becomes(told, /ns per element/);
    await settled(page);
    assert.equal(await told(), text);
  });

  test("a tap shows a tooltip that stays until the next tap elsewhere", async () => {
    const phone = await open(browser, join("counters", "report.html"), { viewport: { width: 390, height: 850 }, hasTouch: true });
    const text = () => phone.locator("#tip").evaluate((e) => (e.hidden ? "" : e.textContent));
    await phone.locator("#tiles-0 svg.chart:visible .cell").first().tap();
    await becomes(text, /GB\/s/);
    await settled(phone);
    assert.match(await text(), /GB\/s/);
    await phone.locator("#tiles h2").tap();
    await becomes(text, "");
    await phone.context().close();
  });

  test("a series can be switched off and on", async () => {
    await away();
    const key = page.locator('#walk-times .legend [data-key="1"] button');
    const series = page.locator('#walk-times svg.wide [data-series="1"]');
    await key.click();
    await becomes(() => key.getAttribute("aria-pressed"), "false");
    await series.waitFor({ state: "hidden" });
    await key.click();
    await series.waitFor({ state: "visible" });
  });

  test("sorting by number, both ways", async () => {
    const table = page.locator("#copies-rows-0");
    const head = table.locator("thead th", { hasText: "of memcpy" });
    const values = () => table.locator("tbody tr td:nth-child(5)").evaluateAll((all) => all.map((c) => Number(c.dataset.v)));
    const order = () => head.getAttribute("aria-sort");
    await head.locator("button").click();
    await becomes(order, "ascending");
    let got = await values();
    assert.deepEqual(got, [...got].sort((a, b) => a - b));
    await head.locator("button").click();
    await becomes(order, "descending");
    got = await values();
    assert.deepEqual(got, [...got].sort((a, b) => b - a));
    assert.ok(new Set(got).size > 5);
  });

  test("filter by word and group", async () => {
    const tools = page.locator('[data-filter="copies-rows-0"]');
    const rows = () => page.locator("#copies-rows-0 tbody tr:visible").count();
    const all = await rows();
    await tools.locator("select").selectOption("slices");
    await becomes(rows, 4);
    await tools.locator("input").fill("revers rows");
    await becomes(rows, 1);
    await becomes(() => tools.locator(".shown").innerText(), `1 of ${all} cases`);
    await tools.locator("input").fill("");
    await tools.locator("select").selectOption("");
    await becomes(rows, all);
  });

  test("the theme can be chosen and stays chosen", async () => {
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    await page.locator("#theme").click();
    const dark = await becomes(ground, (now) => now !== light);
    await page.reload();
    await becomes(ground, dark);
    await page.locator("#theme").click();
    await becomes(ground, light);
  });
});

test("counters and the model are told apart", async () => {
  const page = await open(browser, join("counters", "report.html"));
  const misses = page.locator("#walk-misses .legend");
  assert.match(await misses.innerText(), /model L1d/);
  assert.match(await misses.innerText(), /measured l1d-misses/);
  assert.match(await page.locator("#machine").innerText(), /SuspectZero[\s\S]*stayed at 0/);
  await page.context().close();
  const without = await open(browser, join("no-counters", "report.html"));
  assert.doesNotMatch(await without.locator("#walk-misses .legend").innerText(), /measured/);
  assert.match(await without.locator("#summary").innerText(), /No hardware counters[\s\S]*NoPmu/);
  await without.context().close();
});

test("several records stand side by side in every chart of walks", async () => {
  const page = await open(browser, join("several", "report.html"));
  for (const name of ["Synthetic Octacore", "Synthetic Server"]) {
    assert.match(await page.locator("#walk-times-column .legend").innerText(), new RegExp(name));
  }
  await page.context().close();
});

test("a change names what is slower, faster, and nothing else", async () => {
  const page = await open(browser, join("change", "report.html"));
  const text = await page.locator("#change").innerText();
  assert.match(text, /slower and \d+ faster beyond the noise/);
  assert.ok(await page.locator("#change .bar.worse").count() >= 1);
  assert.ok(await page.locator("#change .bar.better").count() >= 3);
  await page.context().close();
});

test("hostile names are text and nothing else", async () => {
  const page = await open(browser, join("hostile", "report.html"));
  assert.match(await page.locator("h1").innerText(), /<\/script><script>alert\(1\)<\/script>/);
  assert.equal(await page.locator("main b, main img, main script:not([type='application/json'])").count(), 0);
  assert.equal(await page.locator("#copies-rows-0 tbody th", { hasText: "🧊" }).count(), 1);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
