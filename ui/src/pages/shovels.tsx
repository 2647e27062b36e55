/** Shovels: their state, one shovel, and forms to create and change them. */

import type { ComponentChildren } from "preact";
import { path, post, put, remove, withQuery } from "../api";
import type { CurrentUser, Parameter, Shovel } from "../api-types";
import { ConfirmButton, DialogButton } from "../components/dialog";
import { DryRunCard } from "../components/dry-run";
import { FieldErrors } from "../components/form";
import { Card, Page } from "../components/layout";
import { Forwarded, Lag, LastError, LinkState } from "../components/link-cells";
import { LinkDetails } from "../components/link-details";
import { LinkTable } from "../components/link-table";
import { notify } from "../components/notice";
import { checkShovel, ShovelForm } from "../components/shovel-form";
import { Sparkline } from "../components/sparkline";
import { Badge, ErrorMessage, Loading } from "../components/status";
import type { Column } from "../components/table";
import { samplingQuery, TimeRangeSelect, useTimeRange } from "../components/time-range";
import { addressesOf, type Definition } from "../definition";
import { asText, count } from "../format";
import { useLive } from "../live";
import { rateOf } from "../model";
import { link, navigate, shovelPage } from "../router";
import { mayMakePolicies, mayMonitor } from "../session";

const PARAMETER = "shovel";

export function Shovels({ user }: { user: CurrentUser }) {
  return (
    <Page title="Shovels">
      <p class="quiet">
        A shovel moves messages from a queue or an exchange to another one, in this broker or in any other with AMQP 0-9-1.
      </p>
      {mayMonitor(user) && <Status mayChange={mayMakePolicies(user)} />}
      {mayMakePolicies(user) && <Definitions />}
    </Page>
  );
}

const Static = () => <Badge title="defined in the configuration of the broker, and changed there">static</Badge>;

function Status({ mayChange }: { mayChange: boolean }) {
  const live = useLive<Shovel[]>(path("shovels"));
  const columns: Column<Shovel>[] = [
    {
      label: "Name",
      show: ({ name, type, vhost }) => [
        <a key="name" href={shovelPage(vhost, name)}>
          {name}
        </a>,
        type === "static" && (
          <div key="static">
            <Static />
          </div>
        ),
      ],
    },
    { label: "State", show: (it) => <LinkState link={it} state={it.state} /> },
    {
      label: "Rate",
      show: (it) => <Sparkline counter={it.forwarded} current={rateOf(it, "forwarded")} label={`Rate of ${it.name}`} />,
    },
    { label: "Forwarded", isNumber: true, show: (it) => <Forwarded link={it} /> },
    { label: "Behind", isNumber: true, show: (it) => <Lag link={it} /> },
    { label: "Last error", show: (it) => <LastError link={it} /> },
    { label: "Virtual host", show: ({ vhost }) => vhost ?? "–" },
  ];
  if (mayChange) {
    columns.push({
      label: "Actions",
      show: (it) => it.vhost !== undefined && <Restart vhost={it.vhost} name={it.name} refresh={live.refresh} />,
    });
  }
  return (
    <Card title="State">
      <LinkTable
        label="Running shovels"
        live={live}
        itemKey={({ vhost, name }) => `${vhost} ${name}`}
        textOf={({ name }) => name}
        stateOf={({ state }) => state}
        empty="This node runs no shovels."
        columns={columns}
      />
    </Card>
  );
}

function Restart({ vhost, name, refresh }: { vhost: string; name: string; refresh: () => void }) {
  const restart = async () => {
    await post(path("warren", "shovels", vhost, name, "restart"));
    notify(`The shovel “${name}” connects again.`);
    refresh();
  };
  return (
    <ConfirmButton
      label="Restart"
      object={`the shovel “${name}”`}
      question="It closes both connections and connects again. What the destination has not confirmed is delivered again."
      kind="plain"
      action={restart}
    />
  );
}

interface DeleteProps {
  vhost: string;
  name: string;
  done: () => void;
}

const Delete = ({ vhost, name, done }: DeleteProps) => (
  <ConfirmButton
    label="Delete"
    object={`the shovel “${name}”`}
    question="The shovel stops. Messages that it has not forwarded stay in the source."
    action={() => remove(path("parameters", PARAMETER, vhost, name)).then(done)}
  />
);

async function save(vhost: string, name: string, definition: Definition): Promise<void> {
  await put(path("parameters", PARAMETER, vhost, name), { value: definition });
  notify(`The shovel “${name}” was saved.`);
}

const Edit = ({ shovel, done }: { shovel: Parameter; done: () => void }) => (
  <DialogButton label="Edit" title={`Edit the shovel “${shovel.name}”`}>
    {(close) => (
      <ShovelForm
        old={shovel}
        save={async (...saved) => {
          await save(...saved);
          done();
          close();
        }}
      />
    )}
  </DialogButton>
);

