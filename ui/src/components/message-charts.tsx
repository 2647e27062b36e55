/** What waits, and what moves: of the broker, or of one queue. */

import type { Stats } from "../model";
import { Chart, type Samples } from "./chart";
import { Card } from "./ui";

const LABELS = {
  publish: "Publish",
  confirm: "Confirm",
  deliver: "Deliver (acks)",
  deliver_no_ack: "Deliver (automatic)",
  ack: "Acknowledge",
  redeliver: "Redeliver",
  get: "Get",
};

interface MessageChartsProps {
  lengths: { messages_ready_details?: Samples; messages_unacknowledged_details?: Samples } | undefined;
  stats: Stats | undefined;
  /** The kinds of messages that are drawn. */
  kinds: (keyof typeof LABELS)[];
}

export function MessageCharts({ lengths, stats, kinds }: MessageChartsProps) {
  return (
    <div class="columns">
      <Card title="Messages waiting">
        <Chart
          kind="level"
          lines={[
            { label: "Ready", details: lengths?.messages_ready_details },
            { label: "Unacknowledged", details: lengths?.messages_unacknowledged_details },
          ]}
        />
      </Card>
      <Card title="Messages a second">
        <Chart kind="rate" lines={kinds.map((kind) => ({ label: LABELS[kind], details: stats?.[`${kind}_details`] }))} />
      </Card>
    </div>
  );
}
