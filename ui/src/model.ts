/** What the API says of things: the fields that the pages look at. */

import type { Table } from "./components/arguments";
import type { Samples } from "./components/chart";

export type Stats = Record<string, number | undefined> & Record<`${string}_details`, Samples | undefined>;

export interface Overview {
  cluster_name: string;
  node: string;
  rabbitmq_version: string;
  product_name: string;
  product_version: string;
  /** Whether all is gone when the broker stops. */
  in_memory?: boolean;
  alarms?: { node: string; resource: string }[];
  message_stats?: Stats;
  queue_totals?: Stats;
  churn_rates?: Stats;
  object_totals: Record<string, number>;
  listeners: { protocol: string; ip_address: string; port: number }[];
  exchange_types: { name: string; description: string }[];
}

export interface Node {
  name: string;
  running: boolean;
  uptime?: number;
  mem_used?: number;
  mem_limit?: number;
  mem_alarm?: boolean;
  disk_free?: number;
  disk_free_limit?: number;
  disk_free_alarm?: boolean;
  fd_used?: number;
  fd_total?: number;
  sockets_used?: number;
}

export interface Connection {
  name: string;
  user: string;
  vhost: string;
  state: string;
  ssl: boolean;
  protocol: string;
  channels: number;
  user_provided_name?: string;
  peer_host: string;
  peer_port: number;
  host: string;
  port: number;
  connected_at: number;
  frame_max: number;
  channel_max: number;
  timeout?: number;
  auth_mechanism?: string;
  recv_oct?: number;
  send_oct?: number;
  recv_oct_details?: Samples;
  send_oct_details?: Samples;
  client_properties?: Table;
}

export interface Channel {
  name: string;
  number: number;
  user: string;
  vhost: string;
  state: string;
  confirm: boolean;
  transactional: boolean;
  prefetch_count?: number;
  global_prefetch_count?: number;
  consumer_count?: number;
  messages_unacknowledged?: number;
  messages_unconfirmed?: number;
  messages_uncommitted?: number;
  acks_uncommitted?: number;
  message_stats?: Stats;
  connection_details?: { name: string };
  consumer_details?: Consumer[];
  idle_since?: string;
}

export interface Consumer {
  consumer_tag: string;
  ack_required: boolean;
  exclusive: boolean;
  active?: boolean;
  activity_status?: string;
  prefetch_count: number;
  arguments: Table;
  channel_details?: { name: string; connection_name: string; user?: string };
  queue?: { name: string; vhost: string };
}

export interface Exchange {
  name: string;
  vhost: string;
  type: string;
  durable: boolean;
  auto_delete: boolean;
  internal: boolean;
  arguments: Table;
  policy?: string | null;
  message_stats?: Stats;
}

export interface Queue {
  name: string;
  vhost: string;
  type: string;
  state?: string;
  durable: boolean;
  auto_delete: boolean;
  exclusive: boolean;
  arguments: Table;
  policy?: string | null;
  operator_policy?: string | null;
  effective_policy_definition?: Table;
  consumers?: number;
  consumer_details?: Consumer[];
  consumer_utilisation?: number | null;
  messages?: number;
  messages_ready?: number;
  messages_unacknowledged?: number;
  messages_details?: Samples;
  messages_ready_details?: Samples;
  messages_unacknowledged_details?: Samples;
  messages_ram?: number;
  messages_paged_out?: number;
  messages_persistent?: number;
  message_bytes?: number;
  message_bytes_ready?: number;
  message_bytes_unacknowledged?: number;
  message_bytes_ram?: number;
  message_bytes_persistent?: number;
  message_bytes_paged_out?: number;
  memory?: number;
  idle_since?: string;
  exclusive_consumer_tag?: string | null;
  single_active_consumer_tag?: string | null;
  /** There only while it hands nothing out. */
  paused?: boolean;
  node?: string;
  message_stats?: Stats;
}

/** How much of a stream is kept at least: null is for ever. */
export interface Retention {
  age_ms_max: number | null;
  octets_max: number | null;
  segment_size: number;
}

