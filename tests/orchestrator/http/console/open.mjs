// A service without keys, with a small corpus.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, test } from "node:test";
import { address, close, desktop, onPage, phone, search, serious, titles } from "./browser.mjs";

const MAX_WEIGHT_BYTES = 120_000;
const MAX_FIRST_SEARCH_MS = 500;
const QUERY = "films by Christopher Nolan";

after(close);

test("search: hits with their reasons", () => onPage({}, async (page) => {
  await page.goto(address);
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "query");
  await search(page, QUERY);
  assert.ok((await titles(page)).includes("The Prestige"));
  const hit = page.locator(".hit", { has: page.getByRole("heading", { name: "The Prestige" }) });
  assert.match(await hit.locator("mark").first().textContent(), /film|Nolan|Christopher/i);
  assert.match(await hit.locator(".bar").getAttribute("aria-label"), /vector [\d.]+, graph [\d.]+, keyword [\d.]+/);
  await hit.getByText("Why is it here?").click();
  const reasons = await hit.locator(".more li").allTextContents();
  assert.ok(reasons.some((each) => /^Keyword search ranks it \d+(st|nd|rd|th) of \d+ documents/.test(each)), reasons.join("\n"));
  assert.match(await page.locator(".summary").textContent(), /Searched: vector search, the graph, keyword search/);
  await page.getByText("How it was computed").click();
  assert.ok((await page.locator(".waterfall tr").count()) >= 5);
  assert.match(await page.locator(".how").textContent(), /The profile is joint/);
}));

test("the page is light, and the first search appears at once", async () => {
  const sizes = [];
  await onPage({}, async (page) => {
    page.on("response", async (response) => sizes.push((await response.body().catch(() => "")).length));
    await page.goto(address, { waitUntil: "networkidle" });
    const weight = sizes.reduce((sum, each) => sum + each, 0);
    assert.ok(weight < MAX_WEIGHT_BYTES, `${weight} bytes`);
    await page.fill("#query", "heist");
    const ms = await page.evaluate(() => new Promise((resolve) => {
      const start = performance.now();
      const observer = new MutationObserver(() => {
        if (!document.querySelector(".hit")) return;
        observer.disconnect();
        requestAnimationFrame(() => resolve(performance.now() - start));
      });
      observer.observe(document.getElementById("app"), { childList: true, subtree: true });
      document.querySelector(".query").requestSubmit();
    }));
    console.log(`page ${weight} bytes, first search after ${Math.round(ms)} ms`);
    assert.ok(ms < MAX_FIRST_SEARCH_MS, `${ms} ms`);
  });
});

test("weights: the order changes, and what moved is marked", () => onPage({}, async (page) => {
  await page.goto(address);
  await search(page, "a film about sleeping");
  const before = await titles(page);
  const set = async (source, value) => {
    await page.locator(`input[aria-label="weight of ${source}"]`).evaluate((input, text) => {
      input.value = text;
      input.dispatchEvent(new Event("input", { bubbles: true }));
    }, value);
  };
  await set("vector", "3");
  await set("keyword", "0");
  await page.waitForFunction((first) => [...document.querySelectorAll(".hit h2")].map((each) => each.textContent.trim()).join() !== first, before.join());
  assert.notDeepEqual(await titles(page), before);
  assert.ok((await page.locator(".moved").count()) > 0);
  assert.match(page.url(), /a\.weight=keyword%3A0/);
  await page.getByText("Reset weights").click();
  await page.waitForFunction((first) => [...document.querySelectorAll(".hit h2")].map((each) => each.textContent.trim()).join() === first, before.join());
}));

test("filters: fields and values of the service", () => onPage({}, async (page) => {
  await page.goto(address);
  await search(page, "film");
  await page.getByRole("button", { name: "Add a condition" }).click();
  const row = page.getByRole("group", { name: "condition 1" });
  await row.getByLabel("Field", { exact: true }).fill("metadata.year");
  await row.getByLabel("Field", { exact: true }).press("Tab");
  await row.getByLabel("Test", { exact: true }).selectOption("is at least");
  assert.ok((await row.locator("datalist option").count()) > 2);
  await row.getByLabel("Value", { exact: true }).fill("2010");
  await row.getByLabel("Value", { exact: true }).press("Tab");
  await page.waitForFunction(() => document.querySelectorAll(".hit").length === 2);
  assert.deepEqual((await titles(page)).sort(), ["Inception", "Interstellar"]);
  await row.getByLabel("Value", { exact: true }).fill("2999");
  await row.getByLabel("Value", { exact: true }).press("Tab");
  await page.getByText("Nothing was found").waitFor();
  await page.getByRole("button", { name: "Search without the filter" }).click();
  await page.waitForSelector(".hit");
}));

