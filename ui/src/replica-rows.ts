/** The replicas of a quorum queue, put together from its members and from what each node says of its replica. */

import type { Queue, Replica, ReplicaStatus } from "./api-types";

/** What a replica does, or why nothing is known of it. */
export type ReplicaState = "leader" | "follower" | "learner" | "electing" | "down" | "starting" | "leaving" | "unknown";

export interface ReplicaRow {
  node: string;
  state: ReplicaState;
  /** False for a replica that is still there, and not to be any more. */
  isMember: boolean;
  last?: number;
  synced?: number;
  committed?: number;
  /** How many entries it lacks that the leader has; only of replicas that follow. */
  behind?: number;
  /** Whether its data are known to be complete, and why they may not be. */
  data?: Replica["state"];
  reason?: string;
}

/** One row for each member and for each replica that leaves; `status` is undefined for who may not see it. */
export function replicaRows(queue: Queue, status: ReplicaStatus[] | undefined): ReplicaRow[] {
  const members = queue.members ?? [];
  const known = new Map(status?.map((row) => [row["Node Name"], row]));
  const led = known.get(queue.leader ?? "");
  const last = led && numberOf(led["Last Log Index"]);
  const replicas = new Map(queue.replicas?.map((replica) => [replica.node, replica]));
  const leaving = [...known.keys()].filter((node) => !members.includes(node));
  return [...members, ...leaving].map((node) => {
    const row = known.get(node);
    const isMember = members.includes(node);
    const own = row && numberOf(row["Last Log Index"]);
    const isBehind = node !== queue.leader && last !== undefined && own !== undefined;
    return {
      node,
      state: isMember ? stateOf(queue, node, row) : "leaving",
      isMember,
      last: own,
      synced: row && numberOf(row["Last Written"]),
      committed: row && numberOf(row["Commit Index"]),
      behind: isBehind ? Math.max(last - own, 0) : undefined,
      data: replicas.get(node)?.state,
      reason: replicas.get(node)?.reason,
    };
  });
}

function stateOf(queue: Queue, node: string, row: ReplicaStatus | undefined): ReplicaState {
  if (!queue.online?.includes(node) || row?.["Raft State"] === "down") return "down";
  if (!row) return node === queue.leader ? "leader" : "unknown";
  switch (row["Raft State"]) {
    case "leader":
      return "leader";
    case "follower":
      return row.Membership === "voter" ? "follower" : "learner";
    case "candidate":
    case "pre_candidate":
      return "electing";
    case "noproc":
      return "starting";
    default:
      return "unknown";
  }
}

const numberOf = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);