/** One file of a stream. */
export interface Segment {
  first: number;
  end: number;
  octets: number;
  first_time: number;
  last_time: number;
  is_sealed: boolean;
}

export interface Stream {
  name: string;
  vhost: string;
  epoch: string;
  first: number;
  committed: number;
  octets: number;
  retention: Retention;
  segments: Segment[];
  /** Where it was asked for by a time. */
  offset?: number;
}

export interface ListedStream {
  name: string;
  vhost: string;
  first: number;
  committed: number;
  messages: number;
  octets: number;
  segments: number;
  first_time: number | null;
  last_time: number | null;
  retention: Retention;
  readers: number;
  lag_max: number | null;
  publishers: number;
  is_paused: boolean;
}

export interface StreamReader {
  protocol: string;
  connection: string;
  user: string;
  channel: number | null;
  name: string;
  subscription: number | null;
  offset: number | null;
  lag: number | null;
  delivered: number | null;
  is_active: boolean;
}

export interface StreamPublisher {
  connection: string;
  user: string;
  publisher: number;
  reference: string;
  published: number;
  confirmed: number;
  refused: number;
}

/** Who reads a stream and publishes to it, and what it remembers of them. */
export interface StreamClients {
  readers: StreamReader[];
  publishers: StreamPublisher[];
  offsets: { reference: string; offset: number; lag: number }[];
  sequences: { reference: string; sequence: number }[];
}

/** A publisher on a connection of the stream protocol. */
export interface StreamProtocolPublisher {
  publisher_id: number;
  reference: string;
  queue: { name: string; vhost: string };
  published: number;
  confirmed: number;
  errored: number;
}

/** A subscription on one. */
export interface StreamSubscription {
  subscription_id: number;
  queue: { name: string; vhost: string };
  credits: number;
  consumed: number;
  offset: number;
  offset_lag: number;
  properties: Table;
}

/** Messages of a queue that one user works on. */
export interface Lease {
  lease: string;
  vhost: string;
  queue: string;
  user: string;
  key: string;
  messages: number;
  octets: number;
  granted_at: number;
  expires_at: number;
  state: "active" | "settled" | "requeued" | "expired";
}

export interface Binding {
  source: string;
  vhost: string;
  destination: string;
  destination_type: "queue" | "exchange";
  routing_key: string;
  arguments: Table;
  properties_key: string;
}

export interface GotMessage {
  payload: string;
  payload_encoding: "string" | "base64";
  payload_bytes: number;
  properties: Table & { headers?: Table };
  exchange: string;
  routing_key: string;
  redelivered: boolean;
  message_count: number;
}

/** A message as /api/warren shows it, where it is. */
export interface PeekedMessage {
  payload: string;
  payload_encoding: "string" | "base64";
  payload_bytes: number;
  is_truncated: boolean;
  is_persistent: boolean;
  properties: Table & { headers?: Table };
  exchange: string;
  routing_key: string;
  published_at: number;
  age_ms: number;
  state: string;
  place: number;
  attempts: number;
  held_for_ms?: number | null;
  holder?: {
    connection: string;
    channel: number;
    consumer_tag: string | null;
    delivery_tag: number;
    user: string | null;
  };
}

export interface PeekAnswer {
  messages: PeekedMessage[];
  next: number | null;
  examined: number;
}

export interface Vhost {
  name: string;
  description?: string;
  tags?: string[];
  tracing?: boolean;
  messages?: number;
  messages_ready?: number;
  messages_unacknowledged?: number;
  cluster_state?: Record<string, string>;
  message_stats?: Stats;
  metadata?: Table;
}

export interface UserRow {
  name: string;
  tags: string[] | string;
  password_hash?: string;
  limits?: Table;
}

export interface Permission {
  user: string;
  vhost: string;
  configure: string;
  write: string;
  read: string;
}

export interface TopicPermission {
  user: string;
  vhost: string;
  exchange: string;
  write: string;
  read: string;
}

