/** A followed list of shovels or federation links, which can be long: filtered by name and state, a part shown. */

import { useState } from "preact/hooks";
import { count } from "../format";
import type { Live } from "../live";
import { type Column, LiveTable } from "./table";

const SHOWN_MAX = 50;
/** Shorter lists have no filter. */
const UNFILTERED_MAX = 10;

interface LinkTableProps<T> {
  label: string;
  live: Pick<Live<T[]>, "data" | "error">;
  itemKey: (item: T) => string;
  /** The text in which the filter is searched. */
  textOf: (item: T) => string;
  /** The state of an item; links that do not run come first. */
  stateOf?: (item: T) => string;
  empty: string;
  columns: Column<T>[];
}

export function LinkTable<T>({ live, textOf, stateOf, label, ...rest }: LinkTableProps<T>) {
  const [text, setText] = useState("");
  const [state, setState] = useState("");
  const [most, setMost] = useState(SHOWN_MAX);
  const all = live.data ?? [];
  const states = stateOf ? [...new Set(all.map(stateOf))].sort() : [];
  const wanted = text.toLowerCase();
  const found = all.filter((item) => textOf(item).toLowerCase().includes(wanted) && (!state || stateOf?.(item) === state));
  if (stateOf) found.sort((one, other) => Number(stateOf(one) === "running") - Number(stateOf(other) === "running"));
  const shown = found.slice(0, most);
  const isFiltered = all.length > UNFILTERED_MAX;
  return (
    <>
      {isFiltered && (
        <div class="filter">
          <input
            type="search"
            aria-label={`Filter ${label} by name`}
            placeholder="Filter by name"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          {states.length > 1 && (
            <select aria-label={`State of ${label}`} value={state} onChange={(event) => setState(event.currentTarget.value)}>
              <option value="">all states</option>
              {states.map((each) => (
                <option key={each} value={each}>
                  {`${each} (${count(all.filter((item) => stateOf?.(item) === each).length)})`}
                </option>
              ))}
            </select>
          )}
          <span class="quiet" role="status">
            {found.length === all.length ? count(all.length) : `${count(found.length)} of ${count(all.length)}`}
          </span>
        </div>
      )}
      <LiveTable
        label={label}
        live={{ data: live.data && shown, error: live.error }}
        {...rest}
        empty={isFiltered ? "No name matches the filter." : rest.empty}
      />
      {shown.length < found.length && (
        <p class="form-end">
          <button type="button" onClick={() => setMost(most + SHOWN_MAX)}>
            Show more
          </button>
          <span class="quiet">
            {count(shown.length)} of {count(found.length)}
          </span>
        </p>
      )}
    </>
  );
}
