/** Talks to the HTTP API of the broker that this page came from. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Query = Record<string, string | number | boolean | undefined>;

/** A request that was not obeyed: its status, and the reason in words for people. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    reason: string,
  ) {
    super(reason);
  }
}

/** Where the page is, which may have a path before it. */
const BASE = new URL(".", document.baseURI).pathname;

/** A path of the API: names go in as they are, whatever they contain. */
export function path(...segments: (string | number)[]): string {
  return `${BASE}api/${segments.map((segment) => encodeURIComponent(segment)).join("/")}`;
}

export function withQuery(url: string, query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text ? `${url}?${text}` : url;
}

let onSignedOut: () => void = () => undefined;

/** Have `action` called when the broker says that nobody is signed in any more. */
export function whenSignedOut(action: () => void): void {
  onSignedOut = action;
}

export async function request<T>(method: string, url: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  // The header shows that no other site's form made this request.
  const headers: Record<string, string> = { "x-warren-ui": "1" };
  if (body !== undefined) headers["content-type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(url, {
      method,
      headers,
      credentials: "same-origin",
      ...(signal ? { signal } : {}),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    throw new ApiError(0, "the broker cannot be reached");
  }
  if (!response.ok) throw await failure(response);
  const text = await response.text();
  return (text ? JSON.parse(text) : null) as T;
}

export const get = <T>(url: string, signal?: AbortSignal) => request<T>("GET", url, undefined, signal);
export const put = (url: string, body: unknown = {}) => request<unknown>("PUT", url, body);
export const post = <T>(url: string, body: unknown = {}) => request<T>("POST", url, body);
export const remove = (url: string, body?: unknown) => request<unknown>("DELETE", url, body);

/** What the broker says where nobody is signed in any more, or somebody who may not be here. */
const SIGNED_OUT = new Set(["nobody is signed in", "Not management user"]);

async function failure(response: Response): Promise<ApiError> {
  const text = await response.text();
  let reason = text || `the broker answered ${response.status}`;
  try {
    const found = JSON.parse(text) as { message?: Json; reason?: Json; error?: Json };
    const said = found.message ?? found.reason ?? found.error;
    if (said !== undefined) reason = typeof said === "string" ? said : JSON.stringify(said);
  } catch {
    // It was no JSON: the text is all there is.
  }
  if (response.status === 401 && SIGNED_OUT.has(reason)) onSignedOut();
  return new ApiError(response.status, reason);
}
