/** One queue: its totals and rates, its messages, consumers, leases and bindings. */

import { path, post, put, remove, withQuery } from "../api";
import type { Binding, CurrentUser, Queue } from "../api-types";
import { Arguments } from "../components/arguments";
import { Button } from "../components/button";
import { ConsumerTable } from "../components/consumer-table";
import { ConfirmButton, DialogButton } from "../components/dialog";
import { LinksOf } from "../components/federation-links";
import { Card, Facts, Figure, Figures, Page } from "../components/layout";
import { MessageCharts } from "../components/message-charts";
import { notify } from "../components/notice";
import { PublishForm } from "../components/publish-form";
import { Badge, ErrorMessage, Loading, State } from "../components/status";
import { type Tab, Tabs } from "../components/tabs";
import { samplingQuery, TimeRangeSelect, useTimeRange } from "../components/time-range";
import { count, formatBytes, formatDuration, time } from "../format";
import { useLive } from "../live";
import { link, navigate, setQuery, useLocation } from "../router";
import { mayMakePolicies, mayMonitor } from "../session";
import { BindForm, BindingTable } from "./bindings";
import { DEFAULT_EXCHANGE } from "./exchanges";
import { GetMessages } from "./get-messages";
import { Leases } from "./leases";
import { Move } from "./move-messages";
import { messageStart, Peek } from "./peek";
import { Features } from "./queues";
import { QUORUM, Quarantine } from "./quorum-queue";
import { Replicas } from "./replicas";
import { StreamClientTables, StreamFacts, StreamFigures, streamStart } from "./stream";

const STREAM = "stream";

export function QueuePage({ vhost, name, user }: { vhost: string; name: string; user: CurrentUser }) {
  const age = useTimeRange();
  const address = path("queues", vhost, name);
  const { data, error, refresh } = useLive<Queue>(withQuery(address, samplingQuery(age)));
  const tab = useLocation().query.get("tab") ?? "overview";
  return (
    <Page
      title={name}
      aside={
        <>
          <TimeRangeSelect age={age} />
          <a class="button" href={withQuery(link("topology"), { vhost, kind: "queue", name })}>
            Topology
          </a>
          {data && <Pause vhost={vhost} name={name} isPaused={data.paused ?? false} changed={refresh} />}
          {data && data.type !== STREAM && (
            <ConfirmButton
              label="Purge"
              object={`the queue “${name}”`}
              question={`All ready messages (${count(data.messages_ready)}) are deleted permanently. Unacknowledged messages are not purged.`}
              action={() =>
                remove(path("queues", vhost, name, "contents")).then(() => {
                  notify("Queue purged.");
                  refresh();
                })
              }
            />
          )}
          {data && (
            <ConfirmButton
              label="Delete"
              object={`the queue “${name}”`}
              question={`The queue is deleted with its bindings and all its messages (${count(data.messages)}).`}
              action={() => remove(address).then(() => navigate(link("queues")))}
            />
          )}
        </>
      }
    >
      <ErrorMessage error={error} />
      {!data && !error && <Loading />}
      {data && (
        <>
          {data.paused && (
            <p class="paused" role="status">
              This queue is paused: no messages are delivered until it is resumed. Publishing and acknowledging continue.
            </p>
          )}
          {data.type === STREAM ? <StreamFigures vhost={vhost} name={name} /> : <QueueTotals queue={data} />}
          <Tabs
            current={tab}
            choose={(chosen) => setQuery({ tab: chosen })}
            tabs={data.type === STREAM ? streamTabs(data) : classicTabs(data, user, refresh)}
          />
        </>
      )}
    </Page>
  );
}

const QueueTotals = ({ queue }: { queue: Queue }) => (
  <Figures>
    <Figure label="Ready" value={count(queue.messages_ready)} />
    <Figure label="Unacknowledged" value={count(queue.messages_unacknowledged)} />
    <Figure label="Consumers" value={count(queue.consumers)} />
    {queue.type === QUORUM ? (
      <>
        <Figure label="Delayed" value={count(queue.messages_delayed)} />
        <Figure label="Dead-lettered" value={count(queue.messages_dlx)} />
        <Figure label="Quarantined" value={count(queue.messages_quarantined)} />
      </>
    ) : (
      <Figure label="Paged out" value={count(queue.messages_paged_out)} />
    )}
    <Figure label="Message bytes" value={formatBytes(queue.message_bytes)} />
  </Figures>
);

