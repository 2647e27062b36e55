/** Numbers, sizes and times as text. */

const COUNT = new Intl.NumberFormat("en-US");
const SHORT = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export const count = (value: number | undefined): string => (value === undefined ? "–" : COUNT.format(value));

export const short = (value: number): string => SHORT.format(value);

/** A number with its noun, as in "1 message" and "2 messages". */
export const plural = (value: number, noun: string): string => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/** A rate per second. */
export function rate(value: number | undefined): string {
  if (value === undefined) return "–";
  return value < 10 ? `${Number(value.toFixed(1))}/s` : `${COUNT.format(Math.round(value))}/s`;
}

export function formatBytes(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return "–";
  let unit = 0;
  let scaled = value;
  while (scaled >= 1024 && unit < UNITS.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  return `${unit && scaled < 100 ? scaled.toFixed(1) : Math.round(scaled)} ${UNITS[unit]}`;
}

/** A duration, in its two largest units. */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const parts: [number, string][] = [
    [Math.floor(seconds / 86400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([value]) => value > 0);
  if (first < 0) return "0 s";
  return parts
    .slice(first, first + 2)
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(" ");
}

export const time = (milliseconds: number): string => new Date(milliseconds).toLocaleString();

/** A text with a capital letter, if it begins with a word. */
export const asSentence = (text: string): string =>
  /^\p{L}+[ ,']/u.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;

/** A value of an arguments table as text. */
export function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