test("values have the types of the documents, also in links and where no document is known", () => onPage({}, async (page) => {
  await page.goto(`${address}/#q=film&filter=${encodeURIComponent('["metadata.year","is not",2010]')}`);
  await page.waitForSelector(".hit");
  assert.ok(!(await titles(page)).includes("Inception"));
  await page.goto(`${address}/#q=film`);
  await page.waitForSelector(".hit");
  await page.getByRole("button", { name: "Add a condition" }).click();
  const row = page.getByRole("group", { name: "condition 1" });
  await row.getByLabel("Field", { exact: true }).fill("importance");
  await row.getByLabel("Field", { exact: true }).press("Tab");
  await row.getByLabel("Test", { exact: true }).selectOption("is at least");
  await row.getByLabel("Value", { exact: true }).fill("0.5");
  await row.getByLabel("Value", { exact: true }).press("Tab");
  await page.getByText("Nothing was found").waitFor();
  await page.goto(`${address}/#q=film`);
  await page.waitForSelector(".hit");
  await page.locator(".hit").first().getByRole("button", { name: "film", exact: true }).click();
  await page.waitForFunction(() => document.querySelectorAll(".hit").length === 4);
}));

test("more hits, and those that are gone", () => onPage({}, async (page) => {
  await page.goto(`${address}/#q=film&limit=3`);
  await page.getByRole("button", { name: "More hits" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".hit").length === 6);
  assert.equal(new Set(await titles(page)).size, 6);
  assert.equal(await page.locator(".moved").count(), 0);
  await page.getByLabel("Mode", { exact: true }).selectOption("keyword");
  await page.getByText("In the first response to this query, also:").waitFor();
}));

test("an answer to what was before is not shown", () => onPage({}, async (page) => {
  await page.goto(address);
  let slow;
  await page.route("**/v1/search", async (route) => {
    if (!route.request().postData().includes("heist")) return route.continue();
    await new Promise((resolve) => { slow = resolve; });
    return route.continue().catch(() => {});
  });
  await page.goto(`${address}/#q=heist`);
  while (!slow) await page.waitForTimeout(10);
  await page.goto(`${address}/#q=pasta`);
  await page.waitForSelector(".hit");
  slow();
  await page.waitForLoadState("networkidle");
  assert.equal((await titles(page))[0], "Pasta");
  assert.equal(await page.inputValue("#query"), "pasta");
  slow = null;
  await page.fill("#query", "heist");
  await page.press("#query", "Enter");
  while (!slow) await page.waitForTimeout(10);
  await page.fill("#query", "");
  await page.press("#query", "Enter");
  slow();
  await page.waitForLoadState("networkidle");
  assert.equal(await page.locator(".hit").count(), 0);
}));

test("answers that are none of the service", () => onPage({ allowed: ["ERR_"] }, async (page) => {
  await page.goto(`${address}/#q=film`);
  await page.waitForSelector(".hit");
  await page.route("**/v1/search", (route) => route.fulfill({ status: 200, contentType: "text/html", body: "<p>please log in</p>" }));
  await page.fill("#query", "pasta");
  await page.press("#query", "Enter");
  await page.getByText(/is not from Trivium/).waitFor();
}));

