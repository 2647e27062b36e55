import { expect, test } from "vitest";
import type { Cluster, Member } from "../src/api-types";
import { hasSeveralNodes, rateOf, roleOf, splitProperties, stateOf } from "../src/model";

const MEMBER: Member = {
  cluster_port: 25672,
  feature_level: 1,
  host: "127.0.0.1",
  id: 1,
  incarnation: 1,
  is_draining: false,
  is_leader: false,
  is_up: true,
  link: "connected",
  name: "a@localhost",
  role: "voter",
  version: null,
};
const ALONE: Cluster = {
  cluster_id: "",
  cluster_name: "a",
  feature_level: 1,
  is_in_minority: false,
  leader: "a@localhost",
  members: [MEMBER],
  minority_since: null,
  removed_by: null,
  node: "a@localhost",
  problems: [],
  unavailable: [],
  leaderless: [],
};

test("a node is alone if there are no others and no queues of former ones", () => {
  const lost = { count: 1, is_member: false, names: ["q"], node: "b@localhost", vhost: "/" };
  expect(hasSeveralNodes(ALONE)).toBe(false);
  expect(hasSeveralNodes({ ...ALONE, members: [MEMBER, { ...MEMBER, id: 2 }] })).toBe(true);
  expect(hasSeveralNodes({ ...ALONE, unavailable: [lost] })).toBe(true);
});

test("a member that is down is not shown as draining", () => {
  expect(stateOf(MEMBER)).toBe("up");
  expect(stateOf({ ...MEMBER, is_draining: true })).toBe("draining");
  expect(stateOf({ ...MEMBER, is_draining: true, is_up: false })).toBe("down");
});

test("the leader is one of the voters, and is shown as the leader", () => {
  expect(roleOf(MEMBER)).toBe("voter");
  expect(roleOf({ ...MEMBER, is_leader: true })).toBe("leader");
  expect(roleOf({ ...MEMBER, role: "learner" })).toBe("learner");
});

test("headers stand apart from the other properties", () => {
  const properties = { content_type: "text/plain", headers: { tenant: "acme" } };
  expect(splitProperties(properties)).toEqual({ headers: { tenant: "acme" }, properties: { content_type: "text/plain" } });
});

test("a message without properties has an empty list of them in the API, and an empty table here", () => {
  expect(splitProperties([])).toEqual({ headers: undefined, properties: {} });
});

test("the rate of what was never counted is unknown", () => {
  expect(rateOf({ publish_details: { rate: 5 } }, "publish")).toBe(5);
  expect(rateOf({}, "publish")).toBeUndefined();
  expect(rateOf(undefined, "publish")).toBeUndefined();
});
