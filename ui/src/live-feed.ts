/**
 * Follows any number of API addresses over one connection of server-sent events.
 *
 * Browsers allow few connections to a host, so that all addresses that a page follows share one; a hidden page has
 * none. The broker sends an answer only when it has changed, so the last one of each address is kept for listeners
 * that join later.
 */

import type { ClusterAnswer } from "./api";

export interface LiveEvent extends ClusterAnswer {
  path: string;
  status: number;
}

export type Listener = (event: LiveEvent) => void;

/** What the feed needs of its surroundings: the browser's, or a test's. */
export interface Environment {
  /** Opens the event stream of `paths`. */
  open: (paths: string[]) => EventStream;
  /** Requests `url` once; a failure is thrown, with the status of the response if there was one. */
  request: (url: string) => Promise<ClusterAnswer>;
  /** Checks that the broker answers and the session is valid; throws if not. */
  checkSession: () => Promise<unknown>;
  isHidden: () => boolean;
  later: (action: () => void) => void;
}

/** As much of an EventSource as is used. */
export interface EventStream {
  onmessage: ((message: { data: string }) => void) | null;
  onerror: (() => void) | null;
  readonly isClosed: boolean;
  close: () => void;
}

export class LiveFeed {
  private readonly listeners = new Map<string, Set<Listener>>();
  private readonly latest = new Map<string, LiveEvent>();
  private stream: EventStream | undefined;
  private followed = "";
  private isScheduled = false;

  constructor(private readonly environment: Environment) {}

  /** Calls `listener` with each answer of `url`, beginning with the last known one, until the returned function is called. */
  subscribe(url: string, listener: Listener): () => void {
    const listeners = this.listeners.get(url) ?? new Set();
    this.listeners.set(url, listeners.add(listener));
    const known = this.latest.get(url);
    if (known) listener(known);
    this.schedule();
    return () => {
      listeners.delete(listener);
      if (!listeners.size && this.listeners.get(url) === listeners) {
        this.listeners.delete(url);
        this.latest.delete(url);
      }
      this.schedule();
    };
  }

  /** Requests `url` now and tells all its listeners the answer. */
  async refresh(url: string): Promise<void> {
    const before = this.latest.get(url);
    let event: LiveEvent;
    try {
      event = { path: url, status: 200, ...(await this.environment.request(url)) };
    } catch (error) {
      const { status = 0 } = error as { status?: number };
      for (const listener of this.listeners.get(url) ?? []) listener({ path: url, status, body: error });
      return;
    }
    // An event that arrived meanwhile may be newer than the answer, and is sent only once: ask again.
    if (this.latest.get(url) === before) this.publish(event);
    else void this.refresh(url);
  }

  /** Reconnects if the followed addresses have changed, after the current task: a page subscribes to several at once. */
  schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    queueMicrotask(() => {
      this.isScheduled = false;
      this.connect();
    });
  }

  private connect(): void {
    const paths = this.environment.isHidden() ? [] : [...this.listeners.keys()];
    const wanted = paths.join("\n");
    if (wanted === this.followed && !this.stream?.isClosed) return;
    this.stream?.close();
    this.stream = undefined;
    this.followed = wanted;
    if (!paths.length) return;
    const stream = this.environment.open(paths);
    this.stream = stream;
    stream.onmessage = ({ data }) => this.publish(JSON.parse(data) as LiveEvent);
    stream.onerror = () => {
      this.environment.checkSession().catch((error: unknown) => {
        for (const path of this.listeners.keys()) this.publish({ path, status: 0, body: error });
      });
      if (stream.isClosed) this.environment.later(() => this.connect());
    };
  }

  private publish(event: LiveEvent): void {
    if (this.listeners.has(event.path)) this.latest.set(event.path, event);
    for (const listener of this.listeners.get(event.path) ?? []) listener(event);
  }
}
