/** Users: what they may do, and where. */

import { path, put, remove } from "../api";
import { Confirm, Opening } from "../components/dialog";
import { notify } from "../components/notice";
import { RIGHTS } from "../components/permissions";
import { LiveTable } from "../components/table";
import { Badge, Card, Facts, Failure, Field, Form, Loading, Page, type Values } from "../components/ui";
import { VhostField } from "../components/vhost-select";
import { useLive } from "../live";
import type { Permission, TopicPermission, UserRow } from "../model";
import { go, link } from "../router";

const TAGS_NOTE = "any of administrator, monitoring, policymaker, management, with commas between; none: no access here";

const tagsOf = ({ tags }: UserRow): string[] => (Array.isArray(tags) ? tags : tags.split(",").filter(Boolean));

const Tags = ({ user }: { user: UserRow }) => (
  <>
    {tagsOf(user).map((tag) => (
      <Badge key={tag}>{tag}</Badge>
    ))}
  </>
);

function VhostsOf({ names }: { names: string[] | undefined }) {
  if (names?.length === 0) return <Badge tone="warn">none</Badge>;
  return names?.join(", ");
}

export function Users() {
  const users = useLive<UserRow[]>(path("users"));
  const permissions = useLive<Permission[]>(path("permissions"));
  const vhostsOf = (name: string) => permissions.data?.filter(({ user }) => user === name).map(({ vhost }) => vhost);
  return (
    <Page
      title="Users"
      aside={
        <Opening label="New user" kind="main">
          {(close) => (
            <NewUser
              close={() => {
                users.refresh();
                close();
              }}
            />
          )}
        </Opening>
      }
    >
      <LiveTable
        label="Users"
        live={users}
        itemKey={({ name }) => name}
        columns={[
          { label: "Name", show: ({ name }) => <a href={link("users", name)}>{name}</a> },
          { label: "Tags", show: (user) => <Tags user={user} /> },
          {
            label: "Virtual hosts",
            show: ({ name }) => <VhostsOf names={vhostsOf(name)} />,
          },
          {
            label: "Password",
            show: ({ password_hash: hash }) => (hash ? "yes" : <Badge title="cannot sign in with a password">none</Badge>),
          },
        ]}
      />
    </Page>
  );
}

function NewUser({ close }: { close: () => void }) {
  const create = async ({ name = "", password = "", tags = "" }: Values) => {
    await put(path("users", name), { password, tags });
    notify(`The user “${name}” is there, and has no permissions yet.`);
    close();
  };
  return (
    <Form submit="Create" action={create}>
      <Field name="name" label="Name" required autocomplete="off" />
      <Field name="password" label="Password" type="password" required autocomplete="new-password" />
      <Field name="tags" label="Tags" note={TAGS_NOTE} />
    </Form>
  );
}

export function UserPage({ name }: { name: string }) {
  const user = useLive<UserRow>(path("users", name));
  return (
    <Page
      title={name}
      aside={
        user.data && (
          <Confirm
            label="Delete"
            object={`the user “${name}”`}
            question="The user cannot sign in any more, and is disconnected."
            action={() => remove(path("users", name)).then(() => go(link("users")))}
          />
        )
      }
    >
      <Failure error={user.error} />
      {!user.data && !user.error && <Loading />}
      {user.data && (
        <>
          <Card title="Facts">
            <Facts
              facts={[
                ["Tags", tagsOf(user.data).length ? <Tags user={user.data} /> : "none: no access here"],
                ["Password", user.data.password_hash ? "yes" : "none"],
              ]}
            />
          </Card>
          <Permissions user={name} />
          <TopicPermissions user={name} />
          <Card title="Change password and tags">
            <ChangeUser user={user.data} changed={user.refresh} />
          </Card>
        </>
      )}
    </Page>
  );
}

function ChangeUser({ user, changed }: { user: UserRow; changed: () => void }) {
  const change = async ({ password, tags }: Values) => {
    const secret = password ? { password } : { password_hash: user.password_hash };
    await put(path("users", user.name), { ...secret, tags });
    notify("Changed.");
    changed();
  };
  return (
    <Form submit="Change" action={change}>
      <Field name="password" label="New password" type="password" note="empty: as it is" autocomplete="new-password" />
      <Field name="tags" label="Tags" value={tagsOf(user).join(",")} note={TAGS_NOTE} />
    </Form>
  );
}

const RIGHTS_NOTE = "a regular expression; empty: nothing";

function Permissions({ user }: { user: string }) {
  const live = useLive<Permission[]>(path("users", user, "permissions"));
  const { refresh } = live;
  const set = async ({ vhost = "/", configure, write, read }: Values) => {
    await put(path("permissions", vhost, user), { configure, write, read });
    refresh();
  };
  return (
    <Card title="Permissions">
      <LiveTable
        label="Permissions"
        live={live}
        itemKey={({ vhost }) => vhost}
        empty="The user may not open any virtual host."
        columns={[
          { label: "Virtual host", show: ({ vhost }) => <a href={link("vhosts", vhost)}>{vhost}</a> },
          ...RIGHTS,
          {
            label: "Actions",
            show: ({ vhost }) => (
              <Confirm
                label="Clear"
                object={`the permissions of “${user}” in “${vhost}”`}
                question={`The user may not open “${vhost}” any more.`}
                action={() => remove(path("permissions", vhost, user)).then(refresh)}
              />
            ),
          },
        ]}
      />
      <Form submit="Set" action={set}>
        <div class="form-row">
          <VhostField />
          <Field name="configure" label="Configure" value=".*" note={RIGHTS_NOTE} />
          <Field name="write" label="Write" value=".*" note={RIGHTS_NOTE} />
          <Field name="read" label="Read" value=".*" note={RIGHTS_NOTE} />
        </div>
      </Form>
    </Card>
  );
}

function TopicPermissions({ user }: { user: string }) {
  const live = useLive<TopicPermission[]>(path("users", user, "topic-permissions"));
  const { refresh } = live;
  const set = async ({ vhost = "/", exchange, write, read }: Values) => {
    await put(path("topic-permissions", vhost, user), { exchange, write, read });
    refresh();
  };
  return (
    <Card title="Topic permissions">
      <LiveTable
        label="Topic permissions"
        live={live}
        itemKey={({ vhost, exchange }) => `${vhost} ${exchange}`}
        empty="Routing keys are not restricted."
        columns={[
          { label: "Virtual host", show: ({ vhost }) => vhost },
          { label: "Exchange", show: ({ exchange }) => exchange },
          { label: "Write", show: ({ write }) => <code>{write}</code> },
          { label: "Read", show: ({ read }) => <code>{read}</code> },
          {
            label: "Actions",
            show: ({ vhost, exchange }) => (
              <Confirm
                label="Clear"
                object={`the topics of “${user}” at “${exchange}”`}
                question={`Routing keys of “${exchange}” are not restricted any more.`}
                action={() => remove(path("topic-permissions", vhost, user, exchange)).then(refresh)}
              />
            ),
          },
        ]}
      />
      <Form submit="Set" action={set}>
        <div class="form-row">
          <VhostField />
          <Field name="exchange" label="Exchange" value="amq.topic" />
          <Field name="write" label="Write" value=".*" note={RIGHTS_NOTE} />
          <Field name="read" label="Read" value=".*" note={RIGHTS_NOTE} />
        </div>
      </Form>
    </Card>
  );
}
