/** What a file of definitions would change, told before it is done. */

import { useState } from "preact/hooks";
import { path, post, withQuery } from "../api";
import { FileField, readJson } from "../components/json-file";
import { notify } from "../components/notice";
import { Table } from "../components/table";
import { Badge, Button, Card, Field, Figure, Figures, Form, type Tone, type Values } from "../components/ui";
import { useVhosts, vhostOptions } from "../components/vhost-select";
import { count, shown } from "../format";
import type { Plan, PlanEntry } from "../model";

interface Planned {
  plan: Plan;
  document: unknown;
  vhost: string;
  isPruning: boolean;
  name: string;
}

const TONES: Record<PlanEntry["action"], Tone> = { create: "good", change: "warn", delete: "bad", blocked: "plain" };
const address = (vhost: string, what: string): string =>
  vhost ? path("warren", "definitions", vhost, what) : path("warren", "definitions", what);

export function PlanImport() {
  const names = useVhosts();
  const [file, setFile] = useState<File>();
  const [planned, setPlanned] = useState<Planned>();
  const make = async (values: Values) => {
    const document = await readJson(file);
    const vhost = values.vhost ?? "";
    const isPruning = values.prune === "on";
    const plan = await post<Plan>(withQuery(address(vhost, "plan"), { prune: isPruning || undefined }), document);
    setPlanned({ plan, document, vhost, isPruning, name: file?.name ?? "" });
  };
  return (
    <Card title="Plan and apply">
      <p class="quiet">
        A plan tells what importing a file would create, change and delete. Applying it does exactly that, or nothing, if the
        broker has changed since.
      </p>
      <Form submit="Plan" action={make}>
        <div class="form-row">
          <FileField id="plan-file" label="Document" choose={setFile} />
          <Field name="vhost" label="For" choices={vhostOptions(names)} />
        </div>
        <label class="check">
          <input type="checkbox" name="prune" /> Delete what it does not have, in the sections that it has
        </label>
      </Form>
      {planned && <Shown planned={planned} done={() => setPlanned(undefined)} />}
    </Card>
  );
}

function Shown({ planned, done }: { planned: Planned; done: () => void }) {
  const { plan, document, vhost, isPruning, name } = planned;
  const { create = 0, change = 0, delete: deleted = 0, blocked = 0, keep = 0 } = plan.totals;
  const apply = async () => {
    const query = { prune: isPruning || undefined, fingerprint: plan.fingerprint };
    const { applied, failed } = await post<Plan>(withQuery(address(vhost, "apply"), query), document);
    notify(`${name}: ${count(applied)} applied${failed ? `, ${count(failed)} failed` : ""}.`, failed ? "bad" : "good");
    done();
  };
  return (
    <div class="found">
      <Figures>
        <Figure label="To create" value={count(create)} />
        <Figure label="To change" value={count(change)} />
        <Figure label="To delete" value={count(deleted)} />
        <Figure label="Cannot be done" value={count(blocked)} />
        <Figure label="As they are" value={count(keep)} />
      </Figures>
      {Object.keys(plan.losses).length > 0 && (
        <p class="failure" role="alert">
          What is deleted takes along: {losses(plan.losses)}.
        </p>
      )}
      <Table<PlanEntry>
        label="Entries of the plan"
        items={plan.items}
        itemKey={(it) => JSON.stringify([it.action, it.kind, it.vhost, it.name, it.destination, it.routing_key, it.arguments])}
        empty="Everything in the file is there already."
        columns={[
          { label: "What", show: (it) => <Badge tone={TONES[it.action]}>{it.action}</Badge> },
          { label: "Kind", show: (it) => it.kind },
          { label: "Name", show: (it) => <Name entry={it} /> },
          { label: "Details", show: (it) => <Details entry={it} /> },
        ]}
      />
      {plan.items.length < plan.items_total && (
        <p class="quiet">
          {count(plan.items.length)} of {count(plan.items_total)} are shown.
        </p>
      )}
      {plan.left_out.map((text) => (
        <p key={text} class="quiet">
          Left out: {text}
        </p>
      ))}
      <div class="form-end">
        {create + change + deleted > 0 && (
          <Button kind={deleted ? "danger" : "main"} onClick={apply}>
            Apply this plan
          </Button>
        )}
        <Button onClick={done}>Put it away</Button>
      </div>
    </div>
  );
}

const losses = (table: Record<string, number>): string =>
  Object.entries(table)
    .map(([what, number]) => `${count(number)} ${(number === 1 ? what.replace(/s(?=_|$)/, "") : what).replaceAll("_", " ")}`)
    .join(", ");

const Name = ({ entry }: { entry: PlanEntry }) => (
  <>
    {entry.name}
    {entry.destination !== undefined && ` → ${entry.destination}`}
    {entry.routing_key && <code> {entry.routing_key}</code>}
    {entry.vhost && <small>in {entry.vhost}</small>}
  </>
);

function Details({ entry }: { entry: PlanEntry }) {
  const { before, after, reason } = entry;
  const changed = Object.keys({ ...before, ...after }).filter((key) => shown(before?.[key]) !== shown(after?.[key]));
  return (
    <>
      {reason && <p class="reason">{reason}</p>}
      {entry.losses && <p class="reason">takes along {losses(entry.losses)}</p>}
      {before && after && (
        <ul class="arguments">
          {changed.map((key) => (
            <li key={key}>
              <span class="quiet">{key}</span> <del>{shown(before[key])}</del> → <ins>{shown(after[key])}</ins>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
