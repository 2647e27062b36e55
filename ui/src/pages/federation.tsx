/** Federation: the links, the upstreams, and sets of upstreams. */

import { ApiError, path, post, put, remove } from "../api";
import type { CurrentUser, FederationLink, Parameter } from "../api-types";
import { parseArguments } from "../components/arguments";
import { Button } from "../components/button";
import { ConfirmButton, DialogButton } from "../components/dialog";
import { Field, FieldErrors, Form, type FormValues } from "../components/form";
import { Card, Page } from "../components/layout";
import { Forwarded, Lag, LastError, LinkState } from "../components/link-cells";
import { notify } from "../components/notice";
import { Sparkline } from "../components/sparkline";
import { type Column, LiveTable } from "../components/table";
import { VhostField } from "../components/vhost-select";
import { addressesOf, type Definition, refusedFields, typed, writtenAddresses } from "../definition";
import { asText } from "../format";
import { useLive } from "../live";
import { link } from "../router";
import { mayMakePolicies, mayMonitor } from "../session";

const UPSTREAM = "federation-upstream";
const SET = "federation-upstream-set";
/** The keys of an upstream with a field of their own. */
const KEYS = [
  "exchange",
  "queue",
  "max-hops",
  "prefetch-count",
  "reconnect-delay",
  "ack-mode",
  "expires",
  "message-ttl",
  "trust-user-id",
];

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
  const restart = async (it: FederationLink) => {
    await post(path("warren", "federation-links", it.vhost, it.id, "restart"));
    notify(`The link of “${nameOf(it)}” connects again.`);
    live.refresh();
  };
  const columns: Column<FederationLink>[] = [
    { label: "Federated", show: (it) => [<FederatedObject key="object" link={it} />, <Quiet key="type">{it.type}</Quiet>] },
    { label: "Upstream", show: (it) => [it.upstream, <Quiet key="uri">{it.uri}</Quiet>] },
    { label: "State", show: (it) => <LinkState link={it} state={it.status} /> },
    { label: "Rate", show: (it) => <Sparkline counter={it.forwarded} label={`Rate of ${nameOf(it)}`} /> },
    { label: "Forwarded", isNumber: true, show: (it) => <Forwarded link={it} /> },
    { label: "Behind", isNumber: true, show: (it) => <Lag link={it} /> },
    { label: "Last error", show: (it) => <LastError link={it} /> },
    { label: "Virtual host", show: ({ vhost }) => vhost },
  ];
  if (mayChange) columns.push({ label: "Actions", show: (it) => <Button onClick={() => restart(it)}>Restart</Button> });
  return (
    <Card title="Links">
      <LiveTable
        label="Federation links"
        live={live}
        itemKey={({ id }) => id}
        empty="This node runs no federation links."
        columns={columns}
      />
    </Card>
  );
}

const Quiet = ({ children }: { children: string }) => <small class="why quiet">{children}</small>;

const nameOf = (it: FederationLink): string => it.exchange ?? it.queue ?? "";

function FederatedObject({ link: it }: { link: FederationLink }) {
  return <a href={link(it.type === "queue" ? "queues" : "exchanges", it.vhost, nameOf(it))}>{nameOf(it)}</a>;
}

