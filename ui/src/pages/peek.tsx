/** What waits in a queue, or is with somebody, seen without touching it. */

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { path, post } from "../api";
import { Arguments } from "../components/arguments";
import { Confirm } from "../components/dialog";
import { MessageCard } from "../components/message";
import { notify } from "../components/notice";
import { Badge, Button, Card, Field, Form, type Values } from "../components/ui";
import { count, octets, span, time } from "../format";
import type { PeekedMessage } from "../model";
import { link } from "../router";
import { Further, SearchState, useSearch } from "./message-search";

/** How one says with which message to begin: the fields of a form, and what they mean. */
export interface Start {
  /** What is looked at first, before anything is said. */
  first: (vhost: string, name: string) => Promise<number>;
  Fields: () => ComponentChildren;
  from: (values: Values, vhost: string, name: string) => Promise<number>;
  /** Whether a place is an offset, for everybody to know. */
  hasOffsets: boolean;
}

/** Where the messages of a queue begin that are handed out once. */
export const messageStart: Start = {
  first: () => Promise.resolve(0),
  Fields: () => (
    <Field
      name="state"
      label="Messages that are"
      choices={[
        ["ready", "ready"],
        ["unacknowledged", "with a consumer"],
      ]}
    />
  ),
  from: () => Promise.resolve(0),
  hasOffsets: false,
};
export const CONDITIONS_NOTE =
  "one a line, all must hold: routing_key=orders.eu, headers.tenant=acme, properties.priority>=5, body.total>100, body~refused";

/** The conditions that `text` says, one a line. */
export const conditionsIn = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

export function Peek({ vhost, name, start }: { vhost: string; name: string; start: Start }) {
  const search = useSearch(vhost, name);
  const found = search.data?.messages ?? [];
  const first = () => start.first(vhost, name);
  useEffect(() => void search.begin({ state: "ready", conditions: [] }, first), [vhost, name]);

  const giveBack = async (which: object) => {
    const { returned } = await post<{ returned: number }>(path("warren", "queues", vhost, name, "return"), which);
    notify(returned ? `${count(returned)} returned.` : "It was not held any more.", returned ? "good" : "bad");
    if (search.data) await search.begin(search.data.wanted, first, true);
  };
  // Not awaited: another search may begin while one is under way.
  const begin = async (values: Values) => {
    const wanted = { state: values.state ?? "ready", conditions: conditionsIn(values.conditions ?? "") };
    void search.begin(wanted, () => start.from(values, vhost, name));
  };
  return (
    <Card>
      <p class="quiet">Looking changes nothing: no message is handed out, moved or marked as redelivered.</p>
      <Form submit="Look" action={begin}>
        <div class="form-row">
          <start.Fields />
          <Field name="conditions" label="And fit" rows={2} note={CONDITIONS_NOTE} placeholder="headers.tenant=acme" />
        </div>
      </Form>
      {search.data?.wanted.state === "unacknowledged" && found.length > 0 && (
        <p class="form-end">
          <Confirm
            label="Return all"
            object={`what is held of “${name}”`}
            question="All that consumers of this queue hold goes back to its place, marked as redelivered, and is handed out again. They stay connected; what they have begun may be done twice."
            action={() => giveBack({ all: true })}
          />
        </p>
      )}
      <SearchState search={search} />
      <ol class="messages">
        {found.map((message) => (
          <li key={`${message.state} ${message.place}`}>
            <MessageFacts
              message={message}
              hasOffset={start.hasOffsets}
              giveBack={({ connection, channel, delivery_tag }) =>
                giveBack({ deliveries: [{ connection, channel, delivery_tag }] })
              }
            />
          </li>
        ))}
      </ol>
      <Further search={search} />
    </Card>
  );
}

interface MessageFactsProps {
  message: PeekedMessage;
  /** Its place is one that everybody knows it by. */
  hasOffset?: boolean;
  /** Takes it back from who holds it, where that can be asked for. */
  giveBack?: (holder: NonNullable<PeekedMessage["holder"]>) => Promise<void>;
}

export function MessageFacts({ message, hasOffset, giveBack }: MessageFactsProps) {
  const { headers, ...properties } = message.properties;
  const { holder } = message;
  return (
    <MessageCard
      payload={message.payload}
      isText={message.payload_encoding === "string"}
      facts={[
        ["Offset", hasOffset ? count(message.place) : undefined],
        ["Exchange", message.exchange || "(default)"],
        ["Routing key", <code>{message.routing_key}</code>],
        ["Published", `${time(message.published_at)} (${span(message.age_ms)} ago)`],
        [
          "With",
          holder && (
            <>
              <a href={link("connections", holder.connection)}>{holder.connection}</a>, channel {holder.channel}
              {holder.consumer_tag ? `, consumer ${holder.consumer_tag}` : ", by get"}
              {message.held_for_ms ? `, for ${span(message.held_for_ms)}` : ""}{" "}
              {giveBack && <Button onClick={() => giveBack(holder)}>Return it</Button>}
            </>
          ),
        ],
        ["Handed out", message.attempts ? <Badge tone="warn">{`${message.attempts} times`}</Badge> : undefined],
        ["Properties", Object.keys(properties).length ? <Arguments table={properties} /> : undefined],
        ["Headers", headers && <Arguments table={headers} />],
        ["Size", `${octets(message.payload_bytes)}${message.is_truncated ? ", cut here" : ""}`],
      ]}
    />
  );
}
