/** Choosing a virtual host: for a list, and in a form. */

import { path } from "../api";
import { useLive } from "../live";
import { setQuery, useLocation } from "../router";
import { Field } from "./form";

export function useVhosts(): string[] {
  const { data } = useLive<{ name: string }[]>(`${path("vhosts")}?columns=name`);
  return data?.map(({ name }) => name) ?? [];
}

/** The options of a field that chooses one virtual host, or all of them. */
export const vhostOptions = (names: string[]): [string, string][] => [
  ["", "all"],
  ...names.map((name): [string, string] => [name, name]),
];

/** The virtual host in the address of the page, or the empty string for all. */
export const useSelectedVhost = (): string => useLocation().query.get("vhost") ?? "";

export function VhostSelect() {
  const chosen = useSelectedVhost();
  const names = useVhosts();
  if (names.length < 2) return null;
  return (
    <select
      aria-label="Virtual host"
      value={chosen}
      onChange={(event) => setQuery({ vhost: event.currentTarget.value, page: "" })}
    >
      <option value="">All virtual hosts</option>
      {names.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}

/** A form field for the virtual host of a new object. */
export function VhostField() {
  const chosen = useSelectedVhost();
  const names = useVhosts();
  // Shown once the names are known, so that the first one is preselected.
  return names.length ? <Field name="vhost" label="Virtual host" choices={names} value={chosen || names[0]} /> : null;
}
