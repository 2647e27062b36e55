/** Which virtual host a list is about: all, or one. */

import { path } from "../api";
import { useLive } from "../live";
import { setQuery, usePlace } from "../router";
import { Field } from "./ui";

export function useVhosts(): string[] {
  const { data } = useLive<{ name: string }[]>(`${path("vhosts")}?columns=name`);
  return data?.map(({ name }) => name) ?? [];
}

/** The options of a field that chooses one virtual host, or all of them. */
export const vhostOptions = (names: string[]): [string, string][] => [
  ["", "all"],
  ...names.map((name): [string, string] => [name, name]),
];

/** The virtual host that the address of the page names, if any. */
export const useChosenVhost = (): string => usePlace().query.get("vhost") ?? "";

export function VhostChoice() {
  const chosen = useChosenVhost();
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

/** The field of a form in which something is made in a virtual host. */
export function VhostField() {
  const chosen = useChosenVhost();
  const names = useVhosts();
  // It appears when the names are there, so that the first one is chosen and not an empty one.
  return names.length ? <Field name="vhost" label="Virtual host" choices={names} value={chosen || names[0]} /> : null;
}
