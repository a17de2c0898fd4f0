// The explorer in a real browser. The expected numbers come from `explain --json` (the library), not from the page.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { becomes, launch, open, settled, shot, sideways } from "./browser.mjs";

let browser;
before(async () => { browser = await launch(); });
after(async () => { await browser?.close(); });

const VIEWS = ["contiguous", "reshape", "transpose", "slice with step", "shrink", "broadcast", "pad", "reverse", "sliding window", "diagonal", "3-D permute"];

/** Shape, strides and offset of an expression on (3, 4), as the library says; offset is null when padded. */
function library(expr) {
  const out = execFileSync(process.env.RESTRIDE_BIN, ["explain", "--shape", "3,4", "--json", expr], { encoding: "utf8" });
  return JSON.parse(out);
}

/** All positions of a shape in row-major order. */
function positions(shape) {
  return shape.reduce((all, n) => all.flatMap((at) => Array.from({ length: n }, (_, i) => [...at, i])), [[]]);
}

test("all default views are there, in both themes and at both sizes", async () => {
  for (const width of [1280, 390]) for (const colorScheme of ["light", "dark"]) {
    const page = await open(browser, "explore.html", { viewport: { width, height: 850 }, colorScheme });
    assert.deepEqual(await page.locator(".view h3").allInnerTexts(), VIEWS);
    assert.equal(await sideways(page), 0);
    await shot(page, `explore-${width}-${colorScheme}`);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});

test("hovering [1, 2] of the row-major view lights up buffer cell 6 and its line", async () => {
  const page = await open(browser, "explore.html");
  const view = page.locator(".view").first();
  const formula = () => view.locator(".formula").innerText();
  await view.locator('[data-k="6"]').hover();
  await becomes(formula, /^\[1, 2\] → 0 \+ 1·4 \+ 2·1 = 6 · buffer\[6\] at byte 24, line 1$/);
  assert.deepEqual(await view.locator("[data-m].on").evaluateAll((all) => all.map((c) => c.dataset.m)), ["6"]);
  assert.deepEqual(await view.locator("[data-line].on").evaluateAll((all) => all.map((c) => c.dataset.line)), ["1"]);
  // The other way round: a memory cell shows who reads it.
  await view.locator('[data-m="9"]').hover();
  await becomes(formula, /^buffer\[9\] is read once: \[2, 1\]$/);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

describe("every default view, stepped through by keyboard, agrees with the library", () => {
  for (const [number, name] of VIEWS.entries()) test(name, async () => {
    const page = await open(browser, "explore.html");
    const view = page.locator(".view").nth(number);
    const code = view.locator("header code");
    const expr = (await code.innerText()).replace(/^x/, "");
    const layout = library(expr);
    const facts = Object.fromEntries(await view.locator("dl.facts > div").evaluateAll((all) => all.map((d) => [d.querySelector("dt").textContent, d.querySelector("dd").textContent])));
    assert.equal(facts.shape, `[${layout.shape.join(", ")}]`);
    assert.equal(facts.strides, `[${layout.strides.join(", ")}]`);
    assert.equal(facts.contiguous.startsWith("yes"), layout.contiguous);
    assert.equal(facts.writable.startsWith("yes"), layout.writable);
    if (!layout.padded) assert.equal(facts.offset, String(layout.offset));

    const seen = new Map();
    await view.locator("[data-grid]").focus();
    for (const [k, at] of positions(layout.shape).entries()) {
      await page.keyboard.press("ArrowRight");
      await becomes(() => view.locator(".pos").textContent(), (pos) => pos.startsWith(`${k + 1} of `));
      const on = await view.evaluate((v) => ({
        k: [...v.querySelectorAll("[data-k].on")].map((c) => Number(c.dataset.k)),
        m: [...v.querySelectorAll("[data-m].on")].map((c) => Number(c.dataset.m)),
        line: [...v.querySelectorAll("[data-line].on")].map((c) => Number(c.dataset.line)),
        text: v.querySelector(".formula").textContent,
      }));
      assert.deepEqual(on.k, [k]);
      assert.ok(on.text.startsWith(`[${at.join(", ")}] `), on.text);
      if (name === "pad") {
        // Inside the border stands the array itself.
        const [i, j] = [at[0] - 1, at[1] - 1];
        const inside = i >= 0 && i < 3 && j >= 0 && j < 4;
        assert.deepEqual(on.m, inside ? [4 * i + j] : []);
        if (!inside) assert.match(on.text, /fill value 0 and touches no memory/);
      } else {
        const index = at.reduce((sum, i, axis) => sum + i * layout.strides[axis], layout.offset);
        assert.deepEqual(on.m, [index]);
        assert.deepEqual(on.line, [Math.floor(index / 4)]);
        seen.set(index, (seen.get(index) ?? 0) + 1);
      }
    }
    if (name !== "pad") {
      const never = await view.locator("[data-m].never").evaluateAll((all) => all.map((c) => Number(c.dataset.m)));
      assert.deepEqual(never, Array.from({ length: 12 }, (_, m) => m).filter((m) => !seen.has(m)));
      const many = await view.locator("[data-m]:has(.mult)").evaluateAll((all) => all.map((c) => [Number(c.dataset.m), c.querySelector(".mult").textContent]));
      assert.deepEqual(many, [...seen].filter(([, n]) => n > 1).sort((a, b) => a[0] - b[0]).map(([m, n]) => [m, `×${n}`]));
      assert.ok(facts["lines touched"].startsWith(`${layout.lines?.touched ?? new Set([...seen.keys()].map((m) => m >> 2)).size} of 3`) || layout.lines?.line_bytes !== 16);
    }
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
});

test("tapping, buttons and play", async () => {
  const page = await open(browser, "explore.html", { viewport: { width: 390, height: 850 }, hasTouch: true });
  const view = page.locator(".view").nth(2);
  const pos = () => view.locator(".pos").innerText();
  await view.locator('[data-k="4"]').tap();
  await becomes(() => view.locator(".formula").innerText(), /^\[1, 1\] → .* = 5 /);
  await becomes(pos, "5 of 12");
  await view.locator('[data-step="next"]').tap();
  await becomes(pos, "6 of 12");
  await view.locator('[data-step="first"]').tap();
  await becomes(pos, "1 of 12");
  await view.locator('[data-step="play"]').tap();
  await becomes(pos, "12 of 12");
  await becomes(() => view.locator("[data-step=play]").getAttribute("aria-pressed"), "false");
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("a page that moves under a resting mouse changes nothing", async () => {
  const page = await open(browser, "explore.html");
  const view = page.locator(".view").first();
  const formula = () => view.locator(".formula").innerText();
  await view.locator('[data-k="6"]').hover();
  const before = await becomes(formula, /^\[1, 2\]/);
  await page.evaluate(() => scrollBy(0, 30));
  await settled(page);
  assert.equal(await formula(), before);
  await page.context().close();
});

test("without JavaScript the drawings and their numbers stay", async () => {
  const page = await open(browser, "explore.html", { javaScriptEnabled: false });
  const view = page.locator(".view").nth(2);
  assert.equal(await view.locator("[data-k] > text").nth(1).textContent(), "4");
  assert.match(await view.locator(".formula").innerText(), /buffer index = 0 \+ i₀·1 \+ i₁·4/);
  assert.equal(await page.locator(".js:visible").count(), 0);
  assert.match(await view.locator('[data-k="1"] title').textContent(), /\[0, 1\] reads buffer\[4\]/);
  await page.context().close();
});

test("a view of thousands of cells answers at once", async () => {
  const page = await open(browser, "large.html");
  const view = page.locator(".view").first();
  assert.equal(await view.locator("[data-k]").count(), 4096);
  await view.locator('[data-k="65"]').hover();
  await becomes(() => view.locator(".formula").innerText(), /^\[1, 1\] /);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
