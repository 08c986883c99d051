// The API of the service, and nothing else. The key lives in this variable until the tab is closed.

let key = "";

export const hasKey = () => key !== "";

/** Use a key from now on. Returns whether it can be one: keys are in ASCII. */
export function useKey(text) {
  const isPossible = /^[\x21-\x7e]*$/.test(text.trim());
  if (isPossible) key = text.trim();
  return isPossible;
}

/** An address without the name and password that it may have. */
function plain(href) {
  const url = new URL(href);
  url.username = "";
  url.password = "";
  return url.href;
}

/** Where the service is, without a slash at the end. */
export const address = () => plain(new URL(".", document.baseURI)).replace(/\/$/, "");

/** The address of the view. */
export const link = () => plain(location.href);

/** A response that is no success. `status` is 0 if there was none that could be read. */
export class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The body of a response. `signal` ends the request, and then nothing is returned: an AbortError is thrown. */
async function send(path, signal, options = {}) {
  const headers = { ...options.headers, ...(key ? { authorization: `Bearer ${key}` } : {}) };
  const request = { ...options, headers, signal, credentials: "same-origin", referrerPolicy: "no-referrer" };
  let response;
  let body;
  try {
    response = await fetch(`${address()}/${path}`, request);
    body = await response.text();
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Failure(0, `no answer from ${address()}`);
  }
  let content;
  try {
    content = JSON.parse(body);
  } catch {
    throw new Failure(response.ok ? 0 : response.status, `the answer to ${path.split("?")[0]} is not from Trivium (status ${response.status})`);
  }
  if (!response.ok && !path.startsWith("readyz")) {
    throw new Failure(response.status, content.detail ?? content.title ?? `status ${response.status}`);
  }
  return content;
}

export const search = (body, signal) => send("v1/search", signal, {
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
});

export const collections = (signal) => send("v1/collections", signal);
export const readiness = (signal) => send("readyz?verbose", signal);
export const status = (signal) => send("v1/status", signal);
export const cache = (signal) => send("v1/cache", signal);

/** Some documents of a collection. */
export const sample = (collection, signal) => send(`v1/documents?${new URLSearchParams({ collection, limit: "30" })}`, signal);

export function neighbors({ id, collection }, signal) {
  const parameters = new URLSearchParams({ limit: "40", ...(collection ? { collection } : {}) });
  return send(`v1/documents/${encodeURIComponent(id)}/neighbors?${parameters}`, signal);
}
