/** Searches the messages of a queue: request by request, showing the progress, until enough messages are found. */

import { get, path } from "../api";
import type { Peek, PeekedMessage } from "../api-types";
import { Button } from "../components/button";
import { ErrorMessage } from "../components/status";
import { count } from "../format";
import { type RequestHandle, useRequest } from "../request";

/** Messages that one search adds. */
export const PAGE_SIZE = 20;
/** Requests of one search, each of which scans some 20,000 messages, before the user decides whether to go on. */
const REQUESTS_MAX = 10;

export interface SearchFilter {
  state?: string;
  /** What the broker filters by. */
  conditions: string[];
  /** What is filtered here, because conditions cannot express it. */
  matches?: (message: PeekedMessage) => boolean;
}

export interface SearchResult {
  filter: SearchFilter;
  messages: PeekedMessage[];
  /** The position at which the next request starts; null at the end of the queue. */
  next: number | null;
  scanned: number;
}

export interface MessageSearch extends RequestHandle<SearchResult> {
  /** Starts a new search at the position `from`. */
  start: (filter: SearchFilter, from: () => Promise<number>, keep?: boolean) => Promise<void>;
  /** Continues the search behind `result`. */
  loadMore: (result: SearchResult) => Promise<void>;
}

export function useMessageSearch(vhost: string, name: string): MessageSearch {
  const handle = useRequest<SearchResult>();
  const address = path("warren", "queues", vhost, name, "messages");
  const search = async (before: SearchResult, signal: AbortSignal, show: (result: SearchResult) => void) => {
    let result = before;
    const wanted = result.messages.length + PAGE_SIZE;
    for (let number = 0; number < REQUESTS_MAX && result.next !== null && result.messages.length < wanted; number += 1) {
      const { state = "ready", conditions, matches = () => true } = result.filter;
      const query = new URLSearchParams({ state, from: String(result.next), count: String(wanted - result.messages.length) });
      for (const condition of conditions) query.append("match", condition);
      const { messages, next, examined } = await get<Peek>(`${address}?${query}`, signal);
      const found = [...result.messages, ...messages.filter(matches)];
      result = { ...result, messages: found, next, scanned: result.scanned + examined };
      show(result);
    }
    return result;
  };
  return {
    ...handle,
    start: (filter, from, keep) =>
      handle.run(async (signal, show) => search({ filter, messages: [], next: await from(), scanned: 0 }, signal, show), keep),
    loadMore: (result) => handle.run((signal, show) => search(result, signal, show), true),
  };
}

/** The progress of a search, or its outcome. */
export function SearchState({ search: { data, error, isPending, cancel }, more = "" }: { search: MessageSearch; more?: string }) {
  return (
    <>
      <ErrorMessage error={error} />
      <div class="search-state">
        <p role="status" class="quiet" aria-busy={isPending}>
          {isPending ? `Searching … ${progress(data)}` : data ? outcome(data) : ""}
          {more}
        </p>
        {isPending && <Button onClick={cancel}>Stop</Button>}
      </div>
    </>
  );
}

const progress = (result: SearchResult | undefined): string =>
  result ? `${count(result.messages.length)} found, ${count(result.scanned)} scanned` : "";

function outcome({ filter, messages, next, scanned }: SearchResult): string {
  const shown = messages.length ? `${count(messages.length)} shown` : "No messages";
  const of = filter.conditions.length ? `, ${count(scanned)} scanned` : "";
  return shown + of + (next === null ? ", end of the queue" : "");
}

export const LoadMore = ({ search: { data, isPending, loadMore } }: { search: MessageSearch }) =>
  data && data.next !== null && !isPending ? <Button onClick={() => loadMore(data)}>Load more</Button> : null;
