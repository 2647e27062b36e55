/** Leases of a queue: whose messages nobody else gets for a while. */

import { path, post } from "../api";
import { Confirm } from "../components/dialog";
import { notify } from "../components/notice";
import { Table } from "../components/table";
import { Badge, Card, Failure, Loading } from "../components/ui";
import { count, octets, span, time } from "../format";
import { useLive } from "../live";
import type { Lease } from "../model";

interface LeasesProps {
  vhost: string;
  name: string;
  /** Its messages may be ready again. */
  changed: () => void;
}

export function Leases({ vhost, name, changed }: LeasesProps) {
  const { data, error, refresh } = useLive<Lease[]>(path("warren", "queues", vhost, name, "leases"));
  if (!data) return error ? <Failure error={error} /> : <Loading />;
  const giveBack = async ({ lease, messages }: Lease) => {
    await post(path("warren", "leases", lease, "settle"), { outcome: "requeue" });
    notify(`${count(messages)} messages went back.`);
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
          empty="Nobody has messages of this queue on lease."
          columns={[
            { label: "For", show: ({ key }) => key },
            { label: "Holder", show: ({ user }) => user },
            { label: "Messages", isNumber: true, show: ({ messages }) => count(messages) },
            { label: "Bodies", isNumber: true, show: (it) => octets(it.octets) },
            { label: "Held for", isNumber: true, show: ({ granted_at }) => span(Date.now() - granted_at) },
            { label: "Ends in", isNumber: true, show: ({ expires_at }) => span(expires_at - Date.now()) },
            {
              label: "Action",
              show: (lease) => (
                <Confirm
                  label="Give back"
                  object={`the lease “${lease.key}”`}
                  question={`${lease.user} loses the lease “${lease.key}”: its ${count(lease.messages)} messages go back to their places, marked as redelivered. What was begun with them may be done twice.`}
                  action={() => giveBack(lease)}
                />
              ),
            },
          ]}
        />
      </Card>
      <Card title="Ended of late">
        <Table
          label="Ended leases"
          items={data.filter(({ state }) => state !== "active").reverse()}
          itemKey={({ lease }) => lease}
          columns={[
            { label: "For", show: ({ key }) => key },
            { label: "Holder", show: ({ user }) => user },
            { label: "Messages", isNumber: true, show: ({ messages }) => count(messages) },
            { label: "Since", show: ({ granted_at }) => time(granted_at) },
            { label: "End", show: ({ state }) => <Badge tone={state === "expired" ? "warn" : "plain"}>{ENDS[state]}</Badge> },
          ]}
        />
      </Card>
    </>
  );
}

const ENDS: Record<Lease["state"], string> = {
  active: "active",
  settled: "acknowledged",
  requeued: "went back",
  expired: "expired",
};
