/**
 * Data that stays current: the broker sends what GETs answer, again and again (server-sent events).
 *
 * All that a page looks at comes by one connection, as browsers allow few; there is none while it is hidden.
 */

import { useEffect, useState } from "preact/hooks";
import { ApiError, get, path } from "./api";

export interface Live<T> {
  data: T | undefined;
  error: ApiError | undefined;
  /** Ask once more now, as after a change. */
  refresh: () => void;
}

interface Event {
  path: string;
  status: number;
  body: unknown;
}

type Listener = (event: Event) => void;

const RETRY_MS = 3000;
const listeners = new Map<string, Set<Listener>>();
/** What came last of each path: only changes come, and who joins later needs to begin with something. */
const latest = new Map<string, Event>();
let source: EventSource | undefined;
let followed = "";
let isScheduled = false;

/** What `url` answers, now and as it changes. */
export function useLive<T>(url: string): Live<T> {
  const [state, setState] = useState<{ url: string; data?: T; error?: ApiError }>();
  const show: Listener = ({ status, body }) =>
    setState((before) =>
      status === 200
        ? { url, data: body as T }
        : // What is gone is not shown any more, nor what could be done with it.
          { ...(before?.url === url && status !== 404 ? before : {}), url, error: new ApiError(status, reasonIn(body)) },
    );
  useEffect(() => listen(url, show), [url]);
  const current = state?.url === url ? state : undefined;
  return { data: current?.data, error: current?.error, refresh: () => void ask(url) };
}

/** Have all who look at `url` told what it answers now. */
async function ask(url: string): Promise<void> {
  const before = latest.get(url);
  let answer: Event;
  try {
    answer = { path: url, status: 200, body: await get(url) };
  } catch (error) {
    const status = error instanceof ApiError ? error.status : 0;
    for (const listener of listeners.get(url) ?? []) listener({ path: url, status, body: error });
    return;
  }
  // What came meanwhile may be newer, and it comes once: then nobody knows which is, and it is asked again.
  if (latest.get(url) === before) tell(answer);
  else void ask(url);
}

function listen(url: string, listener: Listener): () => void {
  const those = listeners.get(url) ?? new Set();
  listeners.set(url, those.add(listener));
  const known = latest.get(url);
  if (known) listener(known);
  schedule();
  return () => {
    those.delete(listener);
    if (!those.size) {
      listeners.delete(url);
      latest.delete(url);
    }
    schedule();
  };
}

/** Have one connection for what is looked at, once all of the page has said what that is. */
function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  queueMicrotask(() => {
    isScheduled = false;
    connect();
  });
}

function connect(): void {
  const paths = document.hidden ? [] : [...listeners.keys()];
  const wanted = paths.join("\n");
  if (wanted === followed && source?.readyState !== EventSource.CLOSED) return;
  source?.close();
  source = undefined;
  followed = wanted;
  if (!paths.length) return;
  const address = path("warren", "live");
  source = new EventSource(`${address}?${paths.map((each) => `path=${encodeURIComponent(each)}`).join("&")}`);
  source.onmessage = (message: MessageEvent<string>) => {
    tell(JSON.parse(message.data) as Event);
  };
  source.onerror = () => {
    // Asking who we are says whether the broker is there, and whether we are still signed in.
    get(path("whoami")).catch((error: unknown) => {
      for (const each of listeners.keys()) tell({ path: each, status: 0, body: error });
    });
    if (source?.readyState === EventSource.CLOSED) setTimeout(connect, RETRY_MS);
  };
}

function tell(event: Event): void {
  if (listeners.has(event.path)) latest.set(event.path, event);
  for (const listener of listeners.get(event.path) ?? []) listener(event);
}

function reasonIn(body: unknown): string {
  if (body instanceof Error) return body.message;
  const said = body as { message?: unknown; reason?: unknown } | null;
  const reason = said?.message ?? said?.reason;
  return typeof reason === "string" ? reason : "the broker did not answer as it should";
}

document.addEventListener("visibilitychange", schedule);