function Upstreams() {
  const live = useLive<Parameter[]>(path("parameters", UPSTREAM));
  const { refresh } = live;
  const saved = (close: () => void) => () => {
    refresh();
    close();
  };
  return (
    <Card
      title="Upstreams"
      aside={<DialogButton label="New upstream">{(close) => <UpstreamForm done={saved(close)} />}</DialogButton>}
    >
      <LiveTable
        label="Upstreams"
        live={live}
        itemKey={({ vhost, name }) => `${vhost} ${name}`}
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
                  {(close) => <UpstreamForm old={it} done={saved(close)} />}
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

function UpstreamForm({ old, done }: { old?: Parameter; done: () => void }) {
  const before = (old?.value ?? {}) as Definition;
  const text = (key: string) => (before[key] === undefined ? "" : asText(before[key]));
  const others = Object.entries(before)
    .filter(([key]) => key !== "uri" && !KEYS.includes(key))
    .map(([key, value]) => `${key} = ${asText(value)}`)
    .join("\n");
  const save = async (values: FormValues) => {
    const value = upstreamOf(values);
    const name = old?.name ?? values.name ?? "";
    try {
      await put(path("parameters", UPSTREAM, old?.vhost ?? values.vhost ?? "/", name), { value });
    } catch (failure) {
      const wrong = failure instanceof ApiError ? refusedFields(failure.message, ["uri", ...KEYS]) : {};
      throw Object.keys(wrong).length ? new FieldErrors(wrong) : failure;
    }
    notify(`The upstream “${name}” was saved.`);
    done();
  };
  return (
    <Form submit={old ? "Save" : "Create"} action={save}>
      {!old && (
        <div class="form-row">
          <VhostField />
          <Field name="name" label="Name" required />
        </div>
      )}
      <Field
        name="uri"
        label="Addresses"
        rows={2}
        required
        value={addressesOf(before.uri).join("\n")}
        placeholder="amqp://user:password@host:5672/vhost"
        note="one per line, tried in turn. A password that stays *** is not changed."
      />
      <div class="form-row">
        <Field
          name="exchange"
          label="Exchange"
          value={text("exchange")}
          note="at the upstream, if its name differs from that of the federated exchange"
        />
        <Field
          name="queue"
          label="Queue"
          value={text("queue")}
          note="at the upstream, if its name differs from that of the federated queue"
        />
        <Field
          name="max-hops"
          label="Maximum hops"
          type="number"
          value={text("max-hops")}
          placeholder="1"
          note="links that a message passes at most, for exchanges"
        />
        <Field
          name="prefetch-count"
          label="Prefetch count"
          type="number"
          value={text("prefetch-count")}
          placeholder="1000"
          note="messages on their way at most"
        />
        <Field
          name="reconnect-delay"
          label="Reconnect delay"
          type="number"
          value={text("reconnect-delay")}
          placeholder="5"
          note="seconds until the next attempt to connect"
        />
        <Field
          name="expires"
          label="Expires"
          type="number"
          value={text("expires")}
          note="ms after which the upstream deletes the queue of a link that is away; empty: never"
        />
        <Field
          name="message-ttl"
          label="Message TTL"
          type="number"
          value={text("message-ttl")}
          note="ms that messages wait there for the link; empty: without end"
        />
        <Field
          name="ack-mode"
          label="Acknowledgement"
          value={text("ack-mode")}
          choices={[
            ["", "on-confirm: nothing is lost"],
            ["on-publish", "on-publish: may lose messages"],
            ["no-ack", "no-ack: may lose messages"],
          ]}
        />
        <Field
          name="trust-user-id"
          label="Trust user ids"
          value={text("trust-user-id")}
          choices={[
            ["", "no"],
            ["true", "yes"],
          ]}
          note="keeps the property user_id of messages"
        />
      </div>
      <Field name="others" label="Other keys" rows={2} value={others} note="one per line: key = value" />
    </Form>
  );
}

function upstreamOf(values: FormValues): Definition {
  const wrong: Record<string, string> = {};
  const definition: Definition = {};
  definition.uri = writtenAddresses(values.uri ?? "");
  for (const key of KEYS) {
    const text = (values[key] ?? "").trim();
    if (text) definition[key] = key === "exchange" || key === "queue" ? text : typed(text);
  }
  try {
    Object.assign(definition, parseArguments(values.others ?? ""));
  } catch (error) {
    wrong.others = error instanceof Error ? error.message : String(error);
  }
  if (Object.keys(wrong).length) throw new FieldErrors(wrong);
  return definition;
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
