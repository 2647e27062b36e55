/** Users, their tags and their permissions. */

import { path, put, remove } from "../api";
import type { Permission, TopicPermission, User } from "../api-types";
import { ConfirmButton, DialogButton } from "../components/dialog";
import { Field, Form, type FormValues } from "../components/form";
import { Card, Facts, Page } from "../components/layout";
import { notify } from "../components/notice";
import { PATTERN_COLUMNS, PatternField, PERMISSION_COLUMNS, PermissionCard } from "../components/permissions";
import { Badge, ErrorMessage, Loading } from "../components/status";
import { LiveTable } from "../components/table";
import { useLive } from "../live";
import { link, navigate } from "../router";

const TAGS_NOTE = "any of administrator, monitoring, policymaker, management, separated by commas; empty: no management access";

const Tags = ({ user }: { user: User }) => (
  <>
    {user.tags.map((tag) => (
      <Badge key={tag}>{tag}</Badge>
    ))}
  </>
);

function VhostsOf({ names }: { names: string[] | undefined }) {
  if (names?.length === 0) return <Badge tone="warn">none</Badge>;
  return names?.join(", ");
}

export function Users() {
  const users = useLive<User[]>(path("users"));
  const permissions = useLive<Permission[]>(path("permissions"));
  const vhostsOf = (name: string) => permissions.data?.filter(({ user }) => user === name).map(({ vhost }) => vhost);
  return (
    <Page
      title="Users"
      aside={
        <DialogButton label="New user" kind="main">
          {(close) => (
            <NewUser
              close={() => {
                users.refresh();
                close();
              }}
            />
          )}
        </DialogButton>
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
            show: (user) => (hasPassword(user) ? "yes" : <Badge title="cannot sign in with a password">none</Badge>),
          },
        ]}
      />
    </Page>
  );
}

function NewUser({ close }: { close: () => void }) {
  const create = async ({ name = "", password = "", tags = "" }: FormValues) => {
    await put(path("users", name), { password, tags });
    notify(`User “${name}” created. It has no permissions yet.`);
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
  const user = useLive<User>(path("users", name));
  return (
    <Page
      title={name}
      aside={
        user.data && (
          <ConfirmButton
            label="Delete"
            object={`the user “${name}”`}
            question="The user is deleted, and its connections are closed."
            action={() => remove(path("users", name)).then(() => navigate(link("users")))}
          />
        )
      }
    >
      <ErrorMessage error={user.error} />
      {!user.data && !user.error && <Loading />}
      {user.data && (
        <>
          <Card title="Details">
            <Facts
              facts={[
                ["Tags", user.data.tags.length ? <Tags user={user.data} /> : "none: no management access"],
                ["Password", hasPassword(user.data) ? "yes" : "none"],
              ]}
            />
          </Card>
          <Permissions user={name} />
          <TopicPermissions user={name} />
          <Card title="Update user">
            <ChangeUser user={user.data} changed={user.refresh} />
          </Card>
        </>
      )}
    </Page>
  );
}

function hasPassword(user: User): boolean {
  return user.has_password ?? Boolean(user.password_hash);
}

function ChangeUser({ user, changed }: { user: User; changed: () => void }) {
  const change = async ({ password, tags }: FormValues) => {
    // A broker that hides hashes keeps the present one if none is sent.
    const secret = password ? { password } : { password_hash: user.password_hash };
    await put(path("users", user.name), { ...secret, tags });
    notify("User updated.");
    changed();
  };
  return (
    <Form submit="Update user" action={change}>
      <Field name="password" label="New password" type="password" note="empty: unchanged" autocomplete="new-password" />
      <Field name="tags" label="Tags" value={user.tags.join(",")} note={TAGS_NOTE} />
    </Form>
  );
}

function Permissions({ user }: { user: string }) {
  return (
    <PermissionCard<Permission>
      title="Permissions"
      live={useLive<Permission[]>(path("users", user, "permissions"))}
      itemKey={({ vhost }) => vhost}
      empty="No permissions: the user cannot access any virtual host."
      columns={[
        { label: "Virtual host", show: ({ vhost }) => <a href={link("vhosts", vhost)}>{vhost}</a> },
        ...PERMISSION_COLUMNS,
      ]}
      set={({ vhost = "/", configure, write, read }) => put(path("permissions", vhost, user), { configure, write, read })}
      clear={({ vhost }) => ({
        object: `the permissions of “${user}” in “${vhost}”`,
        consequence: `The user can no longer access “${vhost}”.`,
        address: path("permissions", vhost, user),
      })}
    >
      <PatternField name="configure" label="Configure" />
    </PermissionCard>
  );
}

function TopicPermissions({ user }: { user: string }) {
  return (
    <PermissionCard<TopicPermission>
      title="Topic permissions"
      live={useLive<TopicPermission[]>(path("users", user, "topic-permissions"))}
      itemKey={({ vhost, exchange }) => `${vhost} ${exchange}`}
      empty="No topic permissions: routing keys are not restricted."
      columns={[
        { label: "Virtual host", show: ({ vhost }) => vhost },
        { label: "Exchange", show: ({ exchange }) => exchange },
        ...PATTERN_COLUMNS,
      ]}
      set={({ vhost = "/", exchange, write, read }) => put(path("topic-permissions", vhost, user), { exchange, write, read })}
      clear={({ vhost, exchange }) => ({
        object: `the topic permissions of “${user}” on “${exchange}”`,
        consequence: `Routing keys of “${exchange}” are no longer restricted for this user.`,
        address: path("topic-permissions", vhost, user, exchange),
      })}
    >
      <Field name="exchange" label="Exchange" value="amq.topic" />
    </PermissionCard>
  );
}
