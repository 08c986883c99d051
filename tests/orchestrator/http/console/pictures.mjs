// Pictures of every view, wide and narrow, light and dark.

import { address, close, desktop, onPage, phone } from "./browser.mjs";

const { CONSOLE_TARGET: folder, CONSOLE_QUERY: query, CONSOLE_DOCUMENT: document } = process.env;

for (const scheme of ["light", "dark"]) {
  for (const [size, viewport] of [["1280", desktop], ["390", phone]]) {
    await onPage({ scheme, viewport }, async (page) => {
      const picture = (view) => page.screenshot({ path: `${folder}/${view}-${size}-${scheme}.png` });
      for (const each of [`${query} first`, `${query} again`, query]) {  // the first searches of a process take longer
        await page.goto(`${address}/#q=${encodeURIComponent(each)}`);
        await page.waitForSelector(".hit");
      }
      await page.getByText("How it was computed").click();
      await page.getByText("Why is it here?").first().click();
      await picture("search");
      await page.goto(`${address}/#view=compare&q=${encodeURIComponent(query)}`);
      await page.waitForSelector(".likeness");
      await picture("compare");
      await page.goto(`${address}/#view=graph&document=${encodeURIComponent(document)}`);
      await page.locator(".node").first().waitFor();
      await picture("graph");
      await page.goto(`${address}/#view=status`);
      await page.locator(".status table").first().waitFor();
      await picture("status");
    });
  }
}
await close();
