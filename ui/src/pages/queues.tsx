/** Every queue that one may see. */

import { path, put } from "../api";
import { ARGUMENTS_NOTE, parseArguments } from "../components/arguments";
import { Opening } from "../components/dialog";
import { notify } from "../components/notice";
import { Listing } from "../components/table";
import { Badge, Check, Field, Form, Page, State, type Values } from "../components/ui";
import { useChosenVhost, VhostChoice, VhostField } from "../components/vhost-select";
import { count, rate } from "../format";
import { type Queue, rateOf } from "../model";
import { link } from "../router";

const SHOWN = [
  "name",
  "vhost",
  "type",
  "state",
  "durable",
  "auto_delete",
  "exclusive",
  "policy",
  "consumers",
  "arguments",
  "messages",
  "messages_ready",
  "messages_unacknowledged",
  "message_stats.publish_details.rate",
  "message_stats.deliver_get_details.rate",
  "message_stats.ack_details.rate",
].join(","); // prettier-ignore

export function Queues() {
  const vhost = useChosenVhost();
  return (
    <Page
      title="Queues"
      aside={
        <>
          <VhostChoice />
          <Opening label="New queue" kind="main">
            {(close) => <NewQueue close={close} />}
          </Opening>
        </>
      }
    >
      <Listing<Queue>
        label="Queues"
        url={vhost ? path("queues", vhost) : path("queues")}
        query={{ columns: SHOWN }}
        itemKey={(queue) => `${queue.vhost} ${queue.name}`}
        columns={[
          { label: "Virtual host", sort: "vhost", show: (it) => it.vhost },
          { label: "Name", sort: "name", show: (it) => <a href={link("queues", it.vhost, it.name)}>{it.name}</a> },
          { label: "Type", sort: "type", show: ({ type }) => type },
          { label: "Features", show: (queue) => <Features queue={queue} /> },
          { label: "State", sort: "state", show: ({ state }) => <State state={state} /> },
          { label: "Consumers", sort: "consumers", isNumber: true, show: (it) => count(it.consumers) },
          { label: "Ready", sort: "messages_ready", isNumber: true, show: (it) => count(it.messages_ready) },
          {
            label: "Unacked",
            sort: "messages_unacknowledged",
            isNumber: true,
            show: (it) => count(it.messages_unacknowledged),
          },
          { label: "Total", sort: "messages", isNumber: true, show: (it) => count(it.messages) },
          {
            label: "In",
            sort: "message_stats.publish_details.rate",
            isNumber: true,
            show: (it) => rate(rateOf(it.message_stats, "publish")),
          },
          {
            label: "Out",
            sort: "message_stats.deliver_get_details.rate",
            isNumber: true,
            show: (it) => rate(rateOf(it.message_stats, "deliver_get")),
          },
        ]}
      />
    </Page>
  );
}

const ABBREVIATED: [string, string][] = [
  ["x-message-ttl", "TTL"],
  ["x-expires", "expires"],
  ["x-max-length", "limit"],
  ["x-max-length-bytes", "size limit"],
  ["x-max-priority", "priority"],
  ["x-max-age", "age limit"],
  ["x-dead-letter-exchange", "DLX"],
  ["x-single-active-consumer", "single active"],
];

export function Features({ queue }: { queue: Queue }) {
  return (
    <>
      {queue.paused && (
        <Badge tone="warn" title="hands nothing out">
          paused
        </Badge>
      )}
      {queue.durable && <Badge title="declared durable: survives a restart, unless the broker is in memory">durable</Badge>}
      {queue.auto_delete && <Badge title="goes with its last consumer">auto-delete</Badge>}
      {queue.exclusive && <Badge title="goes with its connection">exclusive</Badge>}
      {ABBREVIATED.filter(([argument]) => queue.arguments && argument in queue.arguments).map(([argument, text]) => (
        <Badge key={argument} title={`${argument} = ${JSON.stringify(queue.arguments[argument])}`}>
          {text}
        </Badge>
      ))}
      {queue.policy && <Badge title="policy">{queue.policy}</Badge>}
    </>
  );
}

function NewQueue({ close }: { close: () => void }) {
  const create = async (values: Values) => {
    const { vhost = "/", name = "", type } = values;
    await put(path("queues", vhost, name), {
      durable: values.durable === "true",
      auto_delete: values.auto_delete === "on",
      arguments: { "x-queue-type": type, ...parseArguments(values.arguments ?? "") },
    });
    notify(`The queue “${name}” is there.`);
    close();
  };
  return (
    <Form submit="Create" action={create}>
      <VhostField />
      <Field name="name" label="Name" required />
      <Field name="type" label="Type" choices={["classic", "stream"]} />
      <Field
        name="durable"
        label="Survives a restart"
        choices={[
          ["true", "yes (durable)"],
          ["false", "no (transient)"],
        ]}
      />
      <Check name="auto_delete" label="Delete it when its last consumer goes" />
      <Field
        name="arguments"
        label="Arguments"
        rows={3}
        note={`${ARGUMENTS_NOTE}. As x-message-ttl, x-max-length, x-dead-letter-exchange`}
        placeholder="x-message-ttl = 60000"
      />
    </Form>
  );
}
