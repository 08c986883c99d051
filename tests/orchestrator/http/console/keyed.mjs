// A service with API keys.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { address, close, onPage, search, serious, titles } from "./browser.mjs";

const { CONSOLE_KEY: key, CONSOLE_READER: reader } = process.env;

after(close);

async function enter(page, text) {
  await page.getByLabel("API key", { exact: true }).fill(text);
  await page.getByRole("button", { name: "Use this key" }).click();
}

test("a missing key, a wrong one, and a right one", () => onPage({ allowed: ["401", "403"] }, async (page) => {
  await page.goto(address);
  await page.getByText("The service needs an API key").waitFor();
  assert.deepEqual(await serious(page), []);
  await enter(page, "schlüssel");
  await page.getByText("This cannot be a key").waitFor();
  await enter(page, "wrong");
  await page.getByText("The service does not know this key").waitFor();
  await enter(page, key);
  await page.getByText("Type a query").waitFor();
  await search(page, "film");
  assert.ok((await titles(page)).length);
  const stored = await page.evaluate(() => [location.href, document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.documentElement.outerHTML].join("\n"));
  assert.ok(!stored.includes(key));
  await page.getByText("Use this request elsewhere").click();
  assert.match(await page.locator(".copies").textContent(), /\$API_KEY/);
  await page.reload();
  await page.getByText("The service needs an API key").waitFor();
}));

test("an answer to the key before is not shown", () => onPage({ allowed: ["401", "403"] }, async (page) => {
  await page.goto(address);
  await enter(page, key);
  await page.getByText("Type a query").waitFor();
  let slow;
  await page.route("**/v1/search", async (route) => {
    await new Promise((resolve) => { slow = resolve; });
    return route.continue().catch(() => {});
  });
  await page.fill("#query", "film");
  await page.press("#query", "Enter");
  while (!slow) await page.waitForTimeout(10);
  await page.unroute("**/v1/search");
  await page.getByRole("button", { name: "Change the key" }).click();
  await enter(page, "other");
  await page.getByText("The service does not know this key").waitFor();
  slow();
  await page.waitForLoadState("networkidle");
  assert.equal(await page.locator(".hit").count(), 0);
}));

test("a key that may do less", () => onPage({ allowed: ["401", "403"] }, async (page) => {
  await page.goto(`${address}/#view=status`);
  await page.getByText("The service needs an API key").waitFor();
  await enter(page, reader);
  await page.getByText("More is shown to a key with the role operator").waitFor();
  assert.match(await page.locator(".status").textContent(), /is ready/);
}));
