/** What the tables of shovels and of federation links have in common. */

import type { FederationLink, Shovel } from "../api-types";
import { count, formatDuration, plural, time } from "../format";
import { Badge, type Tone } from "./status";

type AnyLink = Shovel | FederationLink;

const TONES: Record<string, Tone> = { running: "good", starting: "warn" };

/** The state of a link, and why it stands still. */
export function LinkState({ link, state }: { link: AnyLink; state: string }) {
  return (
    <>
      <Badge tone={TONES[state] ?? "bad"}>{state}</Badge>
      {link.why && (
        <small class="why reason">
          {link.why}
          {link.why_since > 0 && ` (for ${formatDuration(Date.now() - link.why_since)})`}
        </small>
      )}
    </>
  );
}

/** How far a link is behind, in messages and in time. */
export function Lag({ link }: { link: AnyLink }) {
  return (
    <>
      {link.lag_messages === null ? "–" : plural(link.lag_messages, "message")}
      {link.lag_seconds !== null && <small class="why quiet">{formatDuration(link.lag_seconds * 1000)} behind</small>}
    </>
  );
}

export function Forwarded({ link }: { link: AnyLink }) {
  const others: [number, string][] = [
    [link.rejected, "refused"],
    [link.dropped, "filtered"],
    [link.redelivered, "redelivered"],
  ];
  return (
    <>
      {count(link.forwarded)}
      {others
        .filter(([number]) => number)
        .map(([number, what]) => (
          <small key={what} class="why quiet">
            {count(number)} {what}
          </small>
        ))}
    </>
  );
}

export function LastError({ link }: { link: AnyLink }) {
  if (!link.last_error) return <>–</>;
  return (
    <>
      {link.last_error}
      <small class="why quiet">{time(link.last_error_at)}</small>
    </>
  );
}
