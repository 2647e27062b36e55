/** Searching the messages of a queue: in pieces, with how far it is, until enough are found. */

import { get, path } from "../api";
import { Button, Failure } from "../components/ui";
import { count } from "../format";
import type { PeekAnswer, PeekedMessage } from "../model";
import { type Asked, useQuestion } from "../request";

/** How many messages are looked for at a time. */
export const COUNT = 20;
/** And in how many pieces, of some 20,000 messages each, before somebody says that it is to go further. */
const PIECES_MAX = 10;

export interface Wanted {
  state?: string;
  conditions: string[];
  /** What conditions cannot say. */
  fits?: (message: PeekedMessage) => boolean;
}

export interface Found {
  wanted: Wanted;
  messages: PeekedMessage[];
  /** Where the next one to be looked at is; null at the end. */
  next: number | null;
  examined: number;
}

export interface Search extends Asked<Found> {
  /** Looks for messages that are wanted, the first of them at `from`. */
  begin: (wanted: Wanted, from: () => Promise<number>, keep?: boolean) => Promise<void>;
  /** Looks for more of them, behind `found`. */
  further: (found: Found) => Promise<void>;
}

export function useSearch(vhost: string, name: string): Search {
  const asked = useQuestion<Found>();
  const address = path("warren", "queues", vhost, name, "messages");
  const look = async (found: Found, signal: AbortSignal, show: (found: Found) => void): Promise<Found> => {
    const enough = found.messages.length + COUNT;
    for (let piece = 0; piece < PIECES_MAX && found.next !== null && found.messages.length < enough; piece += 1) {
      const { state = "ready", conditions, fits = () => true } = found.wanted;
      const query = new URLSearchParams({ state, from: String(found.next), count: String(enough - found.messages.length) });
      for (const condition of conditions) query.append("match", condition);
      const { messages, next, examined } = await get<PeekAnswer>(`${address}?${query}`, signal);
      found = { ...found, messages: [...found.messages, ...messages.filter(fits)], next, examined: found.examined + examined };
      show(found);
    }
    return found;
  };
  return {
    ...asked,
    begin: (wanted, from, keep) =>
      asked.ask(async (signal, show) => look({ wanted, messages: [], next: await from(), examined: 0 }, signal, show), keep),
    further: (found) => asked.ask((signal, show) => look(found, signal, show), true),
  };
}

/** How far a search is, or what came of it. */
export function SearchState({ search: { data, error, isAsking, stop }, more = "" }: { search: Search; more?: string }) {
  return (
    <>
      <Failure error={error} />
      <div class="search-state">
        <p role="status" class="quiet" aria-busy={isAsking}>
          {isAsking ? `Searching … ${progress(data)}` : data ? outcome(data) : ""}
          {more}
        </p>
        {isAsking && <Button onClick={stop}>Stop</Button>}
      </div>
    </>
  );
}

const progress = (found: Found | undefined): string =>
  found ? `${count(found.messages.length)} found, ${count(found.examined)} looked at` : "";

function outcome({ wanted, messages, next, examined }: Found): string {
  const shown = messages.length ? `${count(messages.length)} shown` : "None";
  const of = wanted.conditions.length ? ` of ${count(examined)} looked at` : "";
  return shown + of + (next === null ? ", and there are no more" : "");
}

/** The button that has a search go on, where there may be more. */
export const Further = ({ search: { data, isAsking, further } }: { search: Search }) =>
  data && data.next !== null && !isAsking ? <Button onClick={() => further(data)}>Look further</Button> : null;
