/** Virtual hosts: the list, and one virtual host with its permissions. */

import { path, post, put, remove } from "../api";
import type { Permission, Vhost } from "../api-types";
import { Button } from "../components/button";
import { ConfirmButton, DialogButton } from "../components/dialog";
import { Field, Form, type FormValues } from "../components/form";
import { Card, Facts, Page } from "../components/layout";
import { notify } from "../components/notice";
import { PERMISSION_COLUMNS } from "../components/permissions";
import { Badge, ErrorMessage, Loading, State } from "../components/status";
import { LiveTable } from "../components/table";
import { count, rate } from "../format";
import { useLive } from "../live";
import { rateOf } from "../model";
import { link, navigate } from "../router";

const stateOf = ({ cluster_state: states }: Vhost): string | undefined => Object.values(states ?? {})[0];

export function Vhosts() {
  const live = useLive<Vhost[]>(path("vhosts"));
  return (
    <Page
      title="Virtual hosts"
      aside={
        <DialogButton label="New virtual host" kind="main">
          {(close) => (
            <NewVhost
              close={() => {
                live.refresh();
                close();
              }}
            />
          )}
        </DialogButton>
      }
    >
      <LiveTable
        label="Virtual hosts"
        live={live}
        itemKey={({ name }) => name}
        columns={[
          {
            label: "Name",
            show: ({ name, description }) => (
              <>
                <a href={link("vhosts", name)}>{name}</a>
                {description && <small>{description}</small>}
              </>
            ),
          },
          { label: "State", show: (vhost) => <State state={stateOf(vhost)} /> },
          { label: "Ready", isNumber: true, show: (it) => count(it.messages_ready ?? 0) },
          { label: "Unacked", isNumber: true, show: (it) => count(it.messages_unacknowledged ?? 0) },
          { label: "Publish", isNumber: true, show: (it) => rate(rateOf(it.message_stats, "publish") ?? 0) },
          { label: "Deliver", isNumber: true, show: (it) => rate(rateOf(it.message_stats, "deliver_get") ?? 0) },
        ]}
      />
    </Page>
  );
}

function NewVhost({ close }: { close: () => void }) {
  const create = async ({ name = "", description = "", tags = "" }: FormValues) => {
    await put(path("vhosts", name), { description, tags });
    notify(`Virtual host “${name}” created.`);
    close();
  };
  return (
    <Form submit="Create" action={create}>
      <Field name="name" label="Name" required />
      <Field name="description" label="Description" />
      <Field name="tags" label="Tags" note="separated by commas" />
    </Form>
  );
}

export function VhostPage({ name }: { name: string }) {
  const { data, error, refresh } = useLive<Vhost>(path("vhosts", name));
  const state = data && stateOf(data);
  const start = async (node: string) => {
    await post(path("vhosts", name, "start", node));
    notify("Virtual host started.");
    refresh();
  };
  return (
    <Page
      title={name}
      aside={
        data && (
          <ConfirmButton
            label="Delete"
            object={`the virtual host “${name}”`}
            question="The virtual host is deleted with all its exchanges, queues and messages, and its clients are disconnected."
            action={() => remove(path("vhosts", name)).then(() => navigate(link("vhosts")))}
          />
        )
      }
    >
      <ErrorMessage error={error} />
      {!data && !error && <Loading />}
      {data && (
        <>
          <Card title="Details">
            <Facts
              facts={[
                [
                  "State",
                  <>
                    <State state={state} />{" "}
                    {state !== "running" &&
                      Object.keys(data.cluster_state ?? {}).map((node) => (
                        <Button key={node} onClick={() => start(node)}>
                          Start on {node}
                        </Button>
                      ))}
                  </>,
                ],
                ["Description", data.description],
                ["Tags", data.tags?.length ? data.tags.map((tag) => <Badge key={tag}>{tag}</Badge>) : undefined],
                ["Tracing (firehose)", data.tracing ? <Badge tone="warn">on</Badge> : "off"],
                ["Queues", <a href={`${link("queues")}?vhost=${encodeURIComponent(name)}`}>View queues</a>],
                ["Exchanges", <a href={`${link("exchanges")}?vhost=${encodeURIComponent(name)}`}>View exchanges</a>],
              ]}
            />
          </Card>
          <Permitted vhost={name} />
        </>
      )}
    </Page>
  );
}

function Permitted({ vhost }: { vhost: string }) {
  const live = useLive<Permission[]>(path("vhosts", vhost, "permissions"));
  return (
    <Card title="Permissions">
      <LiveTable
        label="Permissions"
        live={live}
        itemKey={({ user }) => user}
        empty="No user has permissions in this virtual host."
        columns={[{ label: "User", show: ({ user }) => <a href={link("users", user)}>{user}</a> }, ...PERMISSION_COLUMNS]}
      />
    </Card>
  );
}