function classicTabs(queue: Queue, user: CurrentUser, changed: () => void): Tab[] {
  const { vhost, name } = queue;
  return [
    {
      name: "overview",
      label: "Overview",
      content: () => (
        <>
          {queue.policy && mayMonitor(user) && (
            <LinksOf vhost={vhost} kind="queue" name={name} mayChange={mayMakePolicies(user)} />
          )}
          {queue.type === QUORUM && <Quarantine queue={queue} changed={changed} />}
          <QueueDetails queue={queue} />
          {queue.type === QUORUM && <Replicas queue={queue} user={user} changed={changed} />}
        </>
      ),
    },
    { name: "messages", label: "Peek", content: () => <Peek vhost={vhost} name={name} start={messageStart} /> },
    {
      name: "get",
      label: "Get messages",
      content: () => <GetMessages address={path("queues", vhost, name)} changed={changed} />,
    },
    { name: "move", label: "Move", content: () => <Move vhost={vhost} name={name} user={user} changed={changed} /> },
    publishing(queue),
    {
      name: "consumers",
      label: "Consumers",
      content: () => (
        <Card>
          <ConsumerTable consumers={queue.consumer_details ?? []} />
        </Card>
      ),
    },
    { name: "leases", label: "Leases", content: () => <Leases vhost={vhost} name={name} changed={changed} /> },
    { name: "bindings", label: "Bindings", content: () => <Bindings vhost={vhost} name={name} /> },
  ];
}

function streamTabs(queue: Queue): Tab[] {
  const { vhost, name } = queue;
  return [
    {
      name: "overview",
      label: "Overview",
      content: () => (
        <>
          <StreamFacts vhost={vhost} name={name} />
          <QueueDetails queue={queue} />
        </>
      ),
    },
    { name: "messages", label: "Peek", content: () => <Peek vhost={vhost} name={name} start={streamStart} /> },
    { name: "clients", label: "Consumers and publishers", content: () => <StreamClientTables vhost={vhost} name={name} /> },
    publishing(queue),
    { name: "bindings", label: "Bindings", content: () => <Bindings vhost={vhost} name={name} /> },
  ];
}

const publishing = ({ vhost, name }: Queue): Tab => ({
  name: "publish",
  label: "Publish",
  content: () => (
    <Card>
      <p class="quiet">The message is published to the default exchange, with the name of the queue as its routing key.</p>
      <PublishForm
        routingKey={name}
        publish={(message) => post(path("exchanges", vhost, DEFAULT_EXCHANGE, "publish"), message)}
      />
    </Card>
  ),
});

interface PauseProps {
  vhost: string;
  name: string;
  isPaused: boolean;
  changed: () => void;
}

function Pause({ vhost, name, isPaused, changed }: PauseProps) {
  const address = path("warren", "queues", vhost, name, "pause");
  const change = async () => {
    await (isPaused ? remove(address) : put(address));
    notify(isPaused ? "Queue resumed." : "Queue paused.");
    changed();
  };
  return <Button onClick={change}>{isPaused ? "Resume" : "Pause"}</Button>;
}

function QueueDetails({ queue }: { queue: Queue }) {
  return (
    <>
      <MessageCharts
        lengths={queue}
        stats={queue.message_stats}
        kinds={["publish", "deliver", "deliver_no_ack", "ack", "redeliver", "get"]}
      />
      <Card title="Details">
        <Facts
          facts={[
            ["State", queue.paused ? <Badge tone="warn">paused</Badge> : <State state={queue.state} />],
            ["Virtual host", queue.vhost],
            ["Type", queue.type],
            ["Node", queue.node],
            ["Features", <Features queue={queue} />],
            ["Arguments", <Arguments table={queue.arguments} />],
            ["Policy", queue.policy],
            ["Operator policy", queue.operator_policy],
            ["Effective policy definition", <Arguments table={queue.effective_policy_definition} />],
            ["Active consumer", queue.single_active_consumer_tag ?? queue.single_active_consumer_ctag],
            ["Exclusive consumer", queue.exclusive_consumer_tag],
            ["Idle since", queue.idle_since],
            ["Oldest ready message", since(queue.oldest_ready_at)],
            ["Oldest unacknowledged delivery", since(queue.oldest_unacknowledged_at)],
            ["In memory", `${count(queue.messages_ram)} messages, ${formatBytes(queue.message_bytes_ram)}`],
            ["Persistent", `${count(queue.messages_persistent)} messages, ${formatBytes(queue.message_bytes_persistent)}`],
            ["Queue memory", formatBytes(queue.memory)],
          ]}
        />
      </Card>
    </>
  );
}

function since(at: number | undefined): string | undefined {
  return at === undefined ? undefined : `${time(at)} (${formatDuration(Date.now() - at)} ago)`;
}

function Bindings({ vhost, name }: { vhost: string; name: string }) {
  const live = useLive<Binding[]>(path("queues", vhost, name, "bindings"));
  return (
    <Card
      title="Bindings to this queue"
      aside={
        <DialogButton label="Bind">
          {(close) => (
            <BindForm
              vhost={vhost}
              queue={name}
              close={() => {
                live.refresh();
                close();
              }}
            />
          )}
        </DialogButton>
      }
    >
      <BindingTable live={live} end="source" />
    </Card>
  );
}
