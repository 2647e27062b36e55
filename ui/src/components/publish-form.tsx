/** Publishes one message, and shows its outcome. */

import { useState } from "preact/hooks";
import { ApiError } from "../api";
import type { Published } from "../api-types";
import { ARGUMENTS_NOTE, parseArguments } from "./arguments";
import { Field, Form, type FormValues } from "./form";

interface PublishFormProps {
  publish: (message: unknown) => Promise<Published>;
  routingKey?: string;
}

export function PublishForm({ publish, routingKey }: PublishFormProps) {
  const [outcome, setOutcome] = useState<Published | "waiting">();
  const send = async (values: FormValues) => {
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
        ? new Error("The broker did not respond. The message may or may not have been published.")
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
            label="Delivery mode"
            choices={[
              ["2", "2 - persistent"],
              ["1", "1 - transient"],
            ]}
          />
          <Field
            name="encoding"
            label="Payload encoding"
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

/** The outcome of the message that was published last; errors are shown by the form. */
function Outcome({ outcome }: { outcome: Published | "waiting" | undefined }) {
  if (outcome === "waiting") {
    return (
      <p class="outcome quiet" role="status">
        Waiting for the broker to confirm the message …
      </p>
    );
  }
  return (
    <p class={`outcome ${outcome?.routed ? "done" : outcome ? "failure" : ""}`} role="status">
      {outcome && describeOutcome(outcome)}
    </p>
  );
}

function describeOutcome({ routed, alarms = [] }: Published): string {
  if (!routed) return "Not routed: no queue is bound with this routing key, so the message was discarded.";
  if (!alarms.length) return "Published and routed to at least one queue.";
  return `Published and routed to at least one queue, despite the resource alarm (${alarms.join(", ")}). Clients that publish are blocked until the alarm clears.`;
}
