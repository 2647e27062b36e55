/** Data that stays current: a Preact hook over the live feed of this page. */

import { useEffect, useState } from "preact/hooks";
import { ApiError, get, getOfCluster, path, WHOAMI } from "./api";
import { type EventStream, type Listener, LiveFeed } from "./live-feed";

export interface Live<T> {
  data: T | undefined;
  error: ApiError | undefined;
  /** The nodes of the cluster that the data are without. */
  nodesMissing: string[];
  /** Request it again now, as after a change. */
  refresh: () => void;
}

const RETRY_MS = 3000;

const feed = new LiveFeed({
  open: openStream,
  request: getOfCluster,
  checkSession: () => get(WHOAMI),
  isHidden: () => document.hidden,
  later: (action) => setTimeout(action, RETRY_MS),
});
document.addEventListener("visibilitychange", () => feed.schedule());

/** The answer to `url`, now and as it changes. */
export function useLive<T>(url: string): Live<T> {
  const [state, setState] = useState<{ url: string; data?: T; error?: ApiError; nodesMissing?: string[] }>();
  const show: Listener = ({ status, body, nodes_missing: nodesMissing = [] }) =>
    setState((before) =>
      status === 200
        ? { url, data: body as T, nodesMissing }
        : // A deleted object is no longer shown, nor are its actions.
          { ...(before?.url === url && status !== 404 ? before : {}), url, error: new ApiError(status, reasonIn(status, body)) },
    );
  useEffect(() => feed.subscribe(url, show), [url]);
  const current = state?.url === url ? state : undefined;
  return {
    data: current?.data,
    error: current?.error,
    nodesMissing: current?.nodesMissing ?? [],
    refresh: () => void feed.refresh(url),
  };
}

function openStream(paths: string[]): EventStream {
  const query = paths.map((each) => `path=${encodeURIComponent(each)}`).join("&");
  const source = new EventSource(`${path("warren", "live")}?${query}`);
  const stream: EventStream = {
    onmessage: null,
    onerror: null,
    get isClosed() {
      return source.readyState === EventSource.CLOSED;
    },
    close: () => source.close(),
  };
  source.onmessage = (message: MessageEvent<string>) => stream.onmessage?.(message);
  source.onerror = () => stream.onerror?.();
  return stream;
}

function reasonIn(status: number, body: unknown): string {
  if (body instanceof Error) return body.message;
  const said = body as { message?: unknown; reason?: unknown } | null;
  const reason = said?.message ?? said?.reason;
  return typeof reason === "string" ? reason : `The broker answered with HTTP status ${status} and no reason.`;
}
