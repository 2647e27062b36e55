/**
 * The objects that the pages show: the generated types of the HTTP API, under the names of the interface.
 *
 * Nothing here repeats a field of the API. A type adds only what its schema leaves open: that a field is in every
 * answer to a request without `columns`, or what an untyped table contains.
 */

import type * as api from "./api-types";

export type {
  BindingMatch as TracedBinding,
  CurrentUser as User,
  DeadLetterGroup,
  MessageStats as Stats,
  NotMoved as Refusal,
  Page,
  Plan,
  PlanItem,
  Preview,
  Published as PublishResult,
  RateDetails as Samples,
  Retention,
  RoutedQueue,
  Stream,
  StreamClients,
  StreamReader,
  Topology,
  TopologyEdge,
  TopologyNode,
  Trace,
} from "./api-types";

/** A table of arguments, headers or properties. */
export type AmqpTable = Record<string, unknown>;

/** `T` with fields that are in every answer without `columns`. */
type With<T, K extends keyof T> = T & Required<Pick<T, K>>;
/** `T` with all of its fields but `Optional`. */
type Whole<T, Optional extends keyof T = never> = Required<Omit<T, Optional>> & Pick<T, Optional>;

export type Overview = With<
  Omit<api.Overview, "alarms" | "listeners" | "exchange_types">,
  "cluster_name" | "node" | "rabbitmq_version" | "product_name" | "product_version" | "object_totals"
> & {
  alarms?: { node: string; resource: string }[];
  listeners: { protocol: string; ip_address: string; port: number }[];
  exchange_types: { name: string; description: string }[];
};

export type Node = With<api.Node, "name" | "running">;

export type Connection = With<
  api.Connection,
  | "name"
  | "user"
  | "vhost"
  | "state"
  | "ssl"
  | "protocol"
  | "channels"
  | "peer_host"
  | "peer_port"
  | "host"
  | "port"
  | "connected_at"
  | "frame_max"
  | "channel_max"
>;

export type Channel = With<api.Channel, "name" | "number" | "user" | "vhost" | "state" | "confirm" | "transactional"> & {
  connection_details?: { name: string };
  consumer_details?: Consumer[];
};

export type Consumer = With<api.Consumer, "consumer_tag" | "ack_required" | "exclusive" | "prefetch_count" | "arguments"> & {
  channel_details?: { name: string; connection_name: string; user?: string };
};

export type Exchange = With<api.Exchange, "name" | "vhost" | "type" | "durable" | "auto_delete" | "internal" | "arguments">;

export type Queue = With<api.Queue, "name" | "vhost" | "type" | "durable" | "auto_delete" | "exclusive" | "arguments"> & {
  consumer_details?: Consumer[];
};

export type ListedStream = Whole<api.ListedStream>;
export type StreamProtocolPublisher = Whole<api.StreamPublisher>;
export type StreamSubscription = Whole<api.StreamConsumer>;

export type Binding = Whole<api.Binding> & { destination_type: "queue" | "exchange" };

export type GotMessage = api.FetchedMessage;
export type PeekedMessage = api.PeekedMessage;
export type PeekAnswer = api.Peek;

export type Vhost = With<api.Vhost, "name">;
export type UserInfo = With<api.User, "name" | "tags">;
export type Permission = Whole<api.Permission, "suspended">;
export type TopicPermission = Whole<api.TopicPermission, "suspended">;
export type Policy = Whole<api.Policy, "suspended">;
export type VhostLimits = Whole<api.VhostLimits>;
export type UserLimits = Whole<api.UserLimits>;
export type FeatureFlag = With<api.FeatureFlag, "name" | "desc" | "state">;

export type Lease = Whole<api.Lease>;
export type DeadLetterQueue = Whole<api.DeadLetters>;

export type Job = Whole<api.Job> & {
  target: { to?: string; vhost?: string; queue?: string; exchange?: string; routing_key?: string };
};

/** What the dead letters of a group have in common. */
export type DeathCause = Pick<api.DeadLetterGroup, "queue" | "reason" | "exchange">;

/** The rate of one kind of event, if it was ever counted. */
export function rateOf<K extends string>(
  stats: { [key in `${K}_details`]?: api.RateDetails } | undefined,
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
