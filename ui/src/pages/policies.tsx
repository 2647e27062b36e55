/** Policies: arguments given to many queues and exchanges at once, by name. */

import { path, put, remove } from "../api";
import { ARGUMENTS_NOTE, Arguments, parseArguments } from "../components/arguments";
import { Confirm, Opening } from "../components/dialog";
import { LiveTable } from "../components/table";
import { Card, Field, Form, Page, type Values } from "../components/ui";
import { VhostField } from "../components/vhost-select";
import { useLive } from "../live";
import type { Policy } from "../model";
import { isAdministrator, mayMakePolicies, type User } from "../session";

interface KindProps {
  kind: "policies" | "operator-policies";
  title: string;
  note: string;
  mayChange: boolean;
}

export function Policies({ user }: { user: User }) {
  return (
    <Page title="Policies">
      <Kind
        kind="policies"
        title="Policies"
        note="Of those whose pattern matches a name, the one with the highest priority counts."
        mayChange={mayMakePolicies(user)}
      />
      <Kind
        kind="operator-policies"
        title="Operator policies"
        note="Bounds that nobody else can lift: the stricter of both counts."
        mayChange={isAdministrator(user)}
      />
    </Page>
  );
}

function Kind({ kind, title, note, mayChange }: KindProps) {
  const live = useLive<Policy[]>(path(kind));
  const { refresh } = live;
  return (
    <Card
      title={title}
      aside={
        mayChange && (
          <Opening label={kind === "policies" ? "New policy" : "New operator policy"}>
            {(close) => (
              <NewPolicy
                kind={kind}
                close={() => {
                  refresh();
                  close();
                }}
              />
            )}
          </Opening>
        )
      }
    >
      <p class="quiet">{note}</p>
      <LiveTable
        label={title}
        live={live}
        itemKey={({ vhost, name }) => `${vhost} ${name}`}
        columns={[
          { label: "Virtual host", show: ({ vhost }) => vhost },
          { label: "Name", show: ({ name }) => name },
          { label: "Pattern", show: ({ pattern }) => <code>{pattern}</code> },
          { label: "Applies to", show: (policy) => policy["apply-to"] },
          { label: "Definition", show: ({ definition }) => <Arguments table={definition} /> },
          { label: "Priority", isNumber: true, show: ({ priority }) => priority },
          {
            label: "Actions",
            show: ({ vhost, name }) =>
              mayChange && (
                <Confirm
                  label="Delete"
                  object={`the policy “${name}”`}
                  question="What it says does not hold any more, from now on."
                  action={() => remove(path(kind, vhost, name)).then(refresh)}
                />
              ),
          },
        ]}
      />
    </Card>
  );
}

function NewPolicy({ kind, close }: Pick<KindProps, "kind"> & { close: () => void }) {
  const create = async (values: Values) => {
    const { vhost = "/", name = "", pattern, definition = "" } = values;
    await put(path(kind, vhost, name), {
      pattern,
      "apply-to": values["apply-to"],
      priority: Number(values.priority),
      definition: parseArguments(definition),
    });
    close();
  };
  const choices = kind === "policies" ? ["all", "queues", "exchanges"] : ["queues"];
  return (
    <Form submit="Create" action={create}>
      <VhostField />
      <Field name="name" label="Name" required />
      <Field name="pattern" label="Pattern" required note="a regular expression for names, as ^orders\." />
      <Field name="apply-to" label="Applies to" choices={choices} />
      <Field name="priority" label="Priority" type="number" value={0} />
      <Field name="definition" label="Definition" rows={4} note={ARGUMENTS_NOTE} placeholder="message-ttl = 60000" />
    </Form>
  );
}