test("A | B: two rankings, their lines and how alike they are", () => onPage({}, async (page) => {
  await page.goto(address);
  await search(page, QUERY);
  await page.getByRole("button", { name: "A | B" }).click();
  await page.getByText(/hits are in both/).waitFor();
  assert.match(await page.locator(".likeness").textContent(), /\d+ of \d+ hits are in both; rank correlation \(Kendall's tau\) -?[\d.]+/);
  assert.ok((await page.locator(".lines line").count()) > 1);
  await page.getByRole("group", { name: "Ranking B" }).getByLabel("Mode", { exact: true }).selectOption("keyword");
  await page.waitForFunction(() => document.querySelectorAll(".rankings section")[1].querySelectorAll(".row").length > 0);
}));

test("the neighborhood of a hit by keyboard", () => onPage({}, async (page) => {
  await page.goto(address);
  await search(page, "The Prestige");
  await page.getByRole("button", { name: "Neighborhood of The Prestige" }).focus();
  await page.keyboard.press("Enter");
  await page.locator(".drawing").getByRole("heading", { name: "The Prestige" }).waitFor();
  assert.match(await page.locator(".list").textContent(), /directed_by\s*→\s*Christopher Nolan/);
  const name = () => page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? "");
  for (let count = 0; count < 30 && !(await name()).startsWith("document Christopher Nolan"); count += 1) await page.keyboard.press("Tab");
  assert.match(await name(), /^document Christopher Nolan/);
  await page.keyboard.press("Enter");
  await page.locator(".drawing").getByRole("heading", { name: "Christopher Nolan" }).waitFor();
  assert.match(await page.locator(".list").textContent(), /The Prestige\s*→\s*directed_by\s*→ this document/);
}));

test("a link restores the whole view", () => onPage({}, async (page, context) => {
  await page.goto(`${address}/#q=${encodeURIComponent(QUERY)}&a.profile=rrf&a.weight=graph%3A0.5&limit=3&collapse=none&filter=${encodeURIComponent('["tags","is","film"]')}`);
  await page.waitForSelector(".hit");
  const before = await titles(page);
  assert.equal(before.length, 3);
  await page.getByText("Use this request elsewhere").click();
  await page.getByRole("button", { name: "Copy Link to this view" }).click();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  const other = await context.newPage();
  await other.goto(link);
  await other.waitForSelector(".hit");
  assert.deepEqual(await titles(other), before);
  assert.equal(await other.inputValue("#query"), QUERY);
  assert.equal(await other.getByLabel("Profile", { exact: true }).inputValue(), "rrf");
  assert.equal(await other.locator('input[aria-label="weight of graph"]').inputValue(), "0.5");
  assert.equal(await other.getByLabel("Limit", { exact: true }).inputValue(), "3");
}));

test("what is copied runs as it is", () => onPage({}, async (page) => {
  await page.goto(`${address}/#q=${encodeURIComponent("it's \"a film\" $HOME `x` \\ 東京")}&limit=2&a.profile=rrf&neighbors=1&filter=${encodeURIComponent('["metadata.year","is not",""]')}&filter=${encodeURIComponent('["metadata.year","is at most",2020]')}`);
  await page.locator(".summary").waitFor();
  const shown = await titles(page);
  await page.getByText("Use this request elsewhere").click();
  const copied = async (name) => {
    await page.getByRole("button", { name: `Copy ${name}`, exact: true }).click();
    return page.evaluate(() => navigator.clipboard.readText());
  };
  const body = JSON.parse(execFileSync("bash", ["-c", await copied("curl")], { encoding: "utf8" }));
  assert.deepEqual(body.hits.map((hit) => hit.title), shown);
  const output = execFileSync(process.env.CONSOLE_PYTHON, ["-c", await copied("Python")], { encoding: "utf8" });
  assert.equal(output.trim().split("\n").filter(Boolean).length, shown.length);
  const call = await copied("MCP");
  const response = await fetch(`${address}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18" },
    body: call,
  });
  const text = await response.text();
  assert.match(text, /"content"/);
  assert.doesNotMatch(text, /"isError":\s*true/);
}));

test("Back and Forward", () => onPage({}, async (page) => {
  await page.goto(address);
  await search(page, "The Prestige");
  await page.getByRole("button", { name: "Neighborhood of The Prestige" }).click();
  await page.locator(".drawing").getByRole("heading", { name: "The Prestige" }).waitFor();
  await page.goBack();
  await page.waitForSelector(".hit");
  assert.equal(await page.inputValue("#query"), "The Prestige");
  await page.goForward();
  await page.locator(".drawing").getByRole("heading", { name: "The Prestige" }).waitFor();
}));

test("the state of the service", () => onPage({}, async (page) => {
  await page.goto(`${address}/#view=status`);
  const text = await page.locator(".status").textContent();
  assert.match(text, /is ready/);
  for (const each of ["vector", "graph", "keyword", "films", "Generation", "Built with", "Caches"]) assert.ok(text.includes(each), each);
}));

test("before a query, and with no response", () => onPage({ allowed: ["422", "ERR_"] }, async (page) => {
  await page.goto(`${address}/#example=one&example=two`);
  await page.getByRole("button", { name: "one" }).waitFor();
  await page.goto(`${address}/#q=film&limit=0`);
  await page.getByText(/limit: 0, allowed are 1 to/).waitFor();
  await page.goto(`${address}/#q=film`);
  await page.waitForSelector(".hit");
  await page.route("**/v1/search", (route) => route.abort());
  await page.fill("#query", "pasta");
  await page.press("#query", "Enter");
  await page.getByText(/Is the service running/).waitFor();
  await page.unroute("**/v1/search");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.waitForSelector(".hit");
}));

for (const scheme of ["light", "dark"]) {
  for (const [size, viewport] of [["desktop", desktop], ["phone", phone]]) {
    test(`axe finds nothing serious: ${scheme}, ${size}`, () => onPage({ scheme, viewport }, async (page) => {
      await page.goto(`${address}/#q=${encodeURIComponent(QUERY)}`);
      await page.waitForSelector(".hit");
      await page.locator("details.how summary").click();
      await page.locator("details.copies summary").click();
      await page.getByText("Why is it here?").first().click();
      await page.locator(".hit details").evaluateAll((all) => all.forEach((each) => { each.open = true; }));
      if (size === "phone") await page.locator(".settings summary").click();
      await page.getByLabel("Mode", { exact: true }).selectOption("keyword");
      await page.locator(".moved, .results > div > .faint").first().waitFor();
      assert.deepEqual(await serious(page), []);
      for (const [view, ready] of [["A | B", ".likeness"], ["Status", ".status table"]]) {
        await page.getByRole("button", { name: view, exact: true }).click();
        await page.locator(ready).first().waitFor();
        assert.deepEqual(await serious(page), [], view);
      }
      await page.goto(`${address}/#view=graph&document=${encodeURIComponent('["prestige","films"]')}`);
      await page.locator(".node").first().waitFor();
      assert.deepEqual(await serious(page), [], "graph");
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${overflow} px too wide`);
    }));
  }
}
