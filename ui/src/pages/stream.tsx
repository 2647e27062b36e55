/** The stream parts of a queue page: offsets, segments, consumers, publishers, and the start position of peeking. */

import { useState } from "preact/hooks";
import { get, path, withQuery } from "../api";
import type { Stream, StreamClients, StreamReader } from "../api-types";
import { Field } from "../components/form";
import { Card, Facts, Figure, Figures } from "../components/layout";
import { Badge, ErrorMessage, Loading } from "../components/status";
import { Table } from "../components/table";
import { count, formatBytes, time } from "../format";
import { useLive } from "../live";
import { link } from "../router";
import { PAGE_SIZE } from "./message-search";
import type { PeekStart } from "./peek";
import { ago, describeRetention } from "./streams";

interface StreamName {
  vhost: string;
  name: string;
}

/** The newest segments, as a stream can have many. */
const SEGMENTS_SHOWN = 100;
const streamAt = (vhost: string, name: string) => path("warren", "streams", vhost, name);
const useClients = ({ vhost, name }: StreamName) => useLive<StreamClients>(path("warren", "streams", vhost, name, "clients"));

export function StreamFigures({ vhost, name }: StreamName) {
  const { data } = useLive<Stream>(streamAt(vhost, name));
  const clients = useClients({ vhost, name }).data;
  const lags = (clients?.readers ?? []).map(({ lag }) => lag ?? 0);
  return (
    <Figures>
      <Figure label="Messages" value={count(data && data.committed_offset - data.first_offset)} />
      <Figure label="First offset" value={count(data?.first_offset)} />
      <Figure label="End offset" value={count(data?.committed_offset)} />
      <Figure label="Size on disk" value={formatBytes(data?.bytes)} />
      <Figure label="Consumers" value={count(clients?.readers.length)} />
      <Figure label="Max lag" value={count(lags.length ? Math.max(...lags) : undefined)} />
    </Figures>
  );
}

export function StreamFacts({ vhost, name }: StreamName) {
  const { data, error } = useLive<Stream>(streamAt(vhost, name));
  if (!data) return error ? <ErrorMessage error={error} /> : <Loading />;
  const { retention, segments } = data;
  return (
    <>
      <Card title="Stream">
        <Facts
          facts={[
            [
              "Offsets",
              data.committed_offset > data.first_offset
                ? `${count(data.first_offset)} to ${count(data.committed_offset - 1)}`
                : "no messages yet",
            ],
            ["Oldest message", segments[0] ? `${time(segments[0].first_time)} (${ago(segments[0].first_time)} ago)` : undefined],
            ["Retention", describeRetention(retention)],
            ["Segment size", formatBytes(retention.segment_size)],
            ["Epoch", <code>{data.epoch}</code>],
          ]}
        />
      </Card>
      <Card title="Segments">
        {segments.length > SEGMENTS_SHOWN && (
          <p class="quiet">
            The newest {SEGMENTS_SHOWN} of {count(segments.length)}.
          </p>
        )}
        <Table
          label="Segments"
          items={segments.slice(-SEGMENTS_SHOWN).reverse()}
          itemKey={(it) => String(it.first_offset)}
          empty="There are no segments yet."
          columns={[
            { label: "First offset", isNumber: true, show: (it) => count(it.first_offset) },
            { label: "Last offset", isNumber: true, show: (it) => count(it.end_offset - 1) },
            { label: "Size", isNumber: true, show: (it) => formatBytes(it.bytes) },
            { label: "From", show: ({ first_time }) => time(first_time) },
            { label: "To", show: ({ last_time }) => time(last_time) },
            {
              label: "State",
              show: ({ is_sealed }) => (is_sealed ? <Badge>sealed</Badge> : <Badge tone="good">active</Badge>),
            },
          ]}
        />
      </Card>
    </>
  );
}

/** The current consumers and publishers, and the stored offsets and publishing sequences. */
export function StreamClientTables({ vhost, name }: StreamName) {
  const { data, error } = useClients({ vhost, name });
  if (!data) return error ? <ErrorMessage error={error} /> : <Loading />;
  return (
    <>
      <Card title="Consumers">
        <Table
          label="Consumers"
          items={data.readers}
          itemKey={(it) => `${it.connection} ${it.channel} ${it.subscription} ${it.name}`}
          empty="There are no consumers."
          columns={[
            { label: "Lag", isNumber: true, show: (reader) => <Lag reader={reader} /> },
            { label: "Consumer", show: (reader) => describeConsumer(reader) },
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
          empty="There are no publishers that use the stream protocol."
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
        <Card title="Stored offsets">
          <Table
            label="Stored offsets"
            items={data.offsets}
            itemKey={({ reference }) => reference}
            columns={[
              { label: "Consumer", show: ({ reference }) => reference },
              { label: "Offset", isNumber: true, show: ({ offset }) => count(offset) },
              { label: "Lag", isNumber: true, show: ({ lag }) => count(lag) },
            ]}
          />
        </Card>
        <Card title="Publishing sequences">
          <Table
            label="Publishing sequences"
            items={data.sequences}
            itemKey={({ reference }) => reference}
            columns={[
              { label: "Publisher reference", show: ({ reference }) => reference },
              { label: "Sequence", isNumber: true, show: ({ sequence }) => count(sequence) },
            ]}
          />
        </Card>
      </div>
    </>
  );
}

const describeConsumer = ({ name, channel, subscription }: StreamReader): string =>
  channel === null ? `subscription ${subscription}${name && `, ${name}`}` : `channel ${channel}, ${name}`;

function Lag({ reader: { lag, is_active } }: { reader: StreamReader }) {
  if (!is_active || lag === null)
    return <Badge title="another consumer of the single active consumer group is active">inactive</Badge>;
  return <>{count(lag)}</>;
}

const STARTS: [string, string][] = [
  ["last", `last ${PAGE_SIZE} messages`],
  ["first", "first message"],
  ["offset", "offset"],
  ["time", "timestamp"],
];

/** Peeking at a stream can start at any of its messages. */
export const streamStart: PeekStart = {
  first: (vhost, name) => lastOf(vhost, name),
  Fields: StartFields,
  from: async ({ start, offset, time: text }, vhost, name) => {
    const address = streamAt(vhost, name);
    if (start === "offset") return Number(offset);
    if (start === "first") return (await get<Stream>(address)).first_offset;
    if (start === "last") return lastOf(vhost, name);
    const timestamp = new Date(text ?? "").getTime();
    return (await get<Stream>(withQuery(address, { timestamp: Math.max(timestamp, 0) }))).offset ?? 0;
  },
  hasOffsets: true,
};

async function lastOf(vhost: string, name: string): Promise<number> {
  const { first_offset: first, committed_offset: committed } = await get<Stream>(streamAt(vhost, name));
  return Math.max(first, committed - PAGE_SIZE);
}

function StartFields() {
  const [start, setStart] = useState("last");
  return (
    <div onChange={({ target }) => target instanceof HTMLSelectElement && setStart(target.value)}>
      <Field name="start" label="Start at" choices={STARTS} />
      {start === "offset" && <Field name="offset" label="Offset" type="number" value={0} required />}
      {start === "time" && <Field name="time" label="Timestamp" type="datetime-local" step="1" required />}
    </div>
  );
}
