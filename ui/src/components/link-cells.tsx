/** What the tables of shovels and of federation links have in common. */

import type { FederationLink, Shovel } from "../api-types";
import { asSentence, count, formatDuration, plural, time } from "../format";
import { Badge, type Tone } from "./status";

type AnyLink = Shovel | FederationLink;

/** Why a link does not forward, and since when. */
type Reason = Pick<AnyLink, "why" | "why_since"> & { blocked_status?: string };

export const TONES: Record<string, Tone> = { running: "good", starting: "warn" };

/** The state of a link, and that it is held up while it runs. */
export function StateBadge({ link, state }: { link: Reason; state: string }) {
  return (
    <>
      <Badge tone={TONES[state] ?? "bad"}>{state}</Badge>
      {link.blocked_status === "blocked" && <Badge tone="bad">blocked</Badge>}
      {link.blocked_status === "flow" && <Badge tone="warn">flow</Badge>}
    </>
  );
}

/** The state of a link, and why it stands still. */
export function LinkState({ link, state }: { link: Reason; state: string }) {
  return (
    <>
      <StateBadge link={link} state={state} />
      {link.why && (
        <small class="why reason">
          {asSentence(link.why)}
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

/** The last error, unless it is why the link does not forward now. */
export const otherError = (link: Pick<AnyLink, "why" | "last_error">): string =>
  link.why.includes(link.last_error) ? "" : link.last_error;

export function LastError({ link }: { link: AnyLink }) {
  const error = otherError(link);
  if (!link.last_error) return <>–</>;
  return (
    <>
      {error}
      <small class="why quiet" title={time(link.last_error_at)}>
        {formatDuration(Date.now() - link.last_error_at)} ago
      </small>
    </>
  );
}
