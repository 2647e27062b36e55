/** Limits of virtual hosts and of users. */

import { path, put, remove } from "../api";
import type { UserLimits, VhostLimits } from "../api-types";
import { ConfirmButton } from "../components/dialog";
import { Field, Form, type FormValues } from "../components/form";
import { Card, Page } from "../components/layout";
import { LiveTable } from "../components/table";
import { VhostField } from "../components/vhost-select";
import { useLive } from "../live";

interface Limit {
  owner: string;
  name: string;
  value: number;
}

export const Limits = () => (
  <Page title="Limits">
    <Kind kind="vhost-limits" owner="vhost" title="Virtual hosts" names={["max-connections", "max-queues"]} />
    <Kind kind="user-limits" owner="user" title="Users" names={["max-connections", "max-channels"]} />
  </Page>
);

interface KindProps {
  kind: string;
  owner: "vhost" | "user";
  title: string;
  names: string[];
}

function Kind({ kind, owner, title, names }: KindProps) {
  const { data: rows, error, refresh } = useLive<(VhostLimits | UserLimits)[]>(path(kind));
  const limits = rows?.flatMap((row): Limit[] => {
    const name = "vhost" in row ? row.vhost : row.user;
    return Object.entries(row.value).map(([limit, value]) => ({ owner: name, name: limit, value }));
  });
  const set = async (values: FormValues) => {
    await put(path(kind, values[owner] ?? "", values.name ?? ""), { value: Number(values.value) });
    refresh();
  };
  return (
    <Card title={title}>
      <LiveTable
        label={title}
        live={{ data: limits, error }}
        itemKey={({ owner: whose, name }) => `${whose} ${name}`}
        empty="No limits are set."
        columns={[
          { label: owner === "vhost" ? "Virtual host" : "User", show: (limit) => limit.owner },
          { label: "Limit", show: ({ name }) => name },
          { label: "Value", isNumber: true, show: ({ value }) => value },
          {
            label: "Actions",
            show: (limit) => (
              <ConfirmButton
                label="Clear"
                object={`${limit.name} of “${limit.owner}”`}
                question="The limit is removed."
                action={() => remove(path(kind, limit.owner, limit.name)).then(refresh)}
              />
            ),
          },
        ]}
      />
      <Form submit="Set limit" action={set}>
        <div class="form-row">
          {owner === "vhost" ? <VhostField /> : <Field name="user" label="User" required />}
          <Field name="name" label="Limit" choices={names} />
          <Field name="value" label="Value" type="number" required note="0 allows none, -1 is unlimited" />
        </div>
      </Form>
    </Card>
  );
}
