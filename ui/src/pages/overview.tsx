/** Totals, rates, nodes and listeners of the broker. */

import { path, withQuery } from "../api";
import type { CurrentUser, Node, Overview } from "../api-types";
import { Card, Figure, Figures, Page } from "../components/layout";
import { MessageCharts } from "../components/message-charts";
import { Badge, ErrorMessage, Loading } from "../components/status";
import { Table } from "../components/table";
import { samplingQuery, TimeRangeSelect, useTimeRange } from "../components/time-range";
import { count, formatBytes, formatDuration, rate } from "../format";
import { useLive } from "../live";
import { rateOf } from "../model";
import { link } from "../router";
import { mayMonitor } from "../session";

export function OverviewPage({ user }: { user: CurrentUser }) {
  const age = useTimeRange();
  const { data, error } = useLive<Overview>(withQuery(path("overview"), samplingQuery(age)));
  return (
    <Page title="Overview" aside={<TimeRangeSelect age={age} />}>
      <ErrorMessage error={error} />
      {data ? <Contents data={data} user={user} /> : !error && <Loading />}
    </Page>
  );
}

function Contents({ data, user }: { data: Overview; user: CurrentUser }) {
  const { message_stats: stats, queue_totals: totals, object_totals: objects } = data;
  return (
    <>
      <Figures>
        <Figure label="Ready" value={count(totals?.messages_ready ?? 0)} />
        <Figure label="Unacknowledged" value={count(totals?.messages_unacknowledged ?? 0)} />
        <Figure label="Published" value={rate(rateOf(stats, "publish") ?? 0)} />
        <Figure label="Delivered" value={rate(rateOf(stats, "deliver_get") ?? 0)} />
        {["connections", "channels", "exchanges", "queues", "consumers"].map((name) => (
          <Figure
            key={name}
            label={name[0]?.toUpperCase() + name.slice(1)}
            value={name === "consumers" ? count(objects[name]) : <a href={link(name)}>{count(objects[name])}</a>}
          />
        ))}
      </Figures>
      <MessageCharts
        lengths={totals}
        stats={stats}
        kinds={["publish", "confirm", "deliver", "deliver_no_ack", "ack", "redeliver"]}
      />
      {mayMonitor(user) && <Nodes isInMemory={data.in_memory ?? false} />}
      {data.listeners && (
        <Card title="Listening ports">
          <Table
            label="Listeners"
            items={data.listeners}
            itemKey={({ protocol, ip_address, port }) => `${protocol} ${ip_address} ${port}`}
            columns={[
              { label: "Protocol", show: ({ protocol }) => protocol },
              { label: "Address", show: ({ ip_address }) => ip_address },
              { label: "Port", isNumber: true, show: ({ port }) => port },
            ]}
          />
        </Card>
      )}
      <p class="quiet">
        {data.product_name} {data.product_version} · cluster {data.cluster_name}
        {data.node && ` · node ${data.node}`}
      </p>
    </>
  );
}

function Nodes({ isInMemory }: { isInMemory: boolean }) {
  const { data, error } = useLive<Node[]>(path("nodes"));
  return (
    <Card title="Nodes">
      <ErrorMessage error={error} />
      {data && (
        <Table
          label="Nodes"
          items={data}
          itemKey={({ name }) => name}
          columns={[
            { label: "Name", show: ({ name }) => name },
            {
              label: "State",
              show: ({ running }) => <Badge tone={running ? "good" : "bad"}>{running ? "running" : "down"}</Badge>,
            },
            { label: "Uptime", show: ({ uptime }) => (uptime === undefined ? "–" : formatDuration(uptime)) },
            {
              label: "Memory",
              show: (node) => (
                <Level used={node.mem_used} limit={node.mem_limit} isAlarm={node.mem_alarm} word="high watermark" />
              ),
            },
            {
              label: "Disk free",
              show: (node) =>
                isInMemory ? (
                  <span class="quiet">not used: the broker runs in memory only</span>
                ) : (
                  <Level used={node.disk_free} limit={node.disk_free_limit} isAlarm={node.disk_free_alarm} word="low watermark" />
                ),
            },
            {
              label: "File descriptors",
              isNumber: true,
              show: ({ fd_used, fd_total }) => `${count(fd_used)} of ${count(fd_total)}`,
            },
          ]}
        />
      )}
    </Card>
  );
}

interface LevelProps {
  used: number | undefined;
  limit: number | undefined;
  isAlarm: boolean | undefined;
  word: string;
}

function Level({ used, limit, isAlarm, word }: LevelProps) {
  return (
    <>
      {formatBytes(used)} <span class="quiet">{limit === undefined ? "" : `${word} ${formatBytes(limit)}`}</span>{" "}
      {isAlarm && <Badge tone="bad">alarm: publishers are blocked</Badge>}
    </>
  );
}
