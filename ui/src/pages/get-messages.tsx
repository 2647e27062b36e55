/** Gets messages from a queue as a client does: acknowledged, rejected or requeued. */

import { useState } from "preact/hooks";
import { post } from "../api";
import type { FetchedMessage } from "../api-types";
import { Arguments } from "../components/arguments";
import { Field, Form, type FormValues } from "../components/form";
import { Card } from "../components/layout";
import { MessageCard } from "../components/message";
import { Badge } from "../components/status";
import { formatBytes, plural } from "../format";
import { splitProperties } from "../model";

const ACK_MODES: [string, string][] = [
  ["ack_requeue_true", "Nack, requeue true"],
  ["ack_requeue_false", "Automatic ack (messages are removed)"],
  ["reject_requeue_true", "Reject, requeue true"],
  ["reject_requeue_false", "Reject, requeue false (dead-lettered or removed)"],
];
const BODY_SIZE_MAX = 50_000;

export function GetMessages({ address, changed }: { address: string; changed: () => void }) {
  const [found, setFound] = useState<FetchedMessage[]>();
  const getMessages = async (values: FormValues) => {
    const messages = await post<FetchedMessage[]>(`${address}/get`, {
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
      <p class="quiet">
        Getting messages changes the queue: they are removed, or requeued and marked as redelivered. To view messages without
        changing anything, use Peek.
      </p>
      <Form submit="Get messages" action={getMessages}>
        <div class="form-row">
          <Field name="count" label="Messages" type="number" value={5} />
          <Field name="ackmode" label="Ack mode" choices={ACK_MODES} />
          <Field
            name="encoding"
            label="Encoding"
            choices={[
              ["auto", "text, or base64 if it is not UTF-8"],
              ["base64", "base64"],
            ]}
          />
        </div>
      </Form>
      <div role="status">{found && (found.length ? plural(found.length, "message") : "The queue is empty.")}</div>
      <ol class="messages">
        {found?.map((message, index) => (
          <li key={index}>
            <FetchedMessageCard message={message} />
          </li>
        ))}
      </ol>
    </Card>
  );
}

function FetchedMessageCard({ message }: { message: FetchedMessage }) {
  const { headers, properties } = splitProperties(message.properties);
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
        ["Size", formatBytes(message.payload_bytes)],
      ]}
    />
  );
}
