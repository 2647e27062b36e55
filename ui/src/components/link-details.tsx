/** What the pages of one shovel and of one federation link have in common. */

import type { ComponentChildren } from "preact";
import type { FederationLink, Shovel } from "../api-types";
import { shortAddress } from "../definition";
import { asSentence, count, formatDuration, plural, rate, time } from "../format";
import { rateOf } from "../model";
import { Chart } from "./chart";
import { Card, Facts, Figure, Figures } from "./layout";
import { otherError, StateBadge } from "./link-cells";

interface LinkDetailsProps {
  link: Shovel | FederationLink;
  state: string;
  facts: [string, ComponentChildren][];
}

const when = (milliseconds: number): string | undefined =>
  milliseconds ? `${time(milliseconds)} (${formatDuration(Date.now() - milliseconds)} ago)` : undefined;

export function LinkDetails({ link, state, facts }: LinkDetailsProps) {
  return (
    <>
      <Standstill link={link} state={state} />
      <Figures>
        <Figure label="State" value={<StateBadge link={link} state={state} />} />
        <Figure label="Forwarded" value={count(link.forwarded)} note={rate(rateOf(link, "forwarded"))} />
        <Figure label="Confirmed" value={count(link.confirmed)} note={`${count(link.unconfirmed)} not yet`} />
        <Figure label="Redelivered" value={count(link.redelivered)} note="may be duplicates" />
        <Figure label="Refused" value={count(link.rejected)} note="returned to the source" />
        <Figure label="Filtered" value={count(link.dropped)} note="removed" />
        <Figure
          label="Behind"
          value={link.lag_messages === null ? "–" : count(link.lag_messages)}
          note={
            link.lag_messages === null
              ? "not known"
              : link.lag_seconds === null
                ? "messages"
                : `messages, ${formatDuration(link.lag_seconds * 1000)}`
          }
        />
      </Figures>
      <div class="columns">
        <Card title="Message rates">
          <Chart
            kind="rate"
            lines={[
              { label: "Forwarded", details: link.forwarded_details },
              { label: "Confirmed", details: link.confirmed_details },
              { label: "Redelivered", details: link.redelivered_details },
              { label: "Refused", details: link.rejected_details },
              { label: "Filtered", details: link.dropped_details },
            ]}
          />
        </Card>
        <Card title="Messages behind">
          <Chart kind="level" lines={[{ label: "Ready at the source", details: link.lag_messages_details }]} />
        </Card>
        {link.lag_seconds !== null && (
          <Card title="Time behind">
            <Chart
              kind="level"
              format={(seconds) => formatDuration(seconds * 1000)}
              lines={[{ label: "Age of the last message when it was forwarded", details: link.lag_seconds_details }]}
            />
          </Card>
        )}
        <Card title="Details">
          <Facts
            facts={[
              ...facts,
              ["From", <Addresses key="from" uris={link.source_uris} />],
              ["To", <Addresses key="to" uris={link.destination_uris} />],
              ["State since", when(link.state_since)],
              ["Running since", when(link.connected_at)],
              ["Last delivery by the source", when(link.delivered_at)],
              [
                "Last error",
                link.last_error && (
                  <>
                    {otherError(link)}
                    <small>{when(link.last_error_at)}</small>
                  </>
                ),
              ],
              ["Next attempt", link.next_attempt_at > Date.now() ? time(link.next_attempt_at) : undefined],
              ["Connected again", link.restarts ? plural(link.restarts, "time") : undefined],
              ["Waiting in memory", link.pending ? plural(link.pending, "message") : undefined],
              ["Delivers", link.delivery_reason ? `${link.delivery}: ${link.delivery_reason}` : link.delivery],
              ["Prefetch count", link.prefetch_count || "unlimited"],
              ["Rate limit", link.rate_max === null ? undefined : rate(link.rate_max)],
              ["Node", link.node],
            ]}
          />
        </Card>
      </div>
    </>
  );
}

/** Why nothing is forwarded, and since when; an idle link is as it should be. */
function Standstill({ link, state }: { link: Shovel | FederationLink; state: string }) {
  if (!link.why) return null;
  const blocked = "blocked_status" in link && link.blocked_status !== "running";
  const tone = state === "starting" || blocked ? "paused condition" : state === "running" ? "quiet" : "failure condition";
  return (
    <p class={tone} role="status">
      {asSentence(link.why)}
      {link.why_since > 0 && ` (for ${formatDuration(Date.now() - link.why_since)})`}
    </p>
  );
}

const Addresses = ({ uris }: { uris: string[] }) => (
  <>
    {uris.map((uri) => (
      <div key={uri} title={uri}>
        {shortAddress(uri)}
      </div>
    ))}
  </>
);
