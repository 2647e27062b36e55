/** Virtual hosts: worlds of their own in one broker. */

import { path, post, put, remove } from "../api";
import { Confirm, Opening } from "../components/dialog";
import { notify } from "../components/notice";
import { RIGHTS } from "../components/permissions";
import { LiveTable } from "../components/table";
import { Badge, Button, Card, Facts, Failure, Field, Form, Loading, Page, State, type Values } from "../components/ui";
import { count, rate } from "../format";
import { useLive } from "../live";
import { type Permission, rateOf, type Vhost } from "../model";
import { go, link } from "../router";

const stateOf = ({ cluster_state: states }: Vhost): string | undefined => Object.values(states ?? {})[0];

export function Vhosts() {
  const live = useLive<Vhost[]>(path("vhosts"));
  return (
    <Page
      title="Virtual hosts"
      aside={
        <Opening label="New virtual host" kind="main">
          {(close) => (
            <NewVhost
              close={() => {
                live.refresh();
                close();
              }}
            />
          )}
        </Opening>
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
  const create = async ({ name = "", description = "", tags = "" }: Values) => {
    await put(path("vhosts", name), { description, tags });
    notify(`The virtual host “${name}” is there.`);
    close();
  };
  return (
    <Form submit="Create" action={create}>
      <Field name="name" label="Name" required />
      <Field name="description" label="Description" />
      <Field name="tags" label="Tags" note="with commas between" />
    </Form>
  );
}

export function VhostPage({ name }: { name: string }) {
  const { data, error, refresh } = useLive<Vhost>(path("vhosts", name));
  const state = data && stateOf(data);
  const start = async (node: string) => {
    await post(path("vhosts", name, "start", node));
    notify("Started.");
    refresh();
  };
  return (
    <Page
      title={name}
      aside={
        data && (
          <Confirm
            label="Delete"
            object={`the virtual host “${name}”`}
            question="The virtual host goes, with all of its exchanges, queues and messages, and its clients are disconnected."
            action={() => remove(path("vhosts", name)).then(() => go(link("vhosts")))}
          />
        )
      }
    >
      <Failure error={error} />
      {!data && !error && <Loading />}
      {data && (
        <>
          <Card title="Facts">
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
                ["Firehose", data.tracing ? <Badge tone="warn">on</Badge> : "off"],
                ["Queues", <a href={`${link("queues")}?vhost=${encodeURIComponent(name)}`}>its queues</a>],
                ["Exchanges", <a href={`${link("exchanges")}?vhost=${encodeURIComponent(name)}`}>its exchanges</a>],
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
    <Card title="Who may do what">
      <LiveTable
        label="Permissions"
        live={live}
        itemKey={({ user }) => user}
        empty="Nobody may open it."
        columns={[{ label: "User", show: ({ user }) => <a href={link("users", user)}>{user}</a> }, ...RIGHTS]}
      />
    </Card>
  );
}
