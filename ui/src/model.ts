/** The objects that the pages show: the generated types of the HTTP API, and what is computed from them. */

import type { Cluster, DeadLetterGroup, Member, RateDetails } from "./api-types";

/** Whether there are other nodes, or queues of some that there were. */
export const hasSeveralNodes = ({ members, unavailable }: Cluster): boolean => members.length > 1 || unavailable.length > 0;

/** The state of a member in a word; one that is down is not in maintenance. */
export const stateOf = ({ is_up, is_draining }: Member): "up" | "down" | "draining" =>
  is_up ? (is_draining ? "draining" : "up") : "down";

/** The role of a member in the group that agrees on the metadata. */
export const roleOf = ({ role, is_leader }: Member): string => (is_leader ? "leader" : role);

/** A table of arguments, headers or properties. */
export type AmqpTable = Record<string, unknown>;

/** What the dead letters of a group have in common. */
export type DeathCause = Pick<DeadLetterGroup, "queue" | "reason" | "exchange">;

/** The rate of one kind of event, if it was ever counted. */
export function rateOf<K extends string>(
  stats: { [key in `${K}_details`]?: RateDetails } | undefined,
  kind: K,
): number | undefined {
  return stats?.[`${kind}_details`]?.rate;
}

/** The headers of a message, and its other properties. */
export function splitProperties(properties: AmqpTable | unknown[]): { headers: AmqpTable | undefined; properties: AmqpTable } {
  // A message without properties has an empty list, as in RabbitMQ.
  if (Array.isArray(properties)) return { headers: undefined, properties: {} };
  const { headers, ...others } = properties;
  return { headers: headers as AmqpTable | undefined, properties: others };
}
