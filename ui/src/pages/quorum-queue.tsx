/** The messages in the quarantine of a quorum queue. */

import { path, post } from "../api";
import type { Queue } from "../api-types";
import { ConfirmButton } from "../components/dialog";
import { Card } from "../components/layout";
import { notify } from "../components/notice";
import { plural } from "../format";

export const QUORUM = "quorum";

/** Quarantined messages are released or removed together; none are shown if there are none. */
export function Quarantine({ queue, changed }: { queue: Queue; changed: () => void }) {
  const quarantined = queue.messages_quarantined ?? 0;
  if (!quarantined) return null;
  const messages = plural(quarantined, "message");
  const change = async (action: string, done: string) => {
    await post(path("warren", "queues", queue.vhost, queue.name, "quarantine", action), { all: true });
    notify(`Quarantined messages ${done}.`);
    changed();
  };
  return (
    <Card title="Quarantine">
      <p>{messages} exceeded the delivery limit, and the queue has no dead-letter exchange.</p>
      <div class="form-end">
        <ConfirmButton
          label="Release all"
          object={`of the queue “${queue.name}”`}
          question={`${messages} can be delivered again, as often as the delivery limit says.`}
          kind="plain"
          action={() => change("release", "released")}
        />
        <ConfirmButton
          label="Remove all"
          object={`of the queue “${queue.name}”`}
          question={`${messages} are deleted permanently.`}
          action={() => change("remove", "removed")}
        />
      </div>
    </Card>
  );
}
