/** Federation: the links, the upstreams, and sets of upstreams. */

import { path, put, remove } from "../api";
import type { CurrentUser, FederationLink, Parameter } from "../api-types";
import { ConfirmButton, DialogButton } from "../components/dialog";
import { FederationLinkTable } from "../components/federation-links";
import { Field, Form, type FormValues } from "../components/form";
import { Card, Page } from "../components/layout";
import { LinkTable } from "../components/link-table";
import { notify } from "../components/notice";
import { LiveTable } from "../components/table";
import { UpstreamForm } from "../components/upstream-form";
import { VhostField } from "../components/vhost-select";
import { addressesOf, type Definition } from "../definition";
import { asText } from "../format";
import { useLive } from "../live";
import { link } from "../router";
import { mayMakePolicies, mayMonitor } from "../session";

const UPSTREAM = "federation-upstream";
const SET = "federation-upstream-set";
export function Federation({ user }: { user: CurrentUser }) {
  return (
    <Page title="Federation">
      <p class="quiet">
        A federated exchange or queue receives messages of other brokers, its upstreams. A <a href={link("policies")}>policy</a>{" "}
        with the key federation-upstream-set (all, or the name of a set) or federation-upstream (the name of an upstream)
        federates what it matches.
      </p>
      {mayMonitor(user) && <Links mayChange={mayMakePolicies(user)} />}
      {mayMakePolicies(user) && (
        <>
          <Upstreams />
          <Sets />
        </>
      )}
    </Page>
  );
}

function Links({ mayChange }: { mayChange: boolean }) {
  const live = useLive<FederationLink[]>(path("federation-links"));
  return (
    <Card title="Links">
      <FederationLinkTable live={live} mayChange={mayChange} />
    </Card>
  );
}

function Upstreams() {
  const live = useLive<Parameter[]>(path("parameters", UPSTREAM));
  const { refresh } = live;
  const form = (close: () => void, old?: Parameter) => (
    <UpstreamForm
      old={old}
      save={async (vhost, name, value) => {
        await put(path("parameters", UPSTREAM, vhost, name), { value });
        notify(`The upstream “${name}” was saved.`);
        refresh();
        close();
      }}
    />
  );
  return (
    <Card title="Upstreams" aside={<DialogButton label="New upstream">{(close) => form(close)}</DialogButton>}>
      <LinkTable
        label="Upstreams"
        live={live}
        itemKey={({ vhost, name }) => `${vhost} ${name}`}
        textOf={({ name }) => name}
        empty="There are no upstreams."
        columns={[
          { label: "Name", show: ({ name }) => name },
          {
            label: "Addresses",
            show: ({ value }) => addressesOf((value as Definition).uri).map((uri) => <div key={uri}>{uri}</div>),
          },
          { label: "Settings", show: ({ value }) => settings(value as Definition) },
          { label: "Virtual host", show: ({ vhost }) => vhost },
          {
            label: "Actions",
            show: (it) => (
              <span class="actions">
                <DialogButton label="Edit" title={`Edit the upstream “${it.name}”`}>
                  {(close) => form(close, it)}
                </DialogButton>
                <ConfirmButton
                  label="Delete"
                  object={`the upstream “${it.name}”`}
                  question="Its links end, and what they have created at the upstream is deleted."
                  action={() => remove(path("parameters", UPSTREAM, it.vhost, it.name)).then(refresh)}
                />
              </span>
            ),
          },
        ]}
      />
    </Card>
  );
}

function settings(value: Definition): string {
  return Object.entries(value)
    .filter(([key]) => key !== "uri")
    .map(([key, item]) => `${key} ${asText(item)}`)
    .join(", ");
}

function Sets() {
  const live = useLive<Parameter[]>(path("parameters", SET));
  const { refresh } = live;
  const form = (close: () => void, old?: Parameter) => (
    <SetForm
      old={old}
      done={() => {
        refresh();
        close();
      }}
    />
  );
  return (
    <Card title="Sets of upstreams" aside={<DialogButton label="New set">{(close) => form(close)}</DialogButton>}>
      <p class="quiet">The set “all” always has all upstreams of its virtual host.</p>
      <LiveTable
        label="Sets"
        live={live}
        itemKey={({ vhost, name }) => `${vhost} ${name}`}
        columns={[
          { label: "Name", show: ({ name }) => name },
          {
            label: "Upstreams",
            show: ({ value }) =>
              membersOf(value)
                .map(({ upstream }) => upstream)
                .join(", "),
          },
          { label: "Virtual host", show: ({ vhost }) => vhost },
          {
            label: "Actions",
            show: (it) => (
              <span class="actions">
                <DialogButton label="Edit" title={`Edit the set “${it.name}”`}>
                  {(close) => form(close, it)}
                </DialogButton>
                <ConfirmButton
                  label="Delete"
                  object={`the set “${it.name}”`}
                  question="Links that exist because of this set end."
                  action={() => remove(path("parameters", SET, it.vhost, it.name)).then(refresh)}
                />
              </span>
            ),
          },
        ]}
      />
    </Card>
  );
}

type Member = { upstream: string } & Definition;

const membersOf = (value: unknown): Member[] => (Array.isArray(value) ? (value as Member[]) : []);

function SetForm({ old, done }: { old?: Parameter | undefined; done: () => void }) {
  const members = membersOf(old?.value);
  const save = async (values: FormValues) => {
    const names = (values.upstreams ?? "").split("\n").map((line) => line.trim());
    const value = names.filter(Boolean).map((upstream) => members.find((member) => member.upstream === upstream) ?? { upstream });
    await put(path("parameters", SET, old?.vhost ?? values.vhost ?? "/", old?.name ?? values.name ?? ""), { value });
    done();
  };
  return (
    <Form submit={old ? "Save" : "Create"} action={save}>
      {!old && <VhostField />}
      {!old && <Field name="name" label="Name" required />}
      <Field
        name="upstreams"
        label="Upstreams"
        rows={4}
        required
        value={members.map(({ upstream }) => upstream).join("\n")}
        note="the names of upstreams, one per line"
      />
    </Form>
  );
}
