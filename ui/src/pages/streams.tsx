/** Every stream that one may see: how far it goes, what is kept of it, and who keeps up. */

import { path } from "../api";
import { Listing } from "../components/table";
import { Badge, Page } from "../components/ui";
import { useChosenVhost, VhostChoice } from "../components/vhost-select";
import { count, octets, span } from "../format";
import type { ListedStream, Retention } from "../model";
import { link } from "../router";

export function Streams() {
  const vhost = useChosenVhost();
  return (
    <Page title="Streams" aside={<VhostChoice />}>
      <Listing<ListedStream>
        label="Streams"
        url={vhost ? path("warren", "streams", vhost) : path("warren", "streams")}
        itemKey={(stream) => `${stream.vhost} ${stream.name}`}
        empty="There are none. A stream is a queue of the type stream."
        columns={[
          { label: "Virtual host", sort: "vhost", show: (it) => it.vhost },
          {
            label: "Name",
            sort: "name",
            show: (it) => (
              <>
                <a href={link("queues", it.vhost, it.name)}>{it.name}</a>
                {it.is_paused && <Badge tone="warn">paused</Badge>}
              </>
            ),
          },
          { label: "First", sort: "first", isNumber: true, show: (it) => count(it.first) },
          { label: "End", sort: "committed", isNumber: true, show: (it) => count(it.committed) },
          { label: "Size", sort: "octets", isNumber: true, show: (it) => octets(it.octets) },
          { label: "Files", sort: "segments", isNumber: true, show: (it) => count(it.segments) },
          { label: "Goes back", sort: "first_time", isNumber: true, show: (it) => ago(it.first_time) },
          { label: "Kept", show: (it) => kept(it.retention) },
          { label: "Readers", sort: "readers", isNumber: true, show: (it) => count(it.readers) },
          { label: "Most behind", sort: "lag_max", isNumber: true, show: (it) => count(it.lag_max ?? undefined) },
          { label: "Publishers", sort: "publishers", isNumber: true, show: (it) => count(it.publishers) },
        ]}
      />
    </Page>
  );
}

/** How long ago `time` was. */
export const ago = (time: number | null): string => (time === null ? "–" : span(Date.now() - time));

/** How much is kept, in a few words. */
export function kept({ age_ms_max: age, octets_max: size }: Retention): string {
  const limits = [size === null ? "" : octets(size), age === null ? "" : span(age)].filter(Boolean);
  return limits.join(", ") || "everything";
}
