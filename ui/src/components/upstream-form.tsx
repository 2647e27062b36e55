/** The form of an upstream. */

import type { Parameter } from "../api-types";
import type { Definition } from "../definition";
import { AckModeField, AddressesField, DefinitionForm, KeyField, PrefetchField, ReconnectDelayField } from "./definition-form";

interface UpstreamFormProps {
  old?: Parameter | undefined;
  save: (vhost: string, name: string, definition: Definition) => Promise<void>;
}

/** The keys with a field of their own. */
const KEYS = [
  "exchange",
  "queue",
  "max-hops",
  "prefetch-count",
  "reconnect-delay",
  "ack-mode",
  "expires",
  "message-ttl",
  "trust-user-id",
];

const isText = (key: string): boolean => key === "exchange" || key === "queue";

export function UpstreamForm({ old, save }: UpstreamFormProps) {
  return (
    <DefinitionForm
      old={old}
      before={(old?.value ?? {}) as Definition}
      addressKeys={["uri"]}
      keys={KEYS}
      isText={isText}
      save={save}
      placeholder="consumer-tag = &quot;site 7&quot;"
    >
      <AddressesField name="uri" />
      <div class="form-row">
        <KeyField
          name="exchange"
          label="Exchange"
          note="at the upstream, if its name differs from that of the federated exchange"
        />
        <KeyField name="queue" label="Queue" note="at the upstream, if its name differs from that of the federated queue" />
        <KeyField
          name="max-hops"
          label="Maximum hops"
          type="number"
          placeholder="1"
          note="links that a message passes at most, for exchanges"
        />
        <PrefetchField name="prefetch-count" />
        <ReconnectDelayField />
        <KeyField
          name="expires"
          label="Expires"
          type="number"
          note="ms after which the upstream deletes the queue of a link that is away; empty: never"
        />
        <KeyField
          name="message-ttl"
          label="Message TTL"
          type="number"
          note="ms that messages wait there for the link; empty: without end"
        />
        <AckModeField />
        <KeyField
          name="trust-user-id"
          label="Trust user ids"
          choices={[
            ["", "no"],
            ["true", "yes"],
          ]}
          note="keeps the property user_id of messages"
        />
      </div>
    </DefinitionForm>
  );
}
