/** Who is connected. */

import { path, remove, withQuery } from "../api";
import { Arguments } from "../components/arguments";
import { Chart } from "../components/chart";
import { Confirm } from "../components/dialog";
import { Listing, LiveTable } from "../components/table";
import { Badge, Card, Facts, Failure, Loading, Page, State } from "../components/ui";
import { count, octets, time } from "../format";
import { useLive } from "../live";
import type { Channel, Connection, StreamConsumer, StreamPublication } from "../model";
import { go, link } from "../router";
import { ChannelTable } from "./channels";
import { SpanChoice, useAge } from "./overview";

const SHOWN =
  "name,user,vhost,state,ssl,protocol,channels,user_provided_name,peer_host,peer_port,recv_oct_details,send_oct_details";

export function Connections() {
  return (
    <Page title="Connections">
      <Listing<Connection>
        label="Connections"
        url={path("connections")}
        query={{ columns: SHOWN }}
        itemKey={({ name }) => name}
        empty="Nobody is connected."
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
          { label: "Protocol", sort: "protocol", show: ({ protocol, ssl }) => `${protocol}${ssl ? " (TLS)" : ""}` },
          { label: "Channels", sort: "channels", isNumber: true, show: ({ channels }) => count(channels) },
          { label: "From client", sort: "recv_oct_details.rate", isNumber: true, show: (it) => flow(it.recv_oct_details?.rate) },
          { label: "To client", sort: "send_oct_details.rate", isNumber: true, show: (it) => flow(it.send_oct_details?.rate) },
        ]}
      />
    </Page>
  );
}

const flow = (value: number | undefined) => (value === undefined ? "–" : `${octets(value)}/s`);

const STREAM = "stream";

export function ConnectionPage({ name }: { name: string }) {
  const age = useAge();
  const { data, error } = useLive<Connection>(withQuery(path("connections", name), { data_rates_age: age, data_rates_incr: 5 }));
  return (
    <Page
      title={name}
      aside={
        <>
          <SpanChoice age={age} />
          {data && (
            <Confirm
              label="Close"
              object={`the connection “${name}”`}
              question="The client is disconnected. What it has not acknowledged goes back to its queues."
              action={() => remove(path("connections", name)).then(() => go(link("connections")))}
            />
          )}
        </>
      }
    >
      <Failure error={error} />
      {!data && !error && <Loading />}
      {data && (
        <>
          <div class="columns">
            <Card title="Octets a second">
              <Chart
                kind="rate"
                format={octets}
                lines={[
                  { label: "From client", details: data.recv_oct_details },
                  { label: "To client", details: data.send_oct_details },
                ]}
              />
            </Card>
            <Card title="Facts">
              <Facts
                facts={[
                  ["State", <State state={data.state} />],
                  ["User", data.user],
                  ["Virtual host", data.vhost],
                  ["Protocol", data.protocol],
                  ["TLS", data.ssl ? <Badge tone="good">yes</Badge> : "no"],
                  ["Client", `${data.peer_host}:${data.peer_port}`],
                  ["Broker", `${data.host}:${data.port}`],
                  ["Since", time(data.connected_at)],
                  ["Signed in by", data.auth_mechanism],
                  ["Heartbeat", data.timeout ? `${data.timeout} s` : "none"],
                  ["Largest frame", octets(data.frame_max)],
                  ["Channels at most", data.channel_max ? count(data.channel_max) : undefined],
                  ["Received", octets(data.recv_oct)],
                  ["Sent", octets(data.send_oct)],
                ]}
              />
            </Card>
          </div>
          {data.protocol === STREAM ? <StreamsOf connection={data} /> : <ChannelsOf name={name} />}
          <Card title="What the client says of itself">
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

/** What a client of the stream protocol does, which has no channels. */
function StreamsOf({ connection: { vhost, name } }: { connection: Connection }) {
  const publishers = useLive<StreamPublication[]>(path("stream", "connections", vhost, name, "publishers"));
  const consumers = useLive<StreamConsumer[]>(path("stream", "connections", vhost, name, "consumers"));
  return (
    <>
      <Card title="Publishers">
        <LiveTable
          label="Publishers"
          live={publishers}
          itemKey={(it) => String(it.publisher_id)}
          empty="It publishes to no stream."
          columns={[
            { label: "Publisher", isNumber: true, show: (it) => it.publisher_id },
            { label: "Reference", show: ({ reference }) => reference },
            { label: "Stream", show: ({ queue }) => <a href={link("queues", queue.vhost, queue.name)}>{queue.name}</a> },
            { label: "Published", isNumber: true, show: ({ published }) => count(published) },
            { label: "Confirmed", isNumber: true, show: ({ confirmed }) => count(confirmed) },
            { label: "Refused", isNumber: true, show: ({ errored }) => count(errored) },
          ]}
        />
      </Card>
      <Card title="Subscriptions">
        <LiveTable
          label="Subscriptions"
          live={consumers}
          itemKey={(it) => String(it.subscription_id)}
          empty="It reads no stream."
          columns={[
            { label: "Subscription", isNumber: true, show: (it) => it.subscription_id },
            { label: "Stream", show: ({ queue }) => <a href={link("queues", queue.vhost, queue.name)}>{queue.name}</a> },
            { label: "Sent", isNumber: true, show: ({ consumed }) => count(consumed) },
            { label: "Last offset", isNumber: true, show: ({ offset, consumed }) => count(consumed ? offset : undefined) },
            { label: "Behind", isNumber: true, show: (it) => count(it.offset_lag) },
            { label: "Credit", isNumber: true, show: ({ credits }) => count(credits) },
            { label: "Properties", show: ({ properties }) => <Arguments table={properties} /> },
          ]}
        />
      </Card>
    </>
  );
}
