/** The form of a shovel. */

import { path, post } from "../api";
import type { DryRun, Parameter } from "../api-types";
import type { Definition } from "../definition";
import { AckModeField, AddressesField, DefinitionForm, KeyField, PrefetchField, ReconnectDelayField } from "./definition-form";
import type { FormValues } from "./form";

interface ShovelFormProps {
  old?: Parameter | undefined;
  save: (vhost: string, name: string, definition: Definition) => Promise<void>;
}

const LOCAL = "amqp://";
const ADDRESS_NOTE = "; amqp:// is this broker";
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
  "exactly-once",
];

/** Names and routing keys. */
const isText = (key: string): boolean => /queue$|exchange|key$/.test(key);

/** The steps of a shovel with `definition`; an existing one lends its passwords. */
export const checkShovel = (vhost: string, name: string | undefined, definition: Definition) =>
  post<DryRun>(path("warren", "shovels", vhost, "check"), { value: definition, ...(name === undefined ? {} : { name }) });

export function ShovelForm({ old, save }: ShovelFormProps) {
  const unset = old ? "" : LOCAL;
  return (
    <DefinitionForm
      old={old}
      before={withCurrentNames((old?.value ?? {}) as Definition)}
      addressKeys={["src-uri", "dest-uri"]}
      keys={KEYS}
      isText={isText}
      wrong={wrongEnds}
      save={save}
      check={checkShovel}
      placeholder="dest-publish-properties = {&quot;delivery_mode&quot;: 2}"
    >
      <fieldset>
        <legend>Source</legend>
        <AddressesField name="src-uri" unset={unset} note={ADDRESS_NOTE} />
        <div class="form-row">
          <KeyField name="src-queue" label="Queue" note="a queue, or an exchange" />
          <KeyField name="src-exchange" label="Exchange" note="the shovel binds a queue of its own to it" />
          <KeyField name="src-exchange-key" label="Binding key" note="routing key of the binding, such as orders.#" />
        </div>
        <div class="form-row">
          <PrefetchField name="src-prefetch-count" />
          <KeyField
            name="src-delete-after"
            label="Delete after"
            placeholder="never"
            note="never, queue-length (what the queue has at the start), or a number of messages"
          />
        </div>
      </fieldset>
      <fieldset>
        <legend>Destination</legend>
        <AddressesField name="dest-uri" unset={unset} note={ADDRESS_NOTE} />
        <div class="form-row">
          <KeyField name="dest-queue" label="Queue" note="declared if it does not exist" />
          <KeyField name="dest-exchange" label="Exchange" note="without queue and exchange: those of each message" />
          <KeyField name="dest-exchange-key" label="Routing key" note="empty: the key of each message" />
        </div>
        <KeyField
          name="dest-add-forward-headers"
          label="Forwarding headers"
          choices={[
            ["", "no"],
            ["true", "yes"],
          ]}
          note="adds a header x-shovelled, which says by which shovel a message came"
        />
      </fieldset>
      <div class="form-row">
        <AckModeField />
        <KeyField
          name="exactly-once"
          label="Exactly once"
          choices={[
            ["", "no"],
            ["true", "yes"],
          ]}
          note="no duplicates, between two Warrens with on-confirm"
        />
        <ReconnectDelayField />
      </div>
    </DefinitionForm>
  );
}

/** RabbitMQ has two names for some keys; the form uses the newer one. */
function withCurrentNames(value: Definition): Definition {
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [OLD_KEYS[key] ?? key, item]));
}

function wrongEnds(values: FormValues): Record<string, string> {
  const wrong: Record<string, string> = {};
  if (!values["src-queue"] === !values["src-exchange"]) wrong["src-queue"] = "Name a queue or an exchange, and not both.";
  if (values["dest-queue"] && values["dest-exchange"]) wrong["dest-queue"] = "Name a queue or an exchange, and not both.";
  return wrong;
}
