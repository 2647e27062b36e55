/** Arguments: shown as they are, and written as lines of name = value. */

import { shown } from "../format";

export type Table = Record<string, unknown>;

export function Arguments({ table }: { table: Table | undefined }) {
  const entries = Object.entries(table ?? {});
  if (!entries.length) return null;
  return (
    <ul class="arguments">
      {entries.map(([name, value]) => (
        <li key={name}>
          <span class="quiet">{name}</span> {shown(value)}
        </li>
      ))}
    </ul>
  );
}

/** The arguments that `text` says: one a line, `name = value`; a value that is JSON is that, any other is text. */
export function parseArguments(text: string): Table {
  const table: Table = {};
  for (const line of text.split("\n").filter((line) => line.trim())) {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`“${line.trim()}” is not written as name = value`);
    const value = line.slice(at + 1).trim();
    try {
      table[line.slice(0, at).trim()] = JSON.parse(value) as unknown;
    } catch {
      table[line.slice(0, at).trim()] = value;
    }
  }
  return table;
}

export const ARGUMENTS_NOTE = "one a line: name = value; numbers, true, false and lists as in JSON";
