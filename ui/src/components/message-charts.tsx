/** The queue lengths and message rates of the broker, or of one queue. */

import type { MessageStats, RateDetails } from "../api-types";
import { Chart } from "./chart";
import { Card } from "./layout";

const LABELS = {
  publish: "Publish",
  confirm: "Publisher confirm",
  deliver: "Deliver (manual ack)",
  deliver_no_ack: "Deliver (auto ack)",
  ack: "Consumer ack",
  redeliver: "Redeliver",
  get: "Get",
};

interface MessageChartsProps {
  lengths: { messages_ready_details?: RateDetails; messages_unacknowledged_details?: RateDetails } | undefined;
  stats: MessageStats | undefined;
  /** The rates that are drawn. */
  kinds: (keyof typeof LABELS)[];
}

export function MessageCharts({ lengths, stats, kinds }: MessageChartsProps) {
  return (
    <div class="columns">
      <Card title="Queued messages">
        <Chart
          kind="level"
          lines={[
            { label: "Ready", details: lengths?.messages_ready_details },
            { label: "Unacknowledged", details: lengths?.messages_unacknowledged_details },
          ]}
        />
      </Card>
      <Card title="Message rates">
        <Chart kind="rate" lines={kinds.map((kind) => ({ label: LABELS[kind], details: stats?.[`${kind}_details`] }))} />
      </Card>
    </div>
  );
}
