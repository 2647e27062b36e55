/** Leases of a queue: messages that are reserved for one user until the lease ends. */

import { path, post } from "../api";
import type { Lease } from "../api-types";
import { ConfirmButton } from "../components/dialog";
import { Card } from "../components/layout";
import { notify } from "../components/notice";
import { Badge, ErrorMessage, Loading } from "../components/status";
import { Table } from "../components/table";
import { count, formatBytes, formatDuration, plural, time } from "../format";
import { useLive } from "../live";

interface LeasesProps {
  vhost: string;
  name: string;
  /** Called after messages were requeued. */
  changed: () => void;
}

export function Leases({ vhost, name, changed }: LeasesProps) {
  const { data, error, refresh } = useLive<Lease[]>(path("warren", "queues", vhost, name, "leases"));
  if (!data) return error ? <ErrorMessage error={error} /> : <Loading />;
  const requeue = async ({ lease, messages }: Lease) => {
    await post(path("warren", "leases", lease, "settle"), { outcome: "requeue" });
    notify(`${plural(messages, "message")} requeued.`);
    refresh();
    changed();
  };
  return (
    <>
      <Card title="Leases">
        <Table
          label="Leases"
          items={data.filter(({ state }) => state === "active")}
          itemKey={({ lease }) => lease}
          empty="There are no active leases of this queue."
          columns={[
            { label: "Key", show: ({ key }) => key },
            { label: "Holder", show: ({ user }) => user },
            { label: "Messages", isNumber: true, show: ({ messages }) => count(messages) },
            { label: "Size", isNumber: true, show: (it) => formatBytes(it.bytes) },
            { label: "Held for", isNumber: true, show: ({ granted_at }) => formatDuration(Date.now() - granted_at) },
            { label: "Expires in", isNumber: true, show: ({ expires_at }) => formatDuration(expires_at - Date.now()) },
            {
              label: "Action",
              show: (lease) => (
                <ConfirmButton
                  label="Requeue"
                  object={`the lease “${lease.key}”`}
                  question={`${lease.user} loses the lease “${lease.key}”. Its messages (${count(lease.messages)}) are requeued at their original positions and marked as redelivered; those that are being processed may be processed twice.`}
                  action={() => requeue(lease)}
                />
              ),
            },
          ]}
        />
      </Card>
      <Card title="Recently ended leases">
        <Table
          label="Ended leases"
          items={data.filter(({ state }) => state !== "active").reverse()}
          itemKey={({ lease }) => lease}
          columns={[
            { label: "Key", show: ({ key }) => key },
            { label: "Holder", show: ({ user }) => user },
            { label: "Messages", isNumber: true, show: ({ messages }) => count(messages) },
            { label: "Granted at", show: ({ granted_at }) => time(granted_at) },
            {
              label: "Outcome",
              show: ({ state }) => <Badge tone={state === "expired" ? "warn" : "plain"}>{OUTCOMES[state]}</Badge>,
            },
          ]}
        />
      </Card>
    </>
  );
}

const OUTCOMES: Record<Lease["state"], string> = {
  active: "active",
  settled: "acknowledged",
  requeued: "requeued",
  expired: "expired",
};
