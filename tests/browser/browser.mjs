// One chromium for a test file, and pages that watch for what must never happen.
import { chromium } from "playwright-core";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";

const ARGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

/** Folder of the pages that scripts/test_browser.sh made. */
export const PAGES = process.env.RESTRIDE_PAGES;
/** Where screenshots go, when someone wants to look at them. */
const SHOTS = process.env.RESTRIDE_SHOTS;

/** Nothing here depends on how fast the machine is: this long a wait only ends a run that hangs. */
const PATIENCE = 600_000;

export const launch = () => chromium.launch({ executablePath: process.env.RESTRIDE_BROWSER, args: ARGS, timeout: PATIENCE });

/** Opens a page of the folder; `page.problems` collects console errors and requests that leave the file. */
export async function open(browser, path, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", acceptDownloads: true, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const url = pathToFileURL(join(PAGES, path)).href;
  page.problems = [];
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) page.problems.push(`console: ${m.text()}`); });
  page.on("pageerror", (e) => page.problems.push(`script: ${e.message}`));
  page.on("dialog", (d) => { page.problems.push(`dialog: ${d.message()}`); d.dismiss(); });
  page.on("request", (r) => {
    const wanted = r.url();
    if (wanted.split("#")[0] !== url && !wanted.startsWith("data:") && !wanted.startsWith("blob:")) page.problems.push(`request: ${wanted}`);
  });
  await page.goto(url);
  return page;
}

/** Whether the page itself scrolls sideways. */
export const sideways = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** Keeps a picture of the whole page. */
export async function shot(page, name) {
  if (!SHOTS) return;
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `${name}.png`), fullPage: true });
}

/** Lets the page handle what an action has set off: events such as `scroll` come with the next frames. */
export const settled = (page) => page.evaluate(() => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
}));

/**
 * Waits until `read()` gives what is wanted: a value, a pattern or a test. A browser acts on input when it comes
 * to it, so what an action does is waited for and never read at once.
 */
export async function becomes(read, wanted) {
  const fits = wanted instanceof RegExp ? (got) => wanted.test(got) : typeof wanted === "function" ? wanted : (got) => isDeepStrictEqual(got, wanted);
  const end = Date.now() + PATIENCE;
  for (;;) {
    const got = await read();
    if (fits(got)) return got;
    if (Date.now() > end) throw new Error(`waited for ${wanted}, got ${JSON.stringify(got)}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}
