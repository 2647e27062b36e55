/** Policies and operator policies. */

import { path, put, remove } from "../api";
import type { CurrentUser, Policy } from "../api-types";
import { ARGUMENTS_NOTE, Arguments, parseArguments } from "../components/arguments";
import { ConfirmButton, DialogButton } from "../components/dialog";
import { Field, Form, type FormValues } from "../components/form";
import { Card, Page } from "../components/layout";
import { LiveTable } from "../components/table";
import { VhostField } from "../components/vhost-select";
import { useLive } from "../live";
import { isAdministrator, mayMakePolicies } from "../session";

interface KindProps {
  kind: "policies" | "operator-policies";
  title: string;
  note: string;
  mayChange: boolean;
}

export function Policies({ user }: { user: CurrentUser }) {
  return (
    <Page title="Policies">
      <Kind
        kind="policies"
        title="Policies"
        note="If several policies match a name, the one with the highest priority applies."
        mayChange={mayMakePolicies(user)}
      />
      <Kind
        kind="operator-policies"
        title="Operator policies"
        note="Operator policies are upper bounds: if a policy sets the same key, the stricter value applies."
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
          <DialogButton label={kind === "policies" ? "New policy" : "New operator policy"}>
            {(close) => (
              <NewPolicy
                kind={kind}
                close={() => {
                  refresh();
                  close();
                }}
              />
            )}
          </DialogButton>
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
          { label: "Apply to", show: (policy) => policy["apply-to"] },
          { label: "Definition", show: ({ definition }) => <Arguments table={definition} /> },
          { label: "Priority", isNumber: true, show: ({ priority }) => priority },
          {
            label: "Actions",
            show: ({ vhost, name }) =>
              mayChange && (
                <ConfirmButton
                  label="Delete"
                  object={`the policy “${name}”`}
                  question="The policy no longer applies to the queues and exchanges that it matches."
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
  const create = async (values: FormValues) => {
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
      <Field name="pattern" label="Pattern" required note="a regular expression that names match, such as ^orders\." />
      <Field name="apply-to" label="Apply to" choices={choices} />
      <Field name="priority" label="Priority" type="number" value={0} />
      <Field name="definition" label="Definition" rows={4} note={ARGUMENTS_NOTE} placeholder="message-ttl = 60000" />
    </Form>
  );
}
