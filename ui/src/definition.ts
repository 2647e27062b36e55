/** Definitions of shovels and upstreams as fields of a form: keys, passwords in addresses, and errors. */

import type { Json } from "./api";

export type Definition = Record<string, Json>;

const PASSWORD = /(:\/\/[^\s:/@]*:)[^\s]*@/;
const HIDDEN = "***";

/** An address with its password replaced by asterisks. */
export const masked = (uri: string): string => uri.replace(PASSWORD, `$1${HIDDEN}@`);

/** The addresses of a key, which is one of them or a list. */
export function addressesOf(value: Json | undefined): string[] {
  if (value === undefined || value === null) return [];
  return Array.isArray(value) ? value.map(String) : [String(value)];
}

/** Addresses written one per line; a password that is still masked is that of the old address in its line. */
export function writtenAddresses(text: string, before: Json | undefined): string | string[] {
  const old = addressesOf(before);
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  const found = lines.map((line, index) => {
    if (!line.includes(`:${HIDDEN}@`)) return line;
    const kept = old.find((uri) => masked(uri) === line) ?? old[index] ?? "";
    const password = PASSWORD.exec(kept)?.[0].slice(PASSWORD.exec(kept)?.[1]?.length ?? 0, -1);
    if (password === undefined) throw new Error("write the password in place of ***");
    return line.replace(`:${HIDDEN}@`, () => `:${password}@`);
  });
  return found.length === 1 ? (found[0] ?? "") : found;
}

/** A value as it was typed: a number or a truth value if it looks like one, else text. */
export function typed(text: string): Json {
  return /^(-?\d+|true|false)$/.test(text) ? (JSON.parse(text) as Json) : text;
}

/** The fields among `names` that the reason of a refusal is about, each with the reason. */
export function refusedFields(reason: string, names: string[]): Record<string, string> {
  const said = reason
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line && line !== "Validation failed");
  const found: Record<string, string> = {};
  for (const line of said) {
    // The longest name, as `src-queue` is a part of `src-queue-args`.
    const name = names.filter((each) => line.includes(each)).sort((one, other) => other.length - one.length)[0];
    if (name === undefined) return {};
    found[name] = line;
  }
  return found;
}
