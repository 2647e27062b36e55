/** Shovels: their state, and forms to create and change them. */

import { path, post, put, remove } from "../api";
import type { CurrentUser, Parameter, Shovel } from "../api-types";
import { Button } from "../components/button";
import { ConfirmButton, DialogButton } from "../components/dialog";
import { FieldErrors } from "../components/form";
import { Card, Page } from "../components/layout";
import { Forwarded, Lag, LastError, LinkState } from "../components/link-cells";
import { notify } from "../components/notice";
import { ShovelForm } from "../components/shovel-form";
import { Sparkline } from "../components/sparkline";
import { Badge } from "../components/status";
import { type Column, LiveTable } from "../components/table";
import { addressesOf, type Definition } from "../definition";
import { useLive } from "../live";
import { mayMakePolicies, mayMonitor } from "../session";

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

function Status({ mayChange }: { mayChange: boolean }) {
  const live = useLive<Shovel[]>(path("shovels"));
  const columns: Column<Shovel>[] = [
    { label: "Name", show: ({ name, type }) => [name, type === "static" && <Badge>static</Badge>] },
    { label: "State", show: (it) => <LinkState link={it} state={it.state} /> },
    { label: "Rate", show: (it) => <Sparkline counter={it.forwarded} label={`Rate of ${it.name}`} /> },
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
      <LiveTable
        label="Running shovels"
        live={live}
        itemKey={({ vhost, name }) => `${vhost} ${name}`}
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
  return <Button onClick={restart}>Restart</Button>;
}

function Definitions() {
  const live = useLive<Parameter[]>(path("parameters", "shovel"));
  const { refresh } = live;
  const form = (close: () => void, old?: Parameter) => (
    <ShovelForm
      old={old}
      save={async (vhost, name, definition) => {
        if (!old && live.data?.some((each) => each.vhost === vhost && each.name === name)) {
          throw new FieldErrors({ name: `There is a shovel “${name}” in ${vhost} already.` });
        }
        await put(path("parameters", "shovel", vhost, name), { value: definition });
        notify(`The shovel “${name}” was saved.`);
        refresh();
        close();
      }}
    />
  );
  return (
    <Card title="Definitions" aside={<DialogButton label="New shovel">{(close) => form(close)}</DialogButton>}>
      <LiveTable
        label="Shovels"
        live={live}
        itemKey={({ vhost, name }) => `${vhost} ${name}`}
        columns={[
          { label: "Name", show: ({ name }) => name },
          { label: "From", show: ({ value }) => <End definition={value as Definition} end="src" /> },
          { label: "To", show: ({ value }) => <End definition={value as Definition} end="dest" /> },
          { label: "Acknowledgement", show: ({ value }) => String((value as Definition)["ack-mode"] ?? "on-confirm") },
          { label: "Virtual host", show: ({ vhost }) => vhost },
          {
            label: "Actions",
            show: (it) => (
              <span class="actions">
                <DialogButton label="Edit" title={`Edit the shovel “${it.name}”`}>
                  {(close) => form(close, it)}
                </DialogButton>
                <ConfirmButton
                  label="Delete"
                  object={`the shovel “${it.name}”`}
                  question="The shovel stops. Messages that it has not forwarded stay in the source."
                  action={() => remove(path("parameters", "shovel", it.vhost, it.name)).then(refresh)}
                />
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
        <small key={uri} class="why quiet">
          {uri}
        </small>
      ))}
    </>
  );
}
