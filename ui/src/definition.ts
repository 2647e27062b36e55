/** Definitions of shovels and upstreams as fields of a form: addresses, values, and errors. */

import type { Json } from "./api";

export type Definition = Record<string, Json>;

/** The addresses of a key, which is one of them or a list. */
export function addressesOf(value: Json | undefined): string[] {
  if (value === undefined || value === null) return [];
  return Array.isArray(value) ? value.map(String) : [String(value)];
}

/** An address without credentials in few words: host, port and virtual host. */
export function shortAddress(uri: string): string {
  const [, host = "", vhost] = /^\w+:\/\/([^/]*)(?:\/(.*))?$/.exec(uri) ?? [];
  const shown = vhost === undefined || vhost.toLowerCase() === "%2f" ? "" : decoded(vhost);
  return [host || "this broker", shown].filter(Boolean).join(", ");
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Addresses written one per line; the broker puts stored passwords in place of the asterisks that it shows. */
export function writtenAddresses(text: string): string | string[] {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  return lines.length === 1 ? (lines[0] ?? "") : lines;
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
