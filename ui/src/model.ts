/** The objects that the pages show: the generated types of the HTTP API, and what is computed from them. */

import type { DeadLetterGroup, RateDetails } from "./api-types";

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
