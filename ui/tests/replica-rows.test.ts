/** The rows of the replicas of a quorum queue. */

import { expect, test } from "vitest";
import type { Queue, ReplicaStatus } from "../src/api-types";
import { replicaRows } from "../src/replica-rows";

const QUEUE = {
  leader: "a",
  members: ["a", "b", "c"],
  online: ["a", "b"],
  replicas: [{ node: "a", role: "leader", match: 9, durable: 9, state: "whole" }],
} as unknown as Queue;

const status = (node: string, state: string, last: number | string, membership = "voter"): ReplicaStatus => ({
  "Node Name": node,
  "Raft State": state,
  Membership: membership,
  "Last Log Index": last,
  "Last Written": last,
  "Last Applied": last,
  "Commit Index": last,
  "Snapshot Index": null,
  Term: 1,
});

test("without a status, the leader and the nodes that are down are known", () => {
  expect(replicaRows(QUEUE, undefined).map(({ node, state }) => [node, state])).toEqual([
    ["a", "leader"],
    ["b", "unknown"],
    ["c", "down"],
  ]);
});

test("a replica is as far behind as the leader has more entries", () => {
  const rows = replicaRows(QUEUE, [status("a", "leader", 9), status("b", "follower", 4), status("c", "nodedown", "")]);
  expect(rows.map(({ state, behind }) => [state, behind])).toEqual([
    ["leader", undefined],
    ["follower", 5],
    ["down", undefined],
  ]);
});

test("a replica without a vote learns, and one that is not there yet starts", () => {
  const rows = replicaRows({ ...QUEUE, online: ["a", "b", "c"] }, [
    status("a", "leader", 9),
    status("b", "follower", 9, "non_voter"),
    status("c", "noproc", ""),
  ]);
  expect(rows.map(({ state }) => state)).toEqual(["leader", "learner", "starting"]);
});

test("a replica of a node that is no member leaves", () => {
  const rows = replicaRows(QUEUE, [status("a", "leader", 9), status("d", "follower", 9)]);
  expect(rows.map(({ node, state, isMember }) => [node, state, isMember]).at(-1)).toEqual(["d", "leaving", false]);
});

test("nobody leads while all elect", () => {
  const rows = replicaRows({ ...QUEUE, leader: null }, [status("a", "pre_candidate", 9), status("b", "candidate", 9)]);
  expect(rows.map(({ state, behind }) => [state, behind])).toEqual([
    ["electing", undefined],
    ["electing", undefined],
    ["down", undefined],
  ]);
});
