/** The time range that the charts of a page show, which is in the address of the page. */

import { setQuery, useLocation } from "../router";

const RANGES: [string, string, number][] = [
  ["60", "last minute", 5],
  ["600", "last 10 minutes", 5],
  ["3600", "last hour", 60],
];

/** The query parameters that ask for samples of the last `age` seconds. */
export function samplingQuery(age: string): Record<string, string | number> {
  const step = RANGES.find(([seconds]) => seconds === age)?.[2] ?? 5;
  return { lengths_age: age, lengths_incr: step, msg_rates_age: age, msg_rates_incr: step };
}

export function TimeRangeSelect({ age }: { age: string }) {
  return (
    <select aria-label="Time range" value={age} onChange={(event) => setQuery({ age: event.currentTarget.value })}>
      {RANGES.map(([seconds, text]) => (
        <option key={seconds} value={seconds}>
          {text}
        </option>
      ))}
    </select>
  );
}

export function useTimeRange(): string {
  return useLocation().query.get("age") ?? "60";
}
