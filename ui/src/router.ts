/** Pages by the fragment of the address: #/queues/%2F/orders?page=2 */

import { useEffect, useState } from "preact/hooks";

export interface Place {
  segments: string[];
  query: URLSearchParams;
}

export function here(): Place {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { segments: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

/** The address of a page; names go in as they are. */
export function link(...segments: (string | number)[]): string {
  return `#/${segments.map((segment) => encodeURIComponent(segment)).join("/")}`;
}

export function go(address: string): void {
  location.hash = address.replace(/^#/, "");
}

/** Change what stands behind the question mark, without a new entry in the history. */
export function setQuery(changes: Record<string, string>): void {
  const { segments, query } = here();
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  history.replaceState(null, "", link(...segments) + (text ? `?${text}` : ""));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const update = () => setPlace(here());
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  return place;
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
