// A real browser on the console, and what is true of every page: no error, and no request to another origin.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.CONSOLE_TOOLS}/`);
const { chromium } = require("playwright-core");
const axe = require.resolve("axe-core/axe.min.js");
const { readFileSync } = require("node:fs");

export const address = process.env.CONSOLE_ADDRESS;
export const desktop = { width: 1280, height: 900 };
export const phone = { width: 390, height: 844 };

const browser = await chromium.launch({
  executablePath: process.env.CONSOLE_BROWSER,
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
  ],
});

export const close = () => browser.close();

/** Run `use` on a page, then check what was logged and requested. `allowed`: statuses that the test provokes. */
export async function onPage({ viewport = desktop, scheme = "light", allowed = [], base = address }, use) {
  const context = await browser.newContext({ viewport, colorScheme: scheme, permissions: ["clipboard-read", "clipboard-write"] });
  const page = await context.newPage();
  const problems = [];
  const requested = [];
  page.on("pageerror", (error) => problems.push(`error: ${error.stack}`));
  page.on("dialog", (dialog) => { problems.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("console", (message) => {
    const isExpected = allowed.some((status) => message.text().includes(`status of ${status}`) || message.text().includes(status));
    if (["error", "warning"].includes(message.type()) && !isExpected) problems.push(`${message.type()}: ${message.text()}`);
  });
  page.on("request", (request) => requested.push(request.url()));
  try {
    await use(page, context);
    assert.deepEqual(problems, []);
    assert.deepEqual(requested.filter((url) => !url.startsWith(`${base}/`)), []);
  } finally {
    await context.close();
  }
  return requested;
}

export async function search(page, query) {
  await page.fill("#query", query);
  await page.press("#query", "Enter");
  await page.waitForSelector(".hit");
}

export const titles = (page) => page.$$eval(".hit h2", (all) => all.map((each) => each.textContent.trim()));

/** What axe-core finds to be serious, or worse. */
export async function serious(page) {
  await page.evaluate(readFileSync(axe, "utf8"));
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  return violations
    .filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html.slice(0, 200)} ${node.failureSummary}`).join("; ")}`);
}
