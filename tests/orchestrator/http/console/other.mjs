// Services in other states: one source that is away, no documents, documents that are hostile.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, onPage, serious } from "./browser.mjs";

const { CONSOLE_DEGRADED: degraded, CONSOLE_EMPTY: empty, CONSOLE_HOSTILE: hostile } = process.env;
const identities = JSON.parse(process.env.CONSOLE_IDENTITIES);
const strings = JSON.parse(process.env.CONSOLE_STRINGS);

after(close);

test("a source that is away is named", () => onPage({ base: degraded }, async (page) => {
  await page.goto(`${degraded}/#q=film`);
  await page.getByRole("alert").getByText("not done as asked").waitFor();
  assert.match(await page.getByRole("alert").textContent(), /keyword search/);
  assert.ok((await page.locator(".hit").count()) > 0);
  await page.getByText("Why is it here?").first().click();
  assert.match(await page.locator(".more").first().textContent(), /Keyword search failed/);
  assert.deepEqual(await serious(page), []);
  await page.getByRole("button", { name: "Status" }).click();
  await page.locator(".status .bad").first().waitFor();
}));

test("no documents", () => onPage({ base: empty }, async (page) => {
  await page.goto(empty);
  await page.getByText("There are no documents yet").waitFor();
  assert.match(await page.locator(".empty").textContent(), /trivium index PATH/);
  assert.deepEqual(await serious(page), []);
}));

/** A text as a reader sees it. */
const plain = (text) => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]/g, "\ufffd").replace(/\s+/g, " ").trim();

test("hostile texts are texts", () => onPage({ base: hostile }, async (page) => {
  await page.goto(`${hostile}/#q=needle&limit=50&a.profile=rrf`);
  await page.waitForFunction((count) => document.querySelectorAll(".hit").length === count, strings.length);
  await page.evaluate(() => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
  const text = plain(await page.locator("main").textContent());
  strings.forEach((each) => assert.ok(text.includes(plain(each)), JSON.stringify(each)));
  const hits = await page.$$eval(".hit", (all) => all.map((each) => [each.dataset.key, each.textContent]));
  for (const [collection, id] of hits.map(([key]) => JSON.parse(key)).filter(([, each]) => strings.includes(each))) {
    const shown = plain(hits.find(([key]) => key === JSON.stringify([collection, id]))[1]);
    assert.ok(shown.split(plain(id)).length > 6, `${id}: title, collection, tag, section, id and twice in the metadata`);
  }
  const markup = await page.evaluate(() => document.querySelectorAll("main script, main iframe, main img, main object, main style, main base, main form:not(.key), main [onerror], main [onload]").length);
  assert.equal(markup, 0);
  const targets = await page.$$eval("main a", (all) => all.map((each) => new URL(each.href).protocol));
  assert.deepEqual(targets.filter((each) => !["http:", "https:"].includes(each)), []);
  for (const [index, identity] of identities.entries()) {
    await page.goto(`${hostile}/#view=graph&document=${encodeURIComponent(JSON.stringify(identity))}`);
    await page.waitForFunction((title) => document.querySelector(".drawing h2")?.textContent.replace(/\s+/g, " ").trim() === title, plain(strings[index]));
    assert.ok((await page.locator(".list").textContent()).includes("→"));
  }
  await page.goto(`${hostile}/#view=compare&q=needle&limit=50`);
  await page.locator(".likeness").waitFor();
  await page.goto(`${hostile}/#view=status`);
  await page.locator(".status table").first().waitFor();
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(overflow <= 0, `${overflow} px too wide`);
}));

test("a hostile link is shown as a text", () => onPage({ base: hostile, allowed: ["404", "422"] }, async (page) => {
  const attack = encodeURIComponent("<img src=x onerror='hacked=1'>");
  await page.goto(`${hostile}/#q=${attack}&example=${attack}&collection=${attack}&a.mode=${attack}&filter=${encodeURIComponent(JSON.stringify([decodeURIComponent(attack), "is", "x"]))}`);
  await page.locator(".empty").first().waitFor();
  for (const test of ["__proto__", "toString", "class"]) {
    await page.goto(`${hostile}/#q=needle&filter=${encodeURIComponent(JSON.stringify(["tags", test, "x"]))}`);
    await page.waitForSelector(".hit");
    assert.equal(await page.locator(".filter").count(), 0);
  }
  await page.goto(`${hostile}/#view=graph&document=${encodeURIComponent(JSON.stringify([decodeURIComponent(attack), "x"]))}`);
  await page.locator(".empty").first().waitFor();
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
}));
