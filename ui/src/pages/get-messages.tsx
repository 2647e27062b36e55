/** The first messages of a queue, taken out of it: put back, or gone for good. */

import { useState } from "preact/hooks";
import { post } from "../api";
import { Arguments } from "../components/arguments";
import { MessageCard } from "../components/message";
import { Badge, Card, Field, Form, type Values } from "../components/ui";
import { count, octets } from "../format";
import type { GotMessage } from "../model";

const MODES: [string, string][] = [
  ["ack_requeue_true", "put back, marked as redelivered"],
  ["ack_requeue_false", "taken out for good"],
  ["reject_requeue_true", "rejected, and put back"],
  ["reject_requeue_false", "rejected: dead-lettered, or gone"],
];
const BODY_SIZE_MAX = 50_000;

export function GetMessages({ address, changed }: { address: string; changed: () => void }) {
  const [found, setFound] = useState<GotMessage[]>();
  const take = async (values: Values) => {
    const messages = await post<GotMessage[]>(`${address}/get`, {
      count: Number(values.count),
      ackmode: values.ackmode,
      encoding: values.encoding,
      truncate: BODY_SIZE_MAX,
    });
    setFound(messages);
    changed();
  };
  return (
    <Card>
      <p class="quiet">Takes messages out of the queue, as a client does. To see them without that, use Messages.</p>
      <Form submit="Get messages" action={take}>
        <div class="form-row">
          <Field name="count" label="How many" type="number" value={5} />
          <Field name="ackmode" label="They are" choices={MODES} />
          <Field
            name="encoding"
            label="Payload"
            choices={[
              ["auto", "text, or base64 if it is none"],
              ["base64", "base64"],
            ]}
          />
        </div>
      </Form>
      <div role="status">{found && (found.length ? `${count(found.length)} messages` : "The queue is empty.")}</div>
      <ol class="messages">
        {found?.map((message, index) => (
          <li key={index}>
            <Message message={message} />
          </li>
        ))}
      </ol>
    </Card>
  );
}

function Message({ message }: { message: GotMessage }) {
  const { headers, ...properties } = message.properties;
  return (
    <MessageCard
      payload={message.payload}
      isText={message.payload_encoding === "string"}
      facts={[
        ["Exchange", message.exchange || "(default)"],
        ["Routing key", <code>{message.routing_key}</code>],
        ["Redelivered", message.redelivered ? <Badge tone="warn">yes</Badge> : undefined],
        ["Properties", Object.keys(properties).length ? <Arguments table={properties} /> : undefined],
        ["Headers", headers && <Arguments table={headers} />],
        ["Size", octets(message.payload_bytes)],
      ]}
    />
  );
}
