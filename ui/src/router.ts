/** Routes pages by the fragment of the address: #/queues/%2F/orders?page=2 */

import { useEffect, useMemo, useState } from "preact/hooks";

export interface PageLocation {
  segments: string[];
  query: URLSearchParams;
}

export function currentLocation(): PageLocation {
  return parse(location.hash);
}

/** The address of a page, with each segment percent-encoded. */
export function link(...segments: (string | number)[]): string {
  return `#/${segments.map((segment) => encodeURIComponent(segment)).join("/")}`;
}

/** The page of a shovel; a static one belongs to no virtual host. */
export const shovelPage = (vhost: string | undefined, name: string): string =>
  vhost === undefined ? link("static-shovels", name) : link("shovels", vhost, name);

/** The page of a federation link. */
export const federationPage = (vhost: string, id: string): string => link("federation", vhost, id);

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
  const [hash, setHash] = useState(() => location.hash);
  useEffect(() => {
    const update = () => setHash(location.hash);
    addEventListener("hashchange", update);
    // The address may have changed between the first rendering and this effect.
    update();
    return () => removeEventListener("hashchange", update);
  }, []);
  return useMemo(() => parse(hash), [hash]);
}

function parse(hash: string): PageLocation {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return { segments: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
