/** Exchanges: the list, and one exchange with its bindings and rates. */

import { path, post, put, remove, withQuery } from "../api";
import type { Binding, CurrentUser, Exchange, Overview } from "../api-types";
import { ARGUMENTS_NOTE, Arguments, parseArguments } from "../components/arguments";
import { Chart } from "../components/chart";
import { ConfirmButton, DialogButton } from "../components/dialog";
import { LinksOf } from "../components/federation-links";
import { Checkbox, Field, Form, type FormValues } from "../components/form";
import { Card, Facts, Page } from "../components/layout";
import { notify } from "../components/notice";
import { PublishForm } from "../components/publish-form";
import { Badge, ErrorMessage, Loading } from "../components/status";
import { PagedTable } from "../components/table";
import { samplingQuery, TimeRangeSelect, useTimeRange } from "../components/time-range";
import { useSelectedVhost, VhostField, VhostSelect } from "../components/vhost-select";
import { rate } from "../format";
import { useLive } from "../live";
import { rateOf } from "../model";
import { link, navigate } from "../router";
import { mayMakePolicies, mayMonitor } from "../session";
import { BindForm, BindingTable } from "./bindings";
import { RouteTrace } from "./route-trace";

export const DEFAULT_EXCHANGE = "amq.default";
const exchangeName = (name: string): string => name || "(default)";

export function Exchanges() {
  const vhost = useSelectedVhost();
  return (
    <Page
      title="Exchanges"
      aside={
        <>
          <VhostSelect />
          <DialogButton label="New exchange" kind="main">
            {(close) => <NewExchange close={close} />}
          </DialogButton>
        </>
      }
    >
      <PagedTable<Exchange>
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
            label: "Rate in",
            sort: "message_stats.publish_in_details.rate",
            isNumber: true,
            show: (it) => rate(rateOf(it.message_stats, "publish_in")),
          },
          {
            label: "Rate out",
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
      {exchange.durable && <Badge title="durable: survives a restart, unless the broker runs in memory only">durable</Badge>}
      {exchange.auto_delete && <Badge title="auto-delete: deleted when its last binding is removed">auto-delete</Badge>}
      {exchange.internal && <Badge title="internal: clients cannot publish to it">internal</Badge>}
      {exchange.policy && <Badge title="policy">{exchange.policy}</Badge>}
    </>
  );
}

function NewExchange({ close }: { close: () => void }) {
  const { data } = useLive<Overview>(`${path("overview")}?columns=exchange_types`);
  // Types with a purpose of their own, such as that of federation at an upstream, are not for users.
  const types = data?.exchange_types.filter((type) => !type.internal_purpose).map(({ name }) => name) ?? [
    "direct",
    "fanout",
    "topic",
    "headers",
  ];
  const create = async (values: FormValues) => {
    const { vhost = "/", name = "", type } = values;
    await put(path("exchanges", vhost, name), {
      type,
      durable: values.durable === "true",
      auto_delete: values.auto_delete === "on",
      internal: values.internal === "on",
      arguments: parseArguments(values.arguments ?? ""),
    });
    notify(`Exchange “${name}” created.`);
    close();
  };
  return (
    <Form submit="Create" action={create}>
      <VhostField />
      <Field name="name" label="Name" required />
      <Field name="type" label="Type" choices={types} />
      <Field
        name="durable"
        label="Durability"
        choices={[
          ["true", "durable"],
          ["false", "transient"],
        ]}
      />
      <Checkbox name="auto_delete" label="Auto-delete: delete the exchange when its last binding is removed" />
      <Checkbox name="internal" label="Internal: only other exchanges can publish to it" />
      <Field name="arguments" label="Arguments" rows={3} note={ARGUMENTS_NOTE} placeholder="alternate-exchange = unrouted" />
    </Form>
  );
}

export function ExchangePage({ vhost, name, user }: { vhost: string; name: string; user: CurrentUser }) {
  const age = useTimeRange();
  const address = path("exchanges", vhost, name);
  const { data, error } = useLive<Exchange>(withQuery(address, samplingQuery(age)));
  const from = useLive<Binding[]>(path("exchanges", vhost, name, "bindings", "source"));
  const to = useLive<Binding[]>(path("exchanges", vhost, name, "bindings", "destination"));
  const isDefault = data?.name === "";
  return (
    <Page
      title={exchangeName(name === DEFAULT_EXCHANGE ? "" : name)}
      aside={
        <>
          <TimeRangeSelect age={age} />
          {!isDefault && (
            <a class="button" href={withQuery(link("topology"), { vhost, kind: "exchange", name })}>
              Topology
            </a>
          )}
          {data && !isDefault && !name.startsWith("amq.") && (
            <ConfirmButton
              label="Delete"
              object={`the exchange “${name}”`}
              question="The exchange and its bindings are deleted. Clients that publish to it afterwards get a channel error (404 NOT_FOUND)."
              action={() => remove(address).then(() => navigate(link("exchanges")))}
            />
          )}
        </>
      }
    >
      <ErrorMessage error={error} />
      {!data && !error && <Loading />}
      {data && (
        <>
          <div class="columns">
            <Card title="Message rates">
              <Chart
                kind="rate"
                lines={[
                  { label: "In", details: data.message_stats?.publish_in_details },
                  { label: "Out", details: data.message_stats?.publish_out_details },
                ]}
              />
            </Card>
            <Card title="Details">
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
          {data.policy && mayMonitor(user) && (
            <LinksOf vhost={vhost} kind="exchange" name={name} mayChange={mayMakePolicies(user)} />
          )}
          {isDefault ? (
            <p class="quiet">
              The default exchange is implicitly bound to every queue, with the name of the queue as the routing key.
            </p>
          ) : (
            <>
              <Card
                title="Bindings from this exchange"
                aside={
                  <DialogButton label="Bind">
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
                  </DialogButton>
                }
              >
                <BindingTable live={from} end="destination" />
              </Card>
              {to.data && to.data.length > 0 && (
                <Card title="Bindings to this exchange">
                  <BindingTable live={to} end="source" />
                </Card>
              )}
            </>
          )}
          <RouteTrace vhost={vhost} name={name} />
          {!data.internal && (
            <Card title="Publish message">
              <PublishForm publish={(message) => post(path("exchanges", vhost, name, "publish"), message)} />
            </Card>
          )}
        </>
      )}
    </Page>
  );
}
