/** Totals, rates, nodes and listeners of the broker. */

import { path, withQuery } from "../api";
import type { CurrentUser, Listener, Overview } from "../api-types";
import { ClusterConditions, useCluster } from "../components/cluster";
import { Card, Figure, Figures, Page } from "../components/layout";
import { MessageCharts } from "../components/message-charts";
import { ErrorMessage, Loading, NodesMissing } from "../components/status";
import { type Column, Table } from "../components/table";
import { samplingQuery, TimeRangeSelect, useTimeRange } from "../components/time-range";
import { count, rate } from "../format";
import { useLive } from "../live";
import { rateOf } from "../model";
import { link } from "../router";
import { mayMonitor } from "../session";
import { Nodes } from "./nodes";

export function OverviewPage({ user }: { user: CurrentUser }) {
  const age = useTimeRange();
  const { data, error, nodesMissing } = useLive<Overview>(withQuery(path("overview"), samplingQuery(age)));
  return (
    <Page title="Overview" aside={<TimeRangeSelect age={age} />}>
      <ClusterConditions />
      <ErrorMessage error={error} />
      <NodesMissing names={nodesMissing} />
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
          <Listeners listeners={data.listeners} />
        </Card>
      )}
      <p class="quiet">
        {data.product_name} {data.product_version} · cluster {data.cluster_name}
        {data.node && ` · node ${data.node}`}
      </p>
    </>
  );
}

function Listeners({ listeners }: { listeners: Listener[] }) {
  const columns: Column<Listener>[] = [
    { label: "Protocol", show: ({ protocol }) => protocol },
    { label: "Address", show: ({ ip_address }) => ip_address },
    { label: "Port", isNumber: true, show: ({ port }) => port },
  ];
  if (useCluster()) columns.unshift({ label: "Node", show: ({ node }) => node });
  return (
    <Table
      label="Listeners"
      items={listeners}
      itemKey={({ node, protocol, ip_address, port }) => `${node} ${protocol} ${ip_address} ${port}`}
      columns={columns}
    />
  );
}
