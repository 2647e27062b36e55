/** Publishing one message by hand. */

import { ARGUMENTS_NOTE, parseArguments } from "../parts/arguments";
import { notify } from "../parts/notice";
import { Field, Form, type Values } from "../parts/ui";

interface PublishFormProps {
  publish: (message: unknown) => Promise<{ routed: boolean }>;
  routingKey?: string;
}

export function PublishForm({ publish, routingKey }: PublishFormProps) {
  const send = async (values: Values) => {
    const headers = parseArguments(values.headers ?? "");
    const { routed } = await publish({
      routing_key: routingKey ?? values.routing_key ?? "",
      properties: {
        ...parseArguments(values.properties ?? ""),
        delivery_mode: Number(values.delivery_mode),
        ...(Object.keys(headers).length ? { headers } : {}),
      },
      payload: values.payload ?? "",
      payload_encoding: values.encoding ?? "string",
    });
    if (routed) notify("Published.");
    else notify("Published, and routed to no queue: nothing is bound with this key.", "bad");
  };
  return (
    <Form submit="Publish" action={send}>
      <div class="form-row">
        {routingKey === undefined && <Field name="routing_key" label="Routing key" />}
        <Field name="delivery_mode" label="Kept" choices={[["2", "persistent"], ["1", "transient"]]} />
        <Field name="encoding" label="Payload is" choices={[["string", "text"], ["base64", "base64"]]} />
      </div>
      <Field name="payload" label="Payload" rows={4} />
      <div class="form-row">
        <Field name="headers" label="Headers" rows={2} note={ARGUMENTS_NOTE} />
        <Field name="properties" label="Properties" rows={2} placeholder="content_type = application/json" note={ARGUMENTS_NOTE} />
      </div>
    </Form>
  );
}
