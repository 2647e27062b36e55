/** Exchanges: where messages go in, and what is bound to them. */

import { path, post, put, remove, withQuery } from "../api";
import { ARGUMENTS_NOTE, Arguments, parseArguments } from "../components/arguments";
import { Chart } from "../components/chart";
import { Confirm, Opening } from "../components/dialog";
import { notify } from "../components/notice";
import { PublishForm } from "../components/publish-form";
import { Listing } from "../components/table";
import { Badge, Card, Check, Facts, Failure, Field, Form, Loading, Page, type Values } from "../components/ui";
import { useChosenVhost, VhostChoice, VhostField } from "../components/vhost-select";
import { rate } from "../format";
import { useLive } from "../live";
import { type Binding, type Exchange, type Overview, rateOf } from "../model";
import { go, link } from "../router";
import { BindForm, BindingTable } from "./bindings";
import { SpanChoice, samplesOver, useAge } from "./overview";
import { RouteTool } from "./route-trace";

export const DEFAULT_EXCHANGE = "amq.default";
const exchangeName = (name: string): string => name || "(default)";

export function Exchanges() {
  const vhost = useChosenVhost();
  return (
    <Page
      title="Exchanges"
      aside={
        <>
          <VhostChoice />
          <Opening label="New exchange" kind="main">
            {(close) => <NewExchange close={close} />}
          </Opening>
        </>
      }
    >
      <Listing<Exchange>
        label="Exchanges"
        url={vhost ? path("exchanges", vhost) : path("exchanges")}
        itemKey={(exchange) => `${exchange.vhost} ${exchange.name}`}
        columns={[
          { label: "Virtual host", sort: "vhost", show: (it) => it.vhost },
          {
            label: "Name",
            sort: "name",
            show: (it) => <a href={link("exchanges", it.vhost, it.name || DEFAULT_EXCHANGE)}>{exchangeName(it.name)}</a>,
          },
          { label: "Type", sort: "type", show: ({ type }) => type },
          { label: "Features", show: (exchange) => <Features exchange={exchange} /> },
          {
            label: "In",
            sort: "message_stats.publish_in_details.rate",
            isNumber: true,
            show: (it) => rate(rateOf(it.message_stats, "publish_in")),
          },
          {
            label: "Out",
            sort: "message_stats.publish_out_details.rate",
            isNumber: true,
            show: (it) => rate(rateOf(it.message_stats, "publish_out")),
          },
        ]}
      />
    </Page>
  );
}

function Features({ exchange }: { exchange: Exchange }) {
  return (
    <>
      {exchange.durable && <Badge title="declared durable: survives a restart, unless the broker is in memory">durable</Badge>}
      {exchange.auto_delete && <Badge title="goes with its last binding">auto-delete</Badge>}
      {exchange.internal && <Badge title="clients cannot publish to it">internal</Badge>}
      {exchange.policy && <Badge title="policy">{exchange.policy}</Badge>}
    </>
  );
}

function NewExchange({ close }: { close: () => void }) {
  const { data } = useLive<Overview>(`${path("overview")}?columns=exchange_types`);
  const types = data?.exchange_types.map(({ name }) => name) ?? ["direct", "fanout", "topic", "headers"];
  const create = async (values: Values) => {
    const { vhost = "/", name = "", type } = values;
    await put(path("exchanges", vhost, name), {
      type,
      durable: values.durable === "true",
      auto_delete: values.auto_delete === "on",
      internal: values.internal === "on",
      arguments: parseArguments(values.arguments ?? ""),
    });
    notify(`The exchange “${name}” is there.`);
    close();
  };
  return (
    <Form submit="Create" action={create}>
      <VhostField />
      <Field name="name" label="Name" required />
      <Field name="type" label="Type" choices={types} />
      <Field
        name="durable"
        label="Survives a restart"
        choices={[
          ["true", "yes (durable)"],
          ["false", "no (transient)"],
        ]}
      />
      <Check name="auto_delete" label="Delete it when its last binding goes" />
      <Check name="internal" label="Only other exchanges may publish to it" />
      <Field name="arguments" label="Arguments" rows={3} note={ARGUMENTS_NOTE} placeholder="alternate-exchange = unrouted" />
    </Form>
  );
}

export function ExchangePage({ vhost, name }: { vhost: string; name: string }) {
  const age = useAge();
  const address = path("exchanges", vhost, name);
  const { data, error } = useLive<Exchange>(withQuery(address, samplesOver(age)));
  const from = useLive<Binding[]>(path("exchanges", vhost, name, "bindings", "source"));
  const to = useLive<Binding[]>(path("exchanges", vhost, name, "bindings", "destination"));
  const isDefault = data?.name === "";
  return (
    <Page
      title={exchangeName(name === DEFAULT_EXCHANGE ? "" : name)}
      aside={
        <>
          <SpanChoice age={age} />
          {!isDefault && (
            <a class="button" href={withQuery(link("topology"), { vhost, kind: "exchange", name })}>
              Topology
            </a>
          )}
          {data && !isDefault && !name.startsWith("amq.") && (
            <Confirm
              label="Delete"
              object={`the exchange “${name}”`}
              question="The exchange and its bindings go. Who publishes to it then gets an error."
              action={() => remove(address).then(() => go(link("exchanges")))}
            />
          )}
        </>
      }
    >
      <Failure error={error} />
      {!data && !error && <Loading />}
      {data && (
        <>
          <div class="columns">
            <Card title="Messages a second">
              <Chart
                kind="rate"
                lines={[
                  { label: "In", details: data.message_stats?.publish_in_details },
                  { label: "Out", details: data.message_stats?.publish_out_details },
                ]}
              />
            </Card>
            <Card title="Facts">
              <Facts
                facts={[
                  ["Type", data.type],
                  ["Virtual host", data.vhost],
                  ["Features", <Features exchange={data} />],
                  ["Arguments", Object.keys(data.arguments).length ? <Arguments table={data.arguments} /> : undefined],
                ]}
              />
            </Card>
          </div>
          {isDefault ? (
            <p class="quiet">The default exchange is bound to every queue, by the queue’s name.</p>
          ) : (
            <>
              <Card
                title="What it routes to"
                aside={
                  <Opening label="Bind">
                    {(close) => (
                      <BindForm
                        vhost={vhost}
                        source={name}
                        close={() => {
                          from.refresh();
                          close();
                        }}
                      />
                    )}
                  </Opening>
                }
              >
                <BindingTable live={from} end="destination" />
              </Card>
              {to.data && to.data.length > 0 && (
                <Card title="What routes to it">
                  <BindingTable live={to} end="source" />
                </Card>
              )}
            </>
          )}
          <RouteTool vhost={vhost} name={name} />
          {!data.internal && (
            <Card title="Publish a message">
              <PublishForm publish={(message) => post(path("exchanges", vhost, name, "publish"), message)} />
            </Card>
          )}
        </>
      )}
    </Page>
  );
}