export interface Policy {
  name: string;
  vhost: string;
  pattern: string;
  "apply-to": string;
  priority: number;
  definition: Table;
}

/** The rate of one kind of message, if it was ever counted. */
export function rateOf(stats: Stats | undefined, kind: string): number | undefined {
  return stats?.[`${kind}_details`]?.rate;
}

/** Messages that are moved, or were. */
export interface Job {
  id: string;
  kind: "redrive" | "move" | "undo";
  user: string;
  vhost: string;
  queue: string;
  target: { to?: string; vhost?: string; queue?: string; exchange?: string; routing_key?: string };
  state: "running" | "waiting" | "done" | "failed" | "stopped";
  is_stopping: boolean;
  reason: string;
  started_at: number;
  ended_at: number | null;
  moved: number;
  refused: number;
  refusals: Refusal[];
  moved_per_second: number;
  undoable: boolean;
  undone_by: string | null;
  too_late: number | null;
}

/** Messages that stay, and why. */
export interface Refusal {
  reason: string;
  count: number;
}

/** What a job would do. */
export interface Preview {
  examined: number;
  would_go: number;
  refused: number;
  refusals: Refusal[];
  destinations: { exchange: string; routing_key: string; queues: string[]; count: number }[];
  next: number | null;
}

/** What dead letters have in common. */
export interface DeathCause {
  queue: string;
  reason: string;
  exchange: string;
}

export interface DeadLetterGroup extends DeathCause {
  count: number;
  bytes: number;
  oldest: number;
  newest: number;
  routing_keys: string[];
}

/** A queue with dead letters, as far as it was looked at. */
export interface DeadLetterQueue {
  name: string;
  vhost: string;
  dead_letters: number;
  not_dead: number;
  examined: number;
  next: number | null;
  groups: DeadLetterGroup[];
  other_groups: number;
}

/** A binding, and what it says to a message; of somebody's direct reply only that. */
export interface TracedBinding {
  source?: string;
  destination?: string;
  destination_type?: "queue" | "exchange";
  binding_key?: string;
  arguments?: Table;
  properties_key?: string;
  routing_key?: string;
  reason: string;
  chance: number;
}

export interface RoutedQueue {
  name: string;
  is_certain: boolean;
  through: TracedBinding[];
  bindings: number;
  outcome: "accepted" | "refused" | "dropped" | "expired";
  reason: string;
  pushes_out?: boolean;
  paused?: boolean;
  dead_letter?: { exchange: string; routing_key: string | null; exists: boolean } | null;
}

export interface Trace {
  refusals: string[];
  is_changed: boolean;
  is_routed: boolean;
  queues: RoutedQueue[];
  queues_total: number;
  exchanges: { name: string }[];
  misses: TracedBinding[];
  misses_total: number;
}

export interface PlanItem {
  action: "create" | "change" | "delete" | "blocked";
  kind: string;
  vhost?: string;
  name: string;
  destination?: string;
  routing_key?: string;
  arguments?: Table;
  before?: Table | null;
  after?: Table | null;
  reason?: string;
  losses?: Record<string, number>;
}

export interface Plan {
  fingerprint: string;
  totals: Record<string, number>;
  losses: Record<string, number>;
  items: PlanItem[];
  items_total: number;
  left_out: string[];
  applied?: number;
  failed?: number;
}

export interface TopologyNode {
  id: string;
  kind: "exchange" | "queue" | "consumer";
  name: string;
  column: number;
  type?: string;
  messages?: number;
  consumers?: number;
  paused?: boolean;
  more_before?: number;
  more_behind?: number;
}

export interface TopologyEdge {
  from: string;
  to: string;
  kind: "binding" | "alternate" | "dead-letter" | "consumer";
  keys: string[];
  count: number;
}

export interface Topology {
  things: TopologyNode[];
  lines: TopologyEdge[];
  exchanges_total: number;
}

/** What became of a message that was published by hand. */
export interface PublishResult {
  routed: boolean;
  /** What holds up publishers that are clients. */
  alarms?: string[];
}
