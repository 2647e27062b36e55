/** Peeks at the ready or unacknowledged messages of a queue without changing them. */

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { path, post } from "../api";
import type { PeekedMessage } from "../api-types";
import { Arguments } from "../components/arguments";
import { Button } from "../components/button";
import { ConfirmButton } from "../components/dialog";
import { Field, Form, type FormValues } from "../components/form";
import { Card } from "../components/layout";
import { MessageCard } from "../components/message";
import { notify } from "../components/notice";
import { Badge } from "../components/status";
import { count, formatBytes, formatDuration, plural, time } from "../format";
import { splitProperties } from "../model";
import { link } from "../router";
import { LoadMore, SearchState, useMessageSearch } from "./message-search";

/** How the start position is chosen: the fields of the form, and the position that they mean. */
export interface PeekStart {
  /** The position of the first search, before the form is sent. */
  first: (vhost: string, name: string) => Promise<number>;
  Fields: () => ComponentChildren;
  from: (values: FormValues, vhost: string, name: string) => Promise<number>;
  /** Whether positions are stream offsets, which are shown. */
  hasOffsets: boolean;
}

/** Classic queues start at their head, in one of two states. */
export const messageStart: PeekStart = {
  first: () => Promise.resolve(0),
  Fields: () => (
    <Field
      name="state"
      label="State"
      choices={[
        ["ready", "ready"],
        ["unacknowledged", "unacknowledged"],
      ]}
    />
  ),
  from: () => Promise.resolve(0),
  hasOffsets: false,
};
export const CONDITIONS_NOTE =
  "one per line, all must match: routing_key=orders.eu, headers.tenant=acme, properties.priority>=5, body.total>100, body~refused";

/** One condition per line. */
export const parseConditions = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

export function Peek({ vhost, name, start }: { vhost: string; name: string; start: PeekStart }) {
  const search = useMessageSearch(vhost, name);
  const found = search.data?.messages ?? [];
  const first = () => start.first(vhost, name);
  useEffect(() => void search.start({ state: "ready", conditions: [] }, first), [vhost, name]);

  const requeue = async (which: object) => {
    const { requeued } = await post<{ requeued: number }>(path("warren", "queues", vhost, name, "requeue"), which);
    notify(
      requeued ? `${plural(requeued, "message")} requeued.` : "Nothing was requeued: the message is no longer unacknowledged.",
      requeued ? "good" : "bad",
    );
    if (search.data) await search.start(search.data.filter, first, true);
  };
  // Not awaited, so that another search can replace a running one.
  const peek = async (values: FormValues) => {
    const wanted = { state: values.state ?? "ready", conditions: parseConditions(values.conditions ?? "") };
    void search.start(wanted, () => start.from(values, vhost, name));
  };
  return (
    <Card>
      <p class="quiet">Peeking does not change the queue: no message is delivered, moved or marked as redelivered.</p>
      <Form submit="Peek" action={peek}>
        <div class="form-row">
          <start.Fields />
          <Field name="conditions" label="Filter" rows={2} note={CONDITIONS_NOTE} placeholder="headers.tenant=acme" />
        </div>
      </Form>
      {search.data?.filter.state === "unacknowledged" && found.length > 0 && (
        <p class="form-end">
          <ConfirmButton
            label="Requeue all"
            object={`unacknowledged messages of “${name}”`}
            question="All unacknowledged messages of this queue are requeued at their original positions, marked as redelivered, and delivered again. Consumers stay connected; messages that they are processing may be processed twice."
            action={() => requeue({ all: true })}
          />
        </p>
      )}
      <SearchState search={search} />
      <ol class="messages">
        {found.map((message) => (
          <li key={`${message.state} ${message.position}`}>
            <PeekedMessageCard
              message={message}
              hasOffset={start.hasOffsets}
              requeue={({ connection, channel, delivery_tag }) =>
                requeue({ deliveries: [{ connection, channel, delivery_tag }] })
              }
            />
          </li>
        ))}
      </ol>
      <LoadMore search={search} />
    </Card>
  );
}

interface PeekedMessageCardProps {
  message: PeekedMessage;
  /** Show its position as a stream offset. */
  hasOffset?: boolean;
  /** Requeues it, where that is possible. */
  requeue?: (delivery: NonNullable<PeekedMessage["delivery"]>) => Promise<void>;
}

export function PeekedMessageCard({ message, hasOffset, requeue }: PeekedMessageCardProps) {
  const { headers, properties } = splitProperties(message.properties);
  const { delivery } = message;
  return (
    <MessageCard
      payload={message.payload}
      isText={message.payload_encoding === "string"}
      facts={[
        ["Offset", hasOffset ? count(message.position) : undefined],
        ["Exchange", message.exchange || "(default)"],
        ["Routing key", <code>{message.routing_key}</code>],
        ["Published", `${time(message.published_at)} (${formatDuration(message.age_ms)} ago)`],
        [
          "Held by",
          delivery && (
            <>
              <a href={link("connections", delivery.connection)}>{delivery.connection}</a>, channel {delivery.channel}
              {delivery.consumer_tag ? `, consumer ${delivery.consumer_tag}` : ", by basic.get"}
              {message.unacknowledged_ms ? `, for ${formatDuration(message.unacknowledged_ms)}` : ""}{" "}
              {requeue && <Button onClick={() => requeue(delivery)}>Requeue</Button>}
            </>
          ),
        ],
        ["Deliveries", message.delivery_count ? <Badge tone="warn">{`${message.delivery_count}`}</Badge> : undefined],
        ["Properties", Object.keys(properties).length ? <Arguments table={properties} /> : undefined],
        ["Headers", headers && <Arguments table={headers} />],
        ["Size", `${formatBytes(message.payload_bytes)}${message.is_truncated ? ", truncated here" : ""}`],
      ]}
    />
  );
}
