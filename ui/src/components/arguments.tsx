/** Argument tables: shown as a list, and parsed from lines of name = value. */

import { asText } from "../format";
import type { AmqpTable } from "../model";

export function Arguments({ table }: { table: AmqpTable | undefined }) {
  const entries = Object.entries(table ?? {});
  if (!entries.length) return null;
  return (
    <ul class="arguments">
      {entries.map(([name, value]) => (
        <li key={name}>
          <span class="quiet">{name}</span> {asText(value)}
        </li>
      ))}
    </ul>
  );
}

/** Parses one `name = value` per line; a value that is not JSON is text. */
export function parseArguments(text: string): AmqpTable {
  const table: AmqpTable = {};
  for (const line of text.split("\n").filter((line) => line.trim())) {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`“${line.trim()}” is not an argument: write name = value`);
    const value = line.slice(at + 1).trim();
    try {
      table[line.slice(0, at).trim()] = JSON.parse(value) as unknown;
    } catch {
      table[line.slice(0, at).trim()] = value;
    }
  }
  return table;
}

export const ARGUMENTS_NOTE = "one per line: name = value; values that are JSON are sent as JSON, others as text";
