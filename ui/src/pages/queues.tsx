/** The list of queues. */

import { path, put } from "../api";
import type { Queue } from "../api-types";
import { ARGUMENTS_NOTE, parseArguments } from "../components/arguments";
import { useCluster } from "../components/cluster";
import { DialogButton } from "../components/dialog";
import { Checkbox, Field, Form, type FormValues } from "../components/form";
import { Page } from "../components/layout";
import { notify } from "../components/notice";
import { Badge, State } from "../components/status";
import { type Column, PagedTable } from "../components/table";
import { useSelectedVhost, VhostField, VhostSelect } from "../components/vhost-select";
import { count, rate } from "../format";
import { rateOf } from "../model";
import { link } from "../router";

const SHOWN = [
  "name",
  "vhost",
  "type",
  "state",
  "node",
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
  const vhost = useSelectedVhost();
  const node: Column<Queue> = { label: "Node", sort: "node", show: (it) => it.node };
  const ofCluster = useCluster() ? [node] : [];
  return (
    <Page
      title="Queues"
      aside={
        <>
          <VhostSelect />
          <DialogButton label="New queue" kind="main">
            {(close) => <NewQueue close={close} />}
          </DialogButton>
        </>
      }
    >
      <PagedTable<Queue>
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
          ...ofCluster,
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
            label: "Incoming",
            sort: "message_stats.publish_details.rate",
            isNumber: true,
            show: (it) => rate(rateOf(it.message_stats, "publish")),
          },
          {
            label: "Deliver / get",
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
        <Badge tone="warn" title="paused: no messages are delivered">
          paused
        </Badge>
      )}
      {queue.durable && <Badge title="durable: survives a restart, unless the broker runs in memory only">durable</Badge>}
      {queue.auto_delete && <Badge title="auto-delete: deleted when its last consumer is cancelled">auto-delete</Badge>}
      {queue.exclusive && <Badge title="exclusive: deleted when its connection closes">exclusive</Badge>}
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
  const create = async (values: FormValues) => {
    const { vhost = "/", name = "", type } = values;
    await put(path("queues", vhost, name), {
      durable: values.durable === "true",
      auto_delete: values.auto_delete === "on",
      arguments: { "x-queue-type": type, ...parseArguments(values.arguments ?? "") },
    });
    notify(`Queue “${name}” created.`);
    close();
  };
  return (
    <Form submit="Create" action={create}>
      <VhostField />
      <Field name="name" label="Name" required />
      <Field name="type" label="Type" choices={["classic", "quorum", "stream"]} />
      <Field
        name="durable"
        label="Durability"
        choices={[
          ["true", "durable"],
          ["false", "transient"],
        ]}
      />
      <Checkbox name="auto_delete" label="Auto-delete: delete the queue when its last consumer is cancelled" />
      <Field
        name="arguments"
        label="Arguments"
        rows={3}
        note={`${ARGUMENTS_NOTE}. For example x-message-ttl, x-max-length, x-dead-letter-exchange`}
        placeholder="x-message-ttl = 60000"
      />
    </Form>
  );
}
