/** Client connections. */

import { path, remove, withQuery } from "../api";
import type { Channel, Connection, StreamConsumer, StreamPublisher } from "../api-types";
import { Arguments } from "../components/arguments";
import { Chart } from "../components/chart";
import { useCluster } from "../components/cluster";
import { ConfirmButton } from "../components/dialog";
import { Card, Facts, Page } from "../components/layout";
import { Badge, ErrorMessage, Loading, State } from "../components/status";
import { type Column, LiveTable, PagedTable } from "../components/table";
import { TimeRangeSelect, useTimeRange } from "../components/time-range";
import { count, formatBytes, time } from "../format";
import { useLive } from "../live";
import { link, navigate } from "../router";
import { ChannelTable } from "./channels";

const SHOWN =
  "name,node,user,vhost,state,ssl,protocol,channels,user_provided_name,peer_host,peer_port,recv_oct_details,send_oct_details";

export function Connections() {
  const node: Column<Connection> = { label: "Node", sort: "node", show: (it) => it.node };
  const ofCluster = useCluster() ? [node] : [];
  return (
    <Page title="Connections">
      <PagedTable<Connection>
        label="Connections"
        url={path("connections")}
        query={{ columns: SHOWN }}
        itemKey={({ name }) => name}
        empty="There are no connections."
        columns={[
          {
            label: "Name",
            sort: "name",
            show: ({ name, user_provided_name: given }) => (
              <>
                <a href={link("connections", name)}>{name}</a>
                {given && <small>{given}</small>}
              </>
            ),
          },
          { label: "Virtual host", sort: "vhost", show: ({ vhost }) => vhost },
          { label: "User", sort: "user", show: ({ user }) => user },
          { label: "State", sort: "state", show: ({ state }) => <State state={state} /> },
          ...ofCluster,
          { label: "Protocol", sort: "protocol", show: ({ protocol, ssl }) => `${protocol}${ssl ? " (TLS)" : ""}` },
          { label: "Channels", sort: "channels", isNumber: true, show: ({ channels }) => count(channels) },
          { label: "From client", sort: "recv_oct_details.rate", isNumber: true, show: (it) => flow(it.recv_oct_details?.rate) },
          { label: "To client", sort: "send_oct_details.rate", isNumber: true, show: (it) => flow(it.send_oct_details?.rate) },
        ]}
      />
    </Page>
  );
}

const flow = (value: number | undefined) => (value === undefined ? "–" : `${formatBytes(value)}/s`);

const STREAM = "stream";

export function ConnectionPage({ name }: { name: string }) {
  const age = useTimeRange();
  const isCluster = useCluster() !== undefined;
  const { data, error } = useLive<Connection>(withQuery(path("connections", name), { data_rates_age: age, data_rates_incr: 5 }));
  return (
    <Page
      title={name}
      aside={
        <>
          <TimeRangeSelect age={age} />
          {data && (
            <ConfirmButton
              label="Force close"
              object={`the connection “${name}”`}
              question="The client is disconnected. Its unacknowledged messages are requeued."
              action={() => remove(path("connections", name)).then(() => navigate(link("connections")))}
            />
          )}
        </>
      }
    >
      <ErrorMessage error={error} />
      {!data && !error && <Loading />}
      {data && (
        <>
          <div class="columns">
            <Card title="Data rates">
              <Chart
                kind="rate"
                format={formatBytes}
                lines={[
                  { label: "From client", details: data.recv_oct_details },
                  { label: "To client", details: data.send_oct_details },
                ]}
              />
            </Card>
            <Card title="Details">
              <Facts
                facts={[
                  ["State", <State state={data.state} />],
                  ["User", data.user],
                  ["Virtual host", data.vhost],
                  ["Protocol", data.protocol],
                  ["TLS", data.ssl ? <Badge tone="good">yes</Badge> : "no"],
                  ["Client", `${data.peer_host}:${data.peer_port}`],
                  ["Node", isCluster ? data.node : undefined],
                  ["Broker", `${data.host}:${data.port}`],
                  ["Connected at", time(data.connected_at)],
                  ["Authentication", data.auth_mechanism],
                  ["Heartbeat", data.timeout ? `${data.timeout} s` : "disabled"],
                  ["Frame max", formatBytes(data.frame_max)],
                  ["Channel limit", data.channel_max ? count(data.channel_max) : undefined],
                  ["Received", formatBytes(data.recv_oct)],
                  ["Sent", formatBytes(data.send_oct)],
                ]}
              />
            </Card>
          </div>
          {data.protocol === STREAM ? <StreamsOf connection={data} /> : <ChannelsOf name={name} />}
          <Card title="Client properties">
            <Arguments table={data.client_properties} />
          </Card>
        </>
      )}
    </Page>
  );
}

function ChannelsOf({ name }: { name: string }) {
  const live = useLive<Channel[]>(path("connections", name, "channels"));
  return (
    <Card title="Channels">
      <ChannelTable live={live} />
    </Card>
  );
}

/** The publishers and subscriptions of a connection of the stream protocol, which has no channels. */
function StreamsOf({ connection: { vhost, name } }: { connection: Connection }) {
  const publishers = useLive<StreamPublisher[]>(path("stream", "connections", vhost, name, "publishers"));
  const consumers = useLive<StreamConsumer[]>(path("stream", "connections", vhost, name, "consumers"));
  return (
    <>
      <Card title="Publishers">
        <LiveTable
          label="Publishers"
          live={publishers}
          itemKey={(it) => String(it.publisher_id)}
          empty="This connection has no publishers."
          columns={[
            { label: "Publisher", isNumber: true, show: (it) => it.publisher_id },
            { label: "Reference", show: ({ reference }) => reference },
            { label: "Stream", show: ({ queue }) => <a href={link("queues", queue.vhost, queue.name)}>{queue.name}</a> },
            { label: "Published", isNumber: true, show: ({ published }) => count(published) },
            { label: "Confirmed", isNumber: true, show: ({ confirmed }) => count(confirmed) },
            { label: "Errored", isNumber: true, show: ({ errored }) => count(errored) },
          ]}
        />
      </Card>
      <Card title="Subscriptions">
        <LiveTable
          label="Subscriptions"
          live={consumers}
          itemKey={(it) => String(it.subscription_id)}
          empty="This connection has no subscriptions."
          columns={[
            { label: "Subscription", isNumber: true, show: (it) => it.subscription_id },
            { label: "Stream", show: ({ queue }) => <a href={link("queues", queue.vhost, queue.name)}>{queue.name}</a> },
            { label: "Delivered", isNumber: true, show: ({ consumed }) => count(consumed) },
            { label: "Last offset", isNumber: true, show: ({ offset, consumed }) => count(consumed ? offset : undefined) },
            { label: "Lag", isNumber: true, show: (it) => count(it.offset_lag) },
            { label: "Credits", isNumber: true, show: ({ credits }) => count(credits) },
            { label: "Properties", show: ({ properties }) => <Arguments table={properties} /> },
          ]}
        />
      </Card>
    </>
  );
}
