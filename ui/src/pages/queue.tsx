/** One queue: what waits in it, how fast it moves, who takes from it, and its messages. */

import { path, post, put, remove, withQuery } from "../api";
import { Arguments } from "../components/arguments";
import { ConsumerTable } from "../components/consumer-table";
import { Confirm, Opening } from "../components/dialog";
import { MessageCharts } from "../components/message-charts";
import { notify } from "../components/notice";
import { PublishForm } from "../components/publish-form";
import { Badge, Button, Card, Facts, Failure, Figure, Figures, Loading, Page, State, type Tab, Tabs } from "../components/ui";
import { count, octets } from "../format";
import { useLive } from "../live";
import type { Binding, Queue } from "../model";
import { go, link, setQuery, usePlace } from "../router";
import { BindForm, BindingTable } from "./bindings";
import { DEFAULT_EXCHANGE } from "./exchanges";
import { GetMessages } from "./get-messages";
import { Leases } from "./leases";
import { Move } from "./move-messages";
import { SpanChoice, samplesOver, useAge } from "./overview";
import { messageStart, Peek } from "./peek";
import { Features } from "./queues";
import { StreamClientsOf, StreamFacts, StreamFigures, streamStart } from "./stream";

const STREAM = "stream";

export function QueuePage({ vhost, name }: { vhost: string; name: string }) {
  const age = useAge();
  const address = path("queues", vhost, name);
  const { data, error, refresh } = useLive<Queue>(withQuery(address, samplesOver(age)));
  const tab = usePlace().query.get("tab") ?? "overview";
  return (
    <Page
      title={name}
      aside={
        <>
          <SpanChoice age={age} />
          <a class="button" href={withQuery(link("topology"), { vhost, kind: "queue", name })}>
            Topology
          </a>
          {data && <Pause vhost={vhost} name={name} isPaused={data.paused ?? false} changed={refresh} />}
          {data && data.type !== STREAM && (
            <Confirm
              label="Purge"
              object={`the queue “${name}”`}
              question={`All ${count(data.messages_ready)} ready messages are lost for good. Those that are unacknowledged stay.`}
              action={() =>
                remove(path("queues", vhost, name, "contents")).then(() => {
                  notify("Purged.");
                  refresh();
                })
              }
            />
          )}
          {data && (
            <Confirm
              label="Delete"
              object={`the queue “${name}”`}
              question={`The queue goes, with its bindings and all ${count(data.messages)} messages.`}
              action={() => remove(address).then(() => go(link("queues")))}
            />
          )}
        </>
      }
    >
      <Failure error={error} />
      {!data && !error && <Loading />}
      {data && (
        <>
          {data.paused && (
            <p class="paused" role="status">
              This queue is paused: nothing is handed out until it goes on. Publishing and acknowledging go on.
            </p>
          )}
          {data.type === STREAM ? <StreamFigures vhost={vhost} name={name} /> : <Lengths queue={data} />}
          <Tabs
            current={tab}
            choose={(chosen) => setQuery({ tab: chosen })}
            tabs={data.type === STREAM ? streamTabs(data) : classicTabs(data, refresh)}
          />
        </>
      )}
    </Page>
  );
}

const Lengths = ({ queue }: { queue: Queue }) => (
  <Figures>
    <Figure label="Ready" value={count(queue.messages_ready)} />
    <Figure label="Unacknowledged" value={count(queue.messages_unacknowledged)} />
    <Figure label="Consumers" value={count(queue.consumers)} />
    <Figure label="On the disk only" value={count(queue.messages_paged_out)} />
    <Figure label="Bodies" value={octets(queue.message_bytes)} />
  </Figures>
);

function classicTabs(queue: Queue, changed: () => void): Tab[] {
  const { vhost, name } = queue;
  return [
    { name: "overview", label: "Overview", content: () => <Now queue={queue} /> },
    { name: "messages", label: "Messages", content: () => <Peek vhost={vhost} name={name} start={messageStart} /> },
    { name: "get", label: "Take out", content: () => <GetMessages address={path("queues", vhost, name)} changed={changed} /> },
    { name: "move", label: "Move", content: () => <Move vhost={vhost} name={name} changed={changed} /> },
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
          <Now queue={queue} />
        </>
      ),
    },
    { name: "messages", label: "Messages", content: () => <Peek vhost={vhost} name={name} start={streamStart} /> },
    { name: "clients", label: "Readers and publishers", content: () => <StreamClientsOf vhost={vhost} name={name} /> },
    publishing(queue),
    { name: "bindings", label: "Bindings", content: () => <Bindings vhost={vhost} name={name} /> },
  ];
}

const publishing = ({ vhost, name }: Queue): Tab => ({
  name: "publish",
  label: "Publish",
  content: () => (
    <Card>
      <p class="quiet">Goes to the default exchange, with the name of the queue as its routing key.</p>
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
    notify(isPaused ? "The queue goes on." : "The queue is paused.");
    changed();
  };
  return <Button onClick={change}>{isPaused ? "Resume" : "Pause"}</Button>;
}

function Now({ queue }: { queue: Queue }) {
  return (
    <>
      <MessageCharts
        lengths={queue}
        stats={queue.message_stats}
        kinds={["publish", "deliver", "deliver_no_ack", "ack", "redeliver", "get"]}
      />
      <Card title="Facts">
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
            ["What policies say", <Arguments table={queue.effective_policy_definition} />],
            ["Active consumer", queue.single_active_consumer_tag],
            ["Exclusive consumer", queue.exclusive_consumer_tag],
            ["Idle since", queue.idle_since],
            ["In memory", `${count(queue.messages_ram)} messages, ${octets(queue.message_bytes_ram)}`],
            ["Persistent", `${count(queue.messages_persistent)} messages, ${octets(queue.message_bytes_persistent)}`],
            ["Memory of the queue", octets(queue.memory)],
          ]}
        />
      </Card>
    </>
  );
}

function Bindings({ vhost, name }: { vhost: string; name: string }) {
  const live = useLive<Binding[]>(path("queues", vhost, name, "bindings"));
  return (
    <Card
      title="What routes to it"
      aside={
        <Opening label="Bind">
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
        </Opening>
      }
    >
      <BindingTable live={live} end="source" />
    </Card>
  );
}
