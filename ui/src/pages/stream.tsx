/** What a queue has that is a stream: offsets, files, readers and publishers, and where to begin to look. */

import { useState } from "preact/hooks";
import { get, path, withQuery } from "../api";
import { Table } from "../components/table";
import { Badge, Card, Facts, Failure, Field, Figure, Figures, Loading } from "../components/ui";
import { count, octets, time } from "../format";
import { useLive } from "../live";
import type { Stream, StreamClients, StreamReader } from "../model";
import { link } from "../router";
import { COUNT } from "./message-search";
import type { Start } from "./peek";
import { ago, kept } from "./streams";

interface StreamName {
  vhost: string;
  name: string;
}

/** Of many files the newest are shown. */
const FILES_SHOWN = 100;
const streamAt = (vhost: string, name: string) => path("warren", "streams", vhost, name);
const useClients = ({ vhost, name }: StreamName) => useLive<StreamClients>(path("warren", "streams", vhost, name, "clients"));

export function StreamFigures({ vhost, name }: StreamName) {
  const { data } = useLive<Stream>(streamAt(vhost, name));
  const clients = useClients({ vhost, name }).data;
  const lags = (clients?.readers ?? []).map(({ lag }) => lag ?? 0);
  return (
    <Figures>
      <Figure label="Messages" value={count(data && data.committed - data.first)} />
      <Figure label="First offset" value={count(data?.first)} />
      <Figure label="End" value={count(data?.committed)} />
      <Figure label="On the disk" value={octets(data?.octets)} />
      <Figure label="Readers" value={count(clients?.readers.length)} />
      <Figure label="Most behind" value={count(lags.length ? Math.max(...lags) : undefined)} />
    </Figures>
  );
}

export function StreamFacts({ vhost, name }: StreamName) {
  const { data, error } = useLive<Stream>(streamAt(vhost, name));
  if (!data) return error ? <Failure error={error} /> : <Loading />;
  const { retention, segments } = data;
  return (
    <>
      <Card title="What is there">
        <Facts
          facts={[
            ["Offsets", data.committed > data.first ? `${count(data.first)} to ${count(data.committed - 1)}` : "none yet"],
            ["Goes back", segments[0] ? `${ago(segments[0].first_time)}, to ${time(segments[0].first_time)}` : undefined],
            ["Kept at least", kept(retention)],
            ["Size of a file", octets(retention.segment_size)],
            ["Epoch", <code>{data.epoch}</code>],
          ]}
        />
      </Card>
      <Card title="Files">
        {segments.length > FILES_SHOWN && (
          <p class="quiet">
            The newest {FILES_SHOWN} of {count(segments.length)}.
          </p>
        )}
        <Table
          label="Files"
          items={segments.slice(-FILES_SHOWN).reverse()}
          itemKey={({ first }) => String(first)}
          empty="Nothing is written yet."
          columns={[
            { label: "First", isNumber: true, show: ({ first }) => count(first) },
            { label: "Last", isNumber: true, show: ({ end }) => count(end - 1) },
            { label: "Size", isNumber: true, show: (it) => octets(it.octets) },
            { label: "From", show: ({ first_time }) => time(first_time) },
            { label: "To", show: ({ last_time }) => time(last_time) },
            {
              label: "State",
              show: ({ is_sealed }) => (is_sealed ? <Badge>complete</Badge> : <Badge tone="good">written to</Badge>),
            },
          ]}
        />
      </Card>
    </>
  );
}

