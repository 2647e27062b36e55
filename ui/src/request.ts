/** Questions that are asked once and not followed: searches, and what is work for the broker. */

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get } from "./api";

export interface Answer<T> {
  data: T | undefined;
  error: ApiError | undefined;
  isAsking: boolean;
}

/** Asks; what there is of the answer so far is handed to `show`. */
export type Question<T> = (signal: AbortSignal, show: (part: T) => void) => Promise<T>;

export interface Asked<T> extends Answer<T> {
  /** Asks `question`, and forgets one that is not answered yet; the answer before stays meanwhile if it is to `keep`. */
  ask: (question: Question<T>, keep?: boolean) => Promise<void>;
  /** Ends it with what there is of the answer. */
  stop: () => void;
}

/** The answer to the question that was asked last, whichever is answered last. The first one is asked at once. */
export function useQuestion<T>(): Asked<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ data: undefined, error: undefined, isAsking: true });
  const asking = useRef<AbortController>(undefined);
  useEffect(() => () => asking.current?.abort(), []);
  const ask = async (question: Question<T>, keep = false) => {
    asking.current?.abort();
    const own = new AbortController();
    asking.current = own;
    setAnswer(({ data }) => ({ data: keep ? data : undefined, error: undefined, isAsking: true }));
    const show = (data: T, isAsking: boolean) => {
      if (!own.signal.aborted) setAnswer({ data, error: undefined, isAsking });
    };
    try {
      show(await question(own.signal, (part) => show(part, true)), false);
    } catch (failure) {
      if (own.signal.aborted) return;
      const error = failure instanceof ApiError ? failure : new ApiError(0, String(failure));
      setAnswer(({ data }) => ({ data, error, isAsking: false }));
    }
  };
  const stop = () => {
    asking.current?.abort();
    setAnswer((before) => ({ ...before, isAsking: false }));
  };
  return { ...answer, ask, stop };
}

/** What `url` answers now, and when it is asked `again`. */
export function useAnswer<T>(url: string): Answer<T> & { again: () => Promise<void> } {
  const { data, error, isAsking, ask } = useQuestion<T>();
  useEffect(() => void ask((signal) => get<T>(url, signal)), [url]);
  return { data, error, isAsking, again: () => ask((signal) => get<T>(url, signal), true) };
}
