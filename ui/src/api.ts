/** Requests to the HTTP API of the broker that served this page. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Query = Record<string, string | number | boolean | undefined>;

/** A request that failed: its HTTP status, 0 if there was no response, and the reason in words. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    reason: string,
  ) {
    super(reason);
  }
}

/** The path of the page, which `management.path_prefix` may have moved. */
const BASE = new URL(".", document.baseURI).pathname;

/** A path of the API, with each segment percent-encoded. */
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

export const WHOAMI = path("whoami");

let onSignedOut: () => void = () => undefined;

/** Call `action` when the broker reports that the session has ended. */
export function whenSignedOut(action: () => void): void {
  onSignedOut = action;
}

/** The body of a response, and the nodes of the cluster that it was made without, if there are any. */
export interface ClusterAnswer {
  body: unknown;
  nodes_missing?: string[];
}

export async function request<T>(method: string, url: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  return bodyOf<T>(await send(method, url, body, signal));
}

/** The answer to a GET of `url`, with the nodes that are missing from it. */
export async function getOfCluster(url: string): Promise<ClusterAnswer> {
  const response = await send("GET", url);
  const missing = response.headers.get("warren-nodes-missing");
  return { body: await bodyOf(response), ...(missing ? { nodes_missing: missing.split(", ") } : {}) };
}

async function bodyOf<T>(response: Response): Promise<T> {
  const text = await response.text();
  return (text ? JSON.parse(text) : null) as T;
}

async function send(method: string, url: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  // A form of another site cannot set this header.
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
    throw new ApiError(0, `No response from the broker at ${location.host}. Check that it is running and reachable.`);
  }
  if (!response.ok) throw await failure(url, response);
  return response;
}

export const get = <T>(url: string, signal?: AbortSignal) => request<T>("GET", url, undefined, signal);
export const put = (url: string, body: unknown = {}) => request<unknown>("PUT", url, body);
export const post = <T>(url: string, body: unknown = {}) => request<T>("POST", url, body);
export const remove = <T = unknown>(url: string, body?: unknown) => request<T>("DELETE", url, body);

async function failure(url: string, response: Response): Promise<ApiError> {
  const text = await response.text();
  let reason = text || `The broker answered with HTTP status ${response.status} and no reason.`;
  try {
    const found = JSON.parse(text) as { message?: Json; reason?: Json; error?: Json };
    const said = found.message ?? found.reason ?? found.error;
    if (said !== undefined) reason = typeof said === "string" ? said : JSON.stringify(said);
  } catch {
    // The body is not JSON: its text is the reason.
  }
  if (response.status === 401) checkSession(url);
  return new ApiError(response.status, reason);
}

/** A 401 means that the session has ended, or only that the user lacks a permission: /whoami tells which. */
function checkSession(refused: string): void {
  if (refused === WHOAMI) onSignedOut();
  else get(WHOAMI).catch(() => undefined);
}