/** Who reads and publishes now, and what the stream remembers of those who did. */
export function StreamClientsOf({ vhost, name }: StreamName) {
  const { data, error } = useClients({ vhost, name });
  if (!data) return error ? <Failure error={error} /> : <Loading />;
  return (
    <>
      <Card title="Readers">
        <Table
          label="Readers"
          items={data.readers}
          itemKey={(it) => `${it.connection} ${it.channel} ${it.subscription} ${it.name}`}
          empty="Nobody reads."
          columns={[
            { label: "Behind", isNumber: true, show: (reader) => <Lag reader={reader} /> },
            { label: "Reader", show: (reader) => named(reader) },
            { label: "Next offset", isNumber: true, show: ({ offset }) => count(offset ?? undefined) },
            { label: "User", show: ({ user }) => user },
            { label: "Protocol", show: ({ protocol }) => protocol },
            { label: "Connection", show: ({ connection }) => <a href={link("connections", connection)}>{connection}</a> },
          ]}
        />
      </Card>
      <Card title="Publishers">
        <Table
          label="Publishers"
          items={data.publishers}
          itemKey={(it) => `${it.connection} ${it.publisher}`}
          empty="Nobody publishes by the stream protocol."
          columns={[
            { label: "Publisher", show: ({ publisher, reference }) => `${publisher}${reference && `, ${reference}`}` },
            { label: "User", show: ({ user }) => user },
            { label: "Published", isNumber: true, show: ({ published }) => count(published) },
            { label: "Confirmed", isNumber: true, show: ({ confirmed }) => count(confirmed) },
            { label: "Refused", isNumber: true, show: ({ refused }) => count(refused) },
            { label: "Connection", show: ({ connection }) => <a href={link("connections", connection)}>{connection}</a> },
          ]}
        />
      </Card>
      <div class="columns">
        <Card title="Offsets that consumers have stored">
          <Table
            label="Stored offsets"
            items={data.offsets}
            itemKey={({ reference }) => reference}
            columns={[
              { label: "Consumer", show: ({ reference }) => reference },
              { label: "Offset", isNumber: true, show: ({ offset }) => count(offset) },
              { label: "Behind", isNumber: true, show: ({ lag }) => count(lag) },
            ]}
          />
        </Card>
        <Card title="What producers have sent last">
          <Table
            label="Sequences of producers"
            items={data.sequences}
            itemKey={({ reference }) => reference}
            columns={[
              { label: "Producer", show: ({ reference }) => reference },
              { label: "Sequence", isNumber: true, show: ({ sequence }) => count(sequence) },
            ]}
          />
        </Card>
      </div>
    </>
  );
}

const named = ({ name, channel, subscription }: StreamReader): string =>
  channel === null ? `subscription ${subscription}${name && `, ${name}`}` : `channel ${channel}, ${name}`;

function Lag({ reader: { lag, is_active } }: { reader: StreamReader }) {
  if (!is_active || lag === null) return <Badge title="another of its group gets the messages">waits</Badge>;
  return <>{count(lag)}</>;
}

const STARTS: [string, string][] = [
  ["last", `with the last ${COUNT}`],
  ["first", "with the first"],
  ["offset", "with an offset"],
  ["time", "with a time"],
];

/** A stream can be looked into from any of its messages on. */
export const streamStart: Start = {
  first: (vhost, name) => lastOf(vhost, name),
  Fields: StartFields,
  from: async ({ start, offset, time: text }, vhost, name) => {
    const address = streamAt(vhost, name);
    if (start === "offset") return Number(offset);
    if (start === "first") return (await get<Stream>(address)).first;
    if (start === "last") return lastOf(vhost, name);
    const timestamp = new Date(text ?? "").getTime();
    return (await get<Stream>(withQuery(address, { timestamp: Math.max(timestamp, 0) }))).offset ?? 0;
  },
  hasOffsets: true,
};

async function lastOf(vhost: string, name: string): Promise<number> {
  const { first, committed } = await get<Stream>(streamAt(vhost, name));
  return Math.max(first, committed - COUNT);
}

function StartFields() {
  const [start, setStart] = useState("last");
  return (
    <div onChange={({ target }) => target instanceof HTMLSelectElement && setStart(target.value)}>
      <Field name="start" label="Begin" choices={STARTS} />
      {start === "offset" && <Field name="offset" label="Offset" type="number" value={0} required />}
      {start === "time" && <Field name="time" label="Time" type="datetime-local" step="1" required />}
    </div>
  );
}
