/** Shovels: their state, one shovel, and forms to create and change them. */

import { get, path, post, put, remove, withQuery } from "../api";
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
import { count } from "../format";
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

/** One shovel; without a virtual host it is a static one. */
export function ShovelPage({ vhost, name, user }: { vhost?: string; name: string; user: CurrentUser }) {
  const age = useTimeRange();
  const isStatic = vhost === undefined;
  const address = isStatic ? path("warren", "static-shovels", name) : path("shovels", "vhost", vhost, name);
  const { data, error, refresh } = useLive<Shovel>(withQuery(address, samplingQuery(age)));
  const mayChange = !isStatic && mayMakePolicies(user);
  return (
    <Page
      title={name}
      aside={
        <>
          <TimeRangeSelect age={age} />
          {data && mayChange && (
            <>
              <Restart vhost={vhost} name={name} refresh={refresh} />
              <EditDefinition vhost={vhost} name={name} done={refresh} />
              <Delete vhost={vhost} name={name} done={() => navigate(link("shovels"))} />
            </>
          )}
        </>
      }
    >
      <ErrorMessage error={error} />
      {!data && !error && <Loading />}
      {data && isStatic && (
        <p class="quiet">
          <Static /> This shovel is defined in the configuration of the broker. It is changed there, and a restart of the broker
          applies the change.
        </p>
      )}
      {data && (
        <LinkDetails
          link={data}
          state={data.state}
          facts={[
            ["Virtual host", data.vhost],
            ["Source", data.src_queue ?? data.src_exchange],
            ["Binding key", data.src_exchange_key],
            ["Destination", data.dest_queue ?? data.dest_exchange],
            ["Routing key", data.dest_exchange_key],
            ["Remaining", typeof data.remaining === "number" ? count(data.remaining) : undefined],
          ]}
        />
      )}
      {data && mayChange && (
        <DryRunCard
          ask={async () => {
            const { value } = await get<Parameter>(path("parameters", PARAMETER, vhost, name));
            return checkShovel(vhost, name, value as Definition);
          }}
        />
      )}
    </Page>
  );
}

function EditDefinition({ vhost, name, done }: DeleteProps) {
  const { data } = useLive<Parameter>(path("parameters", PARAMETER, vhost, name));
  return data ? <Edit shovel={data} done={done} /> : null;
}
