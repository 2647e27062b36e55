/** The form of a shovel, with one field for each common key and the others as lines. */

import { ApiError } from "../api";
import type { Parameter } from "../api-types";
import { addressesOf, type Definition, refusedFields, typed, writtenAddresses } from "../definition";
import { asText } from "../format";
import { parseArguments } from "./arguments";
import { Field, FieldErrors, Form, type FormValues } from "./form";
import { VhostField } from "./vhost-select";

interface ShovelFormProps {
  old?: Parameter | undefined;
  save: (vhost: string, name: string, definition: Definition) => Promise<void>;
}

const ADDRESS_NOTE =
  "one address per line, tried in turn: amqp://user:password@host:5672/vhost; amqp:// is this broker. A password that stays *** is not changed.";
const OLD_KEYS: Record<string, string> = {
  "prefetch-count": "src-prefetch-count",
  "delete-after": "src-delete-after",
  "add-forward-headers": "dest-add-forward-headers",
};

/** The keys with a field of their own; a key that is not set has the default of its first choice. */
const KEYS = [
  "src-queue",
  "src-exchange",
  "src-exchange-key",
  "src-prefetch-count",
  "src-delete-after",
  "dest-queue",
  "dest-exchange",
  "dest-exchange-key",
  "ack-mode",
  "reconnect-delay",
  "dest-add-forward-headers",
];
const NAMES = ["src-uri", "dest-uri", ...KEYS];

export function ShovelForm({ old, save }: ShovelFormProps) {
  const before = withCurrentNames((old?.value ?? {}) as Definition);
  const text = (key: string) => (before[key] === undefined ? "" : asText(before[key]));
  const addresses = (key: string) => addressesOf(before[key]).join("\n") || (old ? "" : "amqp://");
  const others = Object.entries(before)
    .filter(([key]) => !NAMES.includes(key))
    .map(([key, value]) => `${key} = ${asText(value)}`)
    .join("\n");
  const submit = async (values: FormValues) => {
    const definition = definitionOf(values);
    try {
      await save(old?.vhost ?? values.vhost ?? "/", old?.name ?? values.name ?? "", definition);
    } catch (failure) {
      const wrong = failure instanceof ApiError ? refusedFields(failure.message, NAMES) : {};
      throw Object.keys(wrong).length ? new FieldErrors(wrong) : failure;
    }
  };
  return (
    <Form submit={old ? "Save" : "Create"} action={submit}>
      {!old && (
        <div class="form-row">
          <VhostField />
          <Field name="name" label="Name" required />
        </div>
      )}
      <fieldset>
        <legend>Source</legend>
        <Field name="src-uri" label="Addresses" rows={2} value={addresses("src-uri")} required note={ADDRESS_NOTE} />
        <div class="form-row">
          <Field name="src-queue" label="Queue" value={text("src-queue")} note="a queue, or an exchange" />
          <Field
            name="src-exchange"
            label="Exchange"
            value={text("src-exchange")}
            note="the shovel binds a queue of its own to it"
          />
          <Field
            name="src-exchange-key"
            label="Binding key"
            value={text("src-exchange-key")}
            note="routing key of the binding, such as orders.#"
          />
        </div>
        <div class="form-row">
          <Field
            name="src-prefetch-count"
            label="Prefetch count"
            type="number"
            value={text("src-prefetch-count")}
            placeholder="1000"
            note="messages on their way at most"
          />
          <Field
            name="src-delete-after"
            label="Delete after"
            value={text("src-delete-after")}
            placeholder="never"
            note="never, queue-length (what the queue has at the start), or a number of messages"
          />
        </div>
      </fieldset>
      <fieldset>
        <legend>Destination</legend>
        <Field name="dest-uri" label="Addresses" rows={2} value={addresses("dest-uri")} required note={ADDRESS_NOTE} />
        <div class="form-row">
          <Field name="dest-queue" label="Queue" value={text("dest-queue")} note="declared if it does not exist" />
          <Field
            name="dest-exchange"
            label="Exchange"
            value={text("dest-exchange")}
            note="without queue and exchange: those of each message"
          />
          <Field
            name="dest-exchange-key"
            label="Routing key"
            value={text("dest-exchange-key")}
            note="empty: the key of each message"
          />
        </div>
        <Field
          name="dest-add-forward-headers"
          label="Forwarding headers"
          value={text("dest-add-forward-headers")}
          choices={[
            ["", "no"],
            ["true", "yes"],
          ]}
          note="adds a header x-shovelled, which says by which shovel a message came"
        />
      </fieldset>
      <div class="form-row">
        <Field
          name="ack-mode"
          label="Acknowledgement"
          value={text("ack-mode")}
          choices={[
            ["", "on-confirm: nothing is lost"],
            ["on-publish", "on-publish: may lose messages if the destination fails"],
            ["no-ack", "no-ack: may lose messages if the shovel fails"],
          ]}
        />
        <Field
          name="reconnect-delay"
          label="Reconnect delay"
          type="number"
          value={text("reconnect-delay")}
          placeholder="5"
          note="seconds until the next attempt to connect"
        />
      </div>
      <Field
        name="others"
        label="Other keys"
        rows={3}
        value={others}
        placeholder="dest-publish-properties = {&quot;delivery_mode&quot;: 2}"
        note="one per line: key = value; values that are JSON are sent as JSON, others as text"
      />
    </Form>
  );
}

/** RabbitMQ has two names for some keys; the form uses the newer one. */
function withCurrentNames(value: Definition): Definition {
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [OLD_KEYS[key] ?? key, item]));
}

function definitionOf(values: FormValues): Definition {
  const wrong: Record<string, string> = {};
  const definition: Definition = {};
  for (const key of ["src-uri", "dest-uri"]) {
    definition[key] = writtenAddresses(values[key] ?? "");
  }
  for (const key of KEYS) {
    const text = (values[key] ?? "").trim();
    // Names and keys are text, even if they look like numbers.
    if (text) definition[key] = /queue$|exchange|key$/.test(key) ? text : typed(text);
  }
  if (!values["src-queue"] === !values["src-exchange"]) wrong["src-queue"] = "Name a queue or an exchange, and not both.";
  if (values["dest-queue"] && values["dest-exchange"]) wrong["dest-queue"] = "Name a queue or an exchange, and not both.";
  try {
    Object.assign(definition, parseArguments(values.others ?? ""));
  } catch (error) {
    wrong.others = error instanceof Error ? error.message : String(error);
  }
  if (Object.keys(wrong).length) throw new FieldErrors(wrong);
  return definition;
}
