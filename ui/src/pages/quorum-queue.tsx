/** What only a quorum queue has: its replicas, and the messages in its quarantine. */

import { path, post } from "../api";
import type { Queue, Replica } from "../api-types";
import { ConfirmButton } from "../components/dialog";
import { Card, Facts } from "../components/layout";
import { notify } from "../components/notice";
import { Badge } from "../components/status";
import { type Column, Table } from "../components/table";
import { count, plural } from "../format";

export const QUORUM = "quorum";

const REPLICA_COLUMNS: Column<Replica>[] = [
  { label: "Node", show: (replica) => replica.node },
  { label: "Role", show: (replica) => replica.role.replace("_", "-") },
  { label: "Last entry", isNumber: true, show: (replica) => count(replica.match) },
  { label: "Synced entry", isNumber: true, show: (replica) => count(replica.durable) },
  {
    label: "Data",
    show: (replica) => (
      <>
        <Badge tone={replica.state === "whole" ? "good" : "bad"}>{replica.state}</Badge>
        {replica.reason && <small class="why">{replica.reason}</small>}
      </>
    ),
  },
];

export function Replicas({ queue }: { queue: Queue }) {
  const members = queue.members ?? [];
  const online = queue.online ?? [];
  const replicas = queue.replicas ?? [];
  return (
    <Card title="Replicas">
      <Facts
        facts={[
          ["Leader", queue.leader],
          ["Online", `${count(online.length)} of ${plural(members.length, "member")}`],
          ["Term", count(queue.term)],
          ["Committed entry", count(queue.commit_index)],
          ["Delivery limit", queue.delivery_limit === -1 ? "none" : queue.delivery_limit],
        ]}
      />
      <Table label="Replicas" columns={REPLICA_COLUMNS} items={replicas} itemKey={(replica) => replica.node} />
    </Card>
  );
}

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