function Definitions() {
  const live = useLive<Parameter[]>(path("parameters", PARAMETER));
  const { refresh } = live;
  const create = (close: () => void) => (
    <ShovelForm
      save={async (vhost, name, definition) => {
        if (live.data?.some((each) => each.vhost === vhost && each.name === name)) {
          throw new FieldErrors({ name: `There is a shovel “${name}” in ${vhost} already.` });
        }
        await save(vhost, name, definition);
        refresh();
        close();
      }}
    />
  );
  return (
    <Card title="Definitions" aside={<DialogButton label="New shovel">{create}</DialogButton>}>
      <LinkTable
        label="Shovels"
        live={live}
        itemKey={({ vhost, name }) => `${vhost} ${name}`}
        textOf={({ name }) => name}
        empty="There are no shovels."
        columns={[
          { label: "Name", show: ({ vhost, name }) => <a href={shovelPage(vhost, name)}>{name}</a> },
          { label: "From", show: ({ value }) => <End definition={value as Definition} end="src" /> },
          { label: "To", show: ({ value }) => <End definition={value as Definition} end="dest" /> },
          { label: "Acknowledgement", show: ({ value }) => String((value as Definition)["ack-mode"] ?? "on-confirm") },
          { label: "Virtual host", show: ({ vhost }) => vhost },
          {
            label: "Actions",
            show: (it) => (
              <span class="actions">
                <Edit shovel={it} done={refresh} />
                <Delete vhost={it.vhost} name={it.name} done={refresh} />
              </span>
            ),
          },
        ]}
      />
    </Card>
  );
}

/** One end of a shovel: its addresses without passwords, and its queue or exchange. */
function End({ definition, end }: { definition: Definition; end: "src" | "dest" }) {
  const exchange = definition[`${end}-exchange`];
  const key = definition[`${end}-exchange-key`];
  return (
    <>
      {exchange === undefined
        ? String(definition[`${end}-queue`] ?? definition[`${end}-address`] ?? "the queue of each message")
        : `${exchange}${key === undefined ? "" : ` with key ${key}`}`}
      {addressesOf(definition[`${end}-uri`]).map((uri) => (
        <small key={uri} class="why quiet address">
          {uri}
        </small>
      ))}
    </>
  );
}

interface ShovelPageProps {
  /** undefined: a static shovel. */
  vhost?: string;
  name: string;
  user: CurrentUser;
}

/** One shovel, with its definition for those who may change it. */
export function ShovelPage({ vhost, name, user }: ShovelPageProps) {
  if (vhost === undefined || !mayMakePolicies(user)) return <ShovelView vhost={vhost} name={name} />;
  return <DefinedShovel vhost={vhost} name={name} />;
}

function DefinedShovel({ vhost, name }: { vhost: string; name: string }) {
  const { data, refresh } = useLive<Parameter>(path("parameters", PARAMETER, vhost, name));
  return <ShovelView vhost={vhost} name={name} parameter={data} changed={refresh} />;
}

interface ShovelViewProps {
  vhost: string | undefined;
  name: string;
  parameter?: Parameter | undefined;
  changed?: () => void;
}

function ShovelView({ vhost, name, parameter, changed }: ShovelViewProps) {
  const age = useTimeRange();
  const address = vhost === undefined ? path("warren", "static-shovels", name) : path("shovels", "vhost", vhost, name);
  const { data, error, refresh } = useLive<Shovel>(withQuery(address, samplingQuery(age)));
  const saved = () => {
    changed?.();
    refresh();
  };
  return (
    <Page
      title={name}
      aside={
        <>
          <TimeRangeSelect age={age} />
          {data && parameter && vhost !== undefined && (
            <>
              <Restart vhost={vhost} name={name} refresh={refresh} />
              <Edit shovel={parameter} done={saved} />
              <Delete vhost={vhost} name={name} done={() => navigate(link("shovels"))} />
            </>
          )}
        </>
      }
    >
      <ErrorMessage error={error} />
      {!data && !error && <Loading />}
      {data && vhost === undefined && (
        <p class="quiet">
          <Static /> This shovel is defined in the configuration of the broker. It is changed there, and a restart of the broker
          applies the change.
        </p>
      )}
      {data && <LinkDetails link={data} state={data.state} facts={factsOf(data, parameter)} />}
      {data && parameter && vhost !== undefined && (
        <DryRunCard ask={() => checkShovel(vhost, name, parameter.value as Definition)} />
      )}
    </Page>
  );
}

/** Details of a shovel; while it does not run only its definition has them. */
function factsOf(shovel: Shovel, parameter: Parameter | undefined): [string, ComponentChildren][] {
  const definition = (parameter?.value ?? {}) as Definition;
  const text = (shown: string | undefined, key: string) =>
    shown ?? (definition[key] === undefined ? "" : asText(definition[key]));
  return [
    ["Virtual host", shovel.vhost],
    ["Source queue", text(shovel.src_queue, "src-queue")],
    ["Source exchange", text(shovel.src_exchange, "src-exchange")],
    ["Binding key", text(shovel.src_exchange_key, "src-exchange-key")],
    ["Destination queue", text(shovel.dest_queue, "dest-queue")],
    ["Destination exchange", text(shovel.dest_exchange, "dest-exchange")],
    ["Routing key", text(shovel.dest_exchange_key, "dest-exchange-key")],
    ["Acknowledgement", parameter && text(undefined, "ack-mode")],
    ["Remaining", typeof shovel.remaining === "number" ? count(shovel.remaining) : undefined],
  ];
}
