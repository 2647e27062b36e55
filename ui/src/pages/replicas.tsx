/** The replicas of a quorum queue: their nodes and states, and adding and removing them. */

import { path, post, remove } from "../api";
import type { CurrentUser, Queue, ReplicaStatus } from "../api-types";
import { useCluster } from "../components/cluster";
import { ConfirmButton, DialogButton } from "../components/dialog";
import { Field, Form, type FormValues } from "../components/form";
import { Card, Facts } from "../components/layout";
import { notify } from "../components/notice";
import { Badge, ErrorMessage, type Tone } from "../components/status";
import { type Column, Table } from "../components/table";
import { count, plural } from "../format";
import { useLive } from "../live";
import { type ReplicaRow, type ReplicaState, replicaRows } from "../replica-rows";
import { isAdministrator, mayMonitor } from "../session";

const TONES: Record<ReplicaState, Tone> = {
  leader: "good",
  follower: "good",
  learner: "warn",
  electing: "warn",
  starting: "warn",
  leaving: "warn",
  down: "bad",
  unknown: "plain",
};

interface Props {
  queue: Queue;
  user: CurrentUser;
  changed: () => void;
}

export const Replicas = (props: Props) =>
  mayMonitor(props.user) ? (
    <FollowedReplicas {...props} />
  ) : (
    <ReplicaCard {...props} rows={replicaRows(props.queue, undefined)} />
  );

/** The replicas with their places in the log, which each node is asked for. */
function FollowedReplicas(props: Props) {
  const { queue } = props;
  const { data, error, refresh } = useLive<ReplicaStatus[]>(path("queues", "quorum", queue.vhost, queue.name, "status"));
  const changed = () => {
    refresh();
    props.changed();
  };
  return (
    <>
      <ErrorMessage error={error} />
      <ReplicaCard {...props} changed={changed} rows={replicaRows(queue, data)} hasPlaces />
    </>
  );
}

function ReplicaCard({ queue, user, changed, rows, hasPlaces }: Props & { rows: ReplicaRow[]; hasPlaces?: boolean }) {
  const mayChange = isAdministrator(user);
  const members = queue.members ?? [];
  return (
    <Card title="Replicas" aside={mayChange && <Add queue={queue} changed={changed} />}>
      <Facts
        facts={[
          ["Leader", queue.leader ?? "none"],
          ["Online", `${count(queue.online?.length ?? 0)} of ${plural(members.length, "member")}`],
          ["Term", count(queue.term)],
          ["Committed entry", count(queue.commit_index)],
          ["Delivery limit", queue.delivery_limit === -1 ? "none" : queue.delivery_limit],
        ]}
      />
      <Table
        label="Replicas"
        items={rows}
        itemKey={(row) => row.node}
        columns={[
          ...COLUMNS,
          ...(hasPlaces ? PLACES : []),
          ...(mayChange && members.length > 1 ? [removal(queue, changed)] : []),
        ]}
      />
    </Card>
  );
}

const COLUMNS: Column<ReplicaRow>[] = [
  { label: "Node", show: ({ node }) => node },
  { label: "State", show: ({ state }) => <Badge tone={TONES[state]}>{state}</Badge> },
  {
    label: "Data",
    show: ({ data, reason }) =>
      data ? (
        <>
          <Badge tone={data === "whole" ? "good" : "bad"}>{data}</Badge>
          {reason && <small class="why">{reason}</small>}
        </>
      ) : (
        "–"
      ),
  },
];

const PLACES: Column<ReplicaRow>[] = [
  { label: "Last entry", isNumber: true, show: ({ last }) => count(last) },
  { label: "Synced entry", isNumber: true, show: ({ synced }) => count(synced) },
  { label: "Committed entry", isNumber: true, show: ({ committed }) => count(committed) },
  { label: "Entries behind", isNumber: true, show: ({ behind }) => count(behind) },
];

const addressOf = ({ vhost, name }: Queue, action: string) => path("queues", "quorum", vhost, name, "replicas", action);

/** The replicas of a queue that there are without the one on `node`. */
const others = ({ members = [] }: Queue, node: string) => {
  const kept = members.filter((name) => name !== node);
  return `the ${kept.length === 1 ? "replica" : "replicas"} on ${kept.join(", ")}`;
};

const removal = (queue: Queue, changed: () => void): Column<ReplicaRow> => ({
  label: "Actions",
  show: ({ node, isMember }) =>
    isMember && (
      <ConfirmButton
        label="Remove"
        object={`the replica on ${node}`}
        question={`Its copies of the messages are deleted. The queue “${queue.name}” goes on with ${others(queue, node)}.`}
        action={() =>
          remove(addressOf(queue, "delete"), { node }).then(() => {
            notify("Replica removed.");
            changed();
          })
        }
      />
    ),
});

/** A dialog with the nodes that are up and have no replica; nothing if there is none. */
function Add({ queue, changed }: Omit<Props, "user">) {
  const having = queue.members ?? [];
  const nodes = (useCluster()?.members ?? []).filter(({ name, is_up }) => is_up && !having.includes(name));
  const add = async ({ node }: FormValues) => {
    await post(addressOf(queue, "add"), { node });
    notify("Replica added.");
    changed();
  };
  if (!nodes.length) return null;
  return (
    <DialogButton label="Add replica" title={`Add a replica of “${queue.name}”`}>
      {(close) => (
        <Form submit="Add" action={(values) => add(values).then(close)}>
          <Field name="node" label="Node" choices={nodes.map(({ name }) => name)} note="It votes when it has all messages" />
        </Form>
      )}
    </DialogButton>
  );
}
