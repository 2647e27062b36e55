/** Requests that are made once, such as searches and expensive queries; data that a page follows comes from `useLive`. */

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get } from "./api";

export interface RequestState<T> {
  data: T | undefined;
  error: ApiError | undefined;
  isPending: boolean;
}

/** Makes the requests; what has arrived so far is passed to `show`. */
export type Operation<T> = (signal: AbortSignal, show: (partial: T) => void) => Promise<T>;

export interface RequestHandle<T> extends RequestState<T> {
  /** Runs `operation` and cancels the previous one; the data shown so far stays meanwhile if `keep` is set. */
  run: (operation: Operation<T>, keep?: boolean) => Promise<void>;
  /** Cancels the operation and keeps the data that has arrived. */
  cancel: () => void;
}

/** The result of the operation that was started last, whichever ends last. It counts as pending before the first one. */
export function useRequest<T>(): RequestHandle<T> {
  const [state, setState] = useState<RequestState<T>>({ data: undefined, error: undefined, isPending: true });
  const current = useRef<AbortController>(undefined);
  useEffect(() => () => current.current?.abort(), []);
  const run = async (operation: Operation<T>, keep = false) => {
    current.current?.abort();
    const own = new AbortController();
    current.current = own;
    setState(({ data }) => ({ data: keep ? data : undefined, error: undefined, isPending: true }));
    const show = (data: T, isPending: boolean) => {
      if (!own.signal.aborted) setState({ data, error: undefined, isPending });
    };
    try {
      show(await operation(own.signal, (partial) => show(partial, true)), false);
    } catch (failure) {
      if (own.signal.aborted) return;
      const error = failure instanceof ApiError ? failure : new ApiError(0, String(failure));
      setState(({ data }) => ({ data, error, isPending: false }));
    }
  };
  const cancel = () => {
    current.current?.abort();
    setState((before) => ({ ...before, isPending: false }));
  };
  return { ...state, run, cancel };
}

/** The answer to a GET of `url`, requested when the component appears and again by `reload`. */
export function useFetch<T>(url: string): RequestState<T> & { reload: () => Promise<void> } {
  const { data, error, isPending, run } = useRequest<T>();
  useEffect(() => void run((signal) => get<T>(url, signal)), [url]);
  return { data, error, isPending, reload: () => run((signal) => get<T>(url, signal), true) };
}
