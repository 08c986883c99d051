// The API of the service, and nothing else. The key lives in this variable until the tab is closed.

let key = "";

export const hasKey = () => key !== "";
export const useKey = (text) => { key = text.trim(); };

/** Where the service is, without a slash at the end. */
export const address = () => new URL(".", document.baseURI).href.replace(/\/$/, "");

/** A response that is no success. `status` is 0 if there was none. */
export class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function send(path, options = {}) {
  const headers = { ...options.headers, ...(key ? { authorization: `Bearer ${key}` } : {}) };
  let response;
  try {
    response = await fetch(`${address()}/${path}`, { ...options, headers, credentials: "omit", referrerPolicy: "no-referrer" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, `no answer from ${address()}`);
  }
  const body = await response.json().catch(() => null);
  if (!response.ok && !(path.startsWith("readyz") && body)) {
    throw new Failure(response.status, body?.detail ?? body?.title ?? `status ${response.status}`);
  }
  return body;
}

export const search = (body, signal) => send("v1/search", {
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal,
});

export const collections = () => send("v1/collections");
export const sample = () => send("v1/documents?limit=50");
export const readiness = () => send("readyz?verbose");
export const status = () => send("v1/status");
export const cache = () => send("v1/cache");

export function neighbors({ id, collection }) {
  const parameters = new URLSearchParams({ limit: "40", ...(collection ? { collection } : {}) });
  return send(`v1/documents/${encodeURIComponent(id)}/neighbors?${parameters}`);
}
