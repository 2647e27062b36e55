/** Channels: their mode, consumers, unacknowledged messages and rates. */

import { path, withQuery } from "../api";
import type { Channel } from "../api-types";
import { Chart } from "../components/chart";
import { ConsumerTable } from "../components/consumer-table";
import { Card, Facts, Page } from "../components/layout";
import { Badge, ErrorMessage, Loading, State } from "../components/status";
import { type Column, LiveTable, PagedTable } from "../components/table";
import { samplingQuery, TimeRangeSelect, useTimeRange } from "../components/time-range";
import { count, rate } from "../format";
import { type Live, useLive } from "../live";
import { rateOf } from "../model";
import { link } from "../router";

const COLUMNS: Column<Channel>[] = [
  { label: "Channel", sort: "name", show: ({ name }) => <a href={link("channels", name)}>{name}</a> },
  { label: "Virtual host", sort: "vhost", show: ({ vhost }) => vhost },
  { label: "User", sort: "user", show: ({ user }) => user },
  { label: "State", sort: "state", show: ({ state }) => <State state={state} /> },
  { label: "Mode", show: (channel) => <Mode channel={channel} /> },
  { label: "Consumers", sort: "consumer_count", isNumber: true, show: (it) => count(it.consumer_count) },
  { label: "Prefetch", sort: "prefetch_count", isNumber: true, show: (it) => it.prefetch_count || "unlimited" },
  { label: "Unacknowledged", sort: "messages_unacknowledged", isNumber: true, show: (it) => count(it.messages_unacknowledged) },
  { label: "Unconfirmed", sort: "messages_unconfirmed", isNumber: true, show: (it) => count(it.messages_unconfirmed) },
  {
    label: "Publish",
    sort: "message_stats.publish_details.rate",
    isNumber: true,
    show: (it) => rate(rateOf(it.message_stats, "publish")),
  },
  {
    label: "Deliver / get",
    sort: "message_stats.deliver_get_details.rate",
    isNumber: true,
    show: (it) => rate(rateOf(it.message_stats, "deliver_get")),
  },
  {
    label: "Ack",
    sort: "message_stats.ack_details.rate",
    isNumber: true,
    show: (it) => rate(rateOf(it.message_stats, "ack")),
  },
];

function Mode({ channel }: { channel: Channel }) {
  return (
    <>
      {channel.confirm && <Badge title="publisher confirms">confirm</Badge>}
      {channel.transactional && <Badge title="tx.select: publishes and acknowledgements are transactional">transactional</Badge>}
    </>
  );
}

export function Channels() {
  return (
    <Page title="Channels">
      <PagedTable<Channel>
        label="Channels"
        url={path("channels")}
        itemKey={({ name }) => name}
        empty="No channels are open."
        columns={COLUMNS}
      />
    </Page>
  );
}

export const ChannelTable = ({ live }: { live: Live<Channel[]> }) => (
  <LiveTable label="Channels" live={live} itemKey={({ name }) => name} columns={COLUMNS} />
);

export function ChannelPage({ name }: { name: string }) {
  const age = useTimeRange();
  const { data, error } = useLive<Channel>(withQuery(path("channels", name), samplingQuery(age)));
  const stats = data?.message_stats;
  return (
    <Page title={name} aside={<TimeRangeSelect age={age} />}>
      <ErrorMessage error={error} />
      {!data && !error && <Loading />}
      {data && (
        <>
          <div class="columns">
            <Card title="Message rates">
              <Chart
                kind="rate"
                lines={[
                  { label: "Publish", details: stats?.publish_details },
                  { label: "Confirm", details: stats?.confirm_details },
                  { label: "Deliver / get", details: stats?.deliver_get_details },
                  { label: "Ack", details: stats?.ack_details },
                ]}
              />
            </Card>
            <Card title="Details">
              <Facts
                facts={[
                  ["State", <State state={data.state} />],
                  [
                    "Connection",
                    data.connection_details && (
                      <a href={link("connections", data.connection_details.name)}>{data.connection_details.name}</a>
                    ),
                  ],
                  ["User", data.user],
                  ["Virtual host", data.vhost],
                  ["Mode", <Mode channel={data} />],
                  ["Prefetch (per consumer)", data.prefetch_count || "unlimited"],
                  ["Prefetch (global)", data.global_prefetch_count || "unlimited"],
                  ["Unacknowledged", count(data.messages_unacknowledged)],
                  ["Unconfirmed", count(data.messages_unconfirmed)],
                  ["Uncommitted messages", count(data.messages_uncommitted)],
                  ["Uncommitted acks", count(data.acks_uncommitted)],
                  ["Idle since", data.idle_since],
                ]}
              />
            </Card>
          </div>
          <Card title="Consumers">
            <ConsumerTable consumers={data.consumer_details ?? []} />
          </Card>
        </>
      )}
    </Page>
  );
}
