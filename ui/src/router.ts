/** Routes pages by the fragment of the address: #/queues/%2F/orders?page=2 */

import { useEffect, useState } from "preact/hooks";

export interface PageLocation {
  segments: string[];
  query: URLSearchParams;
}

export function currentLocation(): PageLocation {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { segments: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

/** The address of a page, with each segment percent-encoded. */
export function link(...segments: (string | number)[]): string {
  return `#/${segments.map((segment) => encodeURIComponent(segment)).join("/")}`;
}

export function navigate(address: string): void {
  location.hash = address.replace(/^#/, "");
}

/** Change the query of the current page, without a new entry in the history. */
export function setQuery(changes: Record<string, string>): void {
  const { segments, query } = currentLocation();
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  history.replaceState(null, "", link(...segments) + (text ? `?${text}` : ""));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useLocation(): PageLocation {
  const [location, setLocation] = useState(currentLocation);
  useEffect(() => {
    const update = () => setLocation(currentLocation());
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  return location;
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
