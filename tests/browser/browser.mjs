// One chromium for a test file, and pages that watch for what must never happen.
import { chromium } from "playwright-core";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const ARGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

/** Folder of the pages that scripts/test_browser.sh made. */
export const PAGES = process.env.RESTRIDE_PAGES;
/** Where screenshots go, when someone wants to look at them. */
const SHOTS = process.env.RESTRIDE_SHOTS;

export const launch = () => chromium.launch({ executablePath: process.env.RESTRIDE_BROWSER, args: ARGS });

/** Opens a page of the folder; `page.problems` collects console errors and requests that leave the file. */
export async function open(browser, path, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", acceptDownloads: true, ...options });
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
