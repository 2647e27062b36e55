/** Publishing one message by hand, and what became of it. */

import { useState } from "preact/hooks";
import { ApiError } from "../api";
import type { Published } from "../model";
import { ARGUMENTS_NOTE, parseArguments } from "./arguments";
import { Field, Form, type Values } from "./ui";

interface PublishFormProps {
  publish: (message: unknown) => Promise<Published>;
  routingKey?: string;
}

export function PublishForm({ publish, routingKey }: PublishFormProps) {
  const [outcome, setOutcome] = useState<Published | "waiting">();
  const send = async (values: Values) => {
    setOutcome(undefined);
    const headers = parseArguments(values.headers ?? "");
    const message = {
      routing_key: routingKey ?? values.routing_key ?? "",
      properties: {
        ...parseArguments(values.properties ?? ""),
        delivery_mode: Number(values.delivery_mode),
        ...(Object.keys(headers).length ? { headers } : {}),
      },
      payload: values.payload ?? "",
      payload_encoding: values.encoding ?? "string",
    };
    setOutcome("waiting");
    try {
      setOutcome(await publish(message));
    } catch (failure) {
      setOutcome(undefined);
      throw failure instanceof ApiError && failure.status === 0
        ? new Error("The broker did not answer: the message may have been published, or not.")
        : failure;
    }
  };
  return (
    <>
      <Form submit="Publish" action={send}>
        <div class="form-row">
          {routingKey === undefined && <Field name="routing_key" label="Routing key" />}
          <Field
            name="delivery_mode"
            label="Kept"
            choices={[
              ["2", "persistent"],
              ["1", "transient"],
            ]}
          />
          <Field
            name="encoding"
            label="Payload is"
            choices={[
              ["string", "text"],
              ["base64", "base64"],
            ]}
          />
        </div>
        <Field name="payload" label="Payload" rows={4} />
        <div class="form-row">
          <Field name="headers" label="Headers" rows={2} note={ARGUMENTS_NOTE} />
          <Field
            name="properties"
            label="Properties"
            rows={2}
            placeholder="content_type = application/json"
            note={ARGUMENTS_NOTE}
          />
        </div>
      </Form>
      <Outcome outcome={outcome} />
    </>
  );
}

/** What is known of the message that was sent last; what is refused stands in the form. */
function Outcome({ outcome }: { outcome: Published | "waiting" | undefined }) {
  if (outcome === "waiting") {
    return (
      <p class="outcome quiet" role="status">
        Waiting for the broker to confirm it …
      </p>
    );
  }
  return (
    <p class={`outcome ${outcome?.routed ? "done" : outcome ? "failure" : ""}`} role="status">
      {outcome && saidOf(outcome)}
    </p>
  );
}

function saidOf({ routed, alarms = [] }: Published): string {
  if (!routed) return "Not kept: no queue is bound with this key, and nobody has the message.";
  if (!alarms.length) return "Published. A queue has the message.";
  return `Published, although there is an alarm (${alarms.join(", ")}). A queue has the message; what clients publish waits until the alarm ends.`;
}
