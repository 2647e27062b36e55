/** The list of streams: offsets, sizes, retention and consumer lag. */

import { path } from "../api";
import type { ListedStream, Retention } from "../api-types";
import { Page } from "../components/layout";
import { Badge } from "../components/status";
import { PagedTable } from "../components/table";
import { useSelectedVhost, VhostSelect } from "../components/vhost-select";
import { count, formatBytes, formatDuration } from "../format";
import { link } from "../router";

export function Streams() {
  const vhost = useSelectedVhost();
  return (
    <Page title="Streams" aside={<VhostSelect />}>
      <PagedTable<ListedStream>
        label="Streams"
        url={vhost ? path("warren", "streams", vhost) : path("warren", "streams")}
        itemKey={(stream) => `${stream.vhost} ${stream.name}`}
        empty="There are no streams. To create one, declare a queue of type stream."
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
          { label: "First offset", sort: "first_offset", isNumber: true, show: (it) => count(it.first_offset) },
          { label: "End offset", sort: "committed_offset", isNumber: true, show: (it) => count(it.committed_offset) },
          { label: "Size", sort: "bytes", isNumber: true, show: (it) => formatBytes(it.bytes) },
          { label: "Segments", sort: "segments", isNumber: true, show: (it) => count(it.segments) },
          { label: "Oldest", sort: "first_time", isNumber: true, show: (it) => ago(it.first_time) },
          { label: "Retention", show: (it) => describeRetention(it.retention) },
          { label: "Consumers", sort: "readers", isNumber: true, show: (it) => count(it.readers) },
          { label: "Max lag", sort: "max_lag", isNumber: true, show: (it) => count(it.max_lag ?? undefined) },
          { label: "Publishers", sort: "publishers", isNumber: true, show: (it) => count(it.publishers) },
        ]}
      />
    </Page>
  );
}

/** The time that has passed since `time`. */
export const ago = (time: number | null): string => (time === null ? "–" : formatDuration(Date.now() - time));

/** The limits of a retention in words. */
export function describeRetention({ max_age_ms: age, max_bytes: size }: Retention): string {
  const limits = [size === null ? "" : formatBytes(size), age === null ? "" : formatDuration(age)].filter(Boolean);
  return limits.join(", ") || "unlimited";
}
