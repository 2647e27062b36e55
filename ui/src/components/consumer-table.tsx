/** The consumers of a queue or a channel. */

import type { Consumer } from "../api-types";
import { link } from "../router";
import { Arguments } from "./arguments";
import { Badge } from "./status";
import { Table } from "./table";

export function ConsumerTable({ consumers }: { consumers: Consumer[] }) {
  return (
    <Table
      label="Consumers"
      items={consumers}
      itemKey={({ consumer_tag: tag, channel_details: channel }) => `${channel?.name ?? ""} ${tag}`}
      empty="There are no consumers."
      columns={[
        { label: "Consumer tag", show: ({ consumer_tag: tag }) => tag },
        {
          label: "Queue",
          show: ({ queue }) => queue && <a href={link("queues", queue.vhost, queue.name)}>{queue.name}</a>,
        },
        {
          label: "Channel",
          show: ({ channel_details: channel }) => channel && <a href={link("channels", channel.name)}>{channel.name}</a>,
        },
        {
          label: "Activity status",
          show: ({ active, activity_status: status }) => (
            <Badge tone={active === false ? "plain" : "good"}>{status?.replaceAll("_", " ") ?? "up"}</Badge>
          ),
        },
        { label: "Ack required", show: ({ ack_required: isRequired }) => (isRequired ? "yes" : "no") },
        { label: "Exclusive", show: ({ exclusive }) => (exclusive ? "yes" : "no") },
        { label: "Prefetch", isNumber: true, show: ({ prefetch_count: prefetch }) => prefetch || "unlimited" },
        { label: "Arguments", show: ({ arguments: table }) => <Arguments table={table} /> },
      ]}
    />
  );
}
