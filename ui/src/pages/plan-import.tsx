/** Plans an import of definitions, shows what it would change, and applies it. */

import { useState } from "preact/hooks";
import { path, post, withQuery } from "../api";
import type { Plan, PlanItem } from "../api-types";
import { Button } from "../components/button";
import { Field, Form, type FormValues } from "../components/form";
import { FileField, readJson } from "../components/json-file";
import { Card, Figure, Figures } from "../components/layout";
import { notify } from "../components/notice";
import { Badge, type Tone } from "../components/status";
import { Table } from "../components/table";
import { useVhosts, vhostOptions } from "../components/vhost-select";
import { asText, count } from "../format";

interface Planned {
  plan: Plan;
  document: unknown;
  vhost: string;
  isPruning: boolean;
  name: string;
}

const TONES: Record<PlanItem["action"], Tone> = { create: "good", change: "warn", delete: "bad", blocked: "plain" };
const address = (vhost: string, what: string): string =>
  vhost ? path("warren", "definitions", vhost, what) : path("warren", "definitions", what);

export function PlanImport() {
  const names = useVhosts();
  const [file, setFile] = useState<File>();
  const [planned, setPlanned] = useState<Planned>();
  const requestPlan = async (values: FormValues) => {
    const document = await readJson(file);
    const vhost = values.vhost ?? "";
    const isPruning = values.prune === "on";
    const plan = await post<Plan>(withQuery(address(vhost, "plan"), { prune: isPruning || undefined }), document);
    setPlanned({ plan, document, vhost, isPruning, name: file?.name ?? "" });
  };
  return (
    <Card title="Plan and apply">
      <p class="quiet">
        A plan shows what importing a file would create, change and delete. Applying it makes exactly these changes, or none if
        the definitions have changed since.
      </p>
      <Form submit="Plan" action={requestPlan}>
        <div class="form-row">
          <FileField id="plan-file" label="Definitions file" choose={setFile} />
          <Field name="vhost" label="Virtual host" choices={vhostOptions(names)} />
        </div>
        <label class="check">
          <input type="checkbox" name="prune" /> Delete objects that are missing from the file, in the sections that the file has
        </label>
      </Form>
      {planned && <PlanReview planned={planned} done={() => setPlanned(undefined)} />}
    </Card>
  );
}

function PlanReview({ planned, done }: { planned: Planned; done: () => void }) {
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
        <Figure label="Blocked" value={count(blocked)} />
        <Figure label="Unchanged" value={count(keep)} />
      </Figures>
      {Object.keys(plan.losses).length > 0 && (
        <p class="failure" role="alert">
          Deleting these objects also deletes: {losses(plan.losses)}.
        </p>
      )}
      <Table<PlanItem>
        label="Entries of the plan"
        items={plan.items}
        itemKey={(it) => JSON.stringify([it.action, it.kind, it.vhost, it.name, it.destination, it.routing_key, it.arguments])}
        empty="There is nothing to change: the broker already matches the file."
        columns={[
          { label: "Action", show: (it) => <Badge tone={TONES[it.action]}>{it.action}</Badge> },
          { label: "Kind", show: (it) => it.kind },
          { label: "Name", show: (it) => <Name item={it} /> },
          { label: "Details", show: (it) => <Details item={it} /> },
        ]}
      />
      {plan.items.length < plan.items_total && (
        <p class="quiet">
          {count(plan.items.length)} of {count(plan.items_total)} shown.
        </p>
      )}
      {plan.skipped.map((text) => (
        <p key={text} class="quiet">
          Skipped: {text}
        </p>
      ))}
      {plan.warnings.map((text) => (
        <p key={text} class="quiet">
          {text}
        </p>
      ))}
      <div class="form-end">
        {create + change + deleted > 0 && (
          <Button kind={deleted ? "danger" : "main"} onClick={apply}>
            Apply this plan
          </Button>
        )}
        <Button onClick={done}>Discard</Button>
      </div>
    </div>
  );
}

const losses = (table: Record<string, number>): string =>
  Object.entries(table)
    .map(([what, number]) => `${count(number)} ${(number === 1 ? what.replace(/s(?=_|$)/, "") : what).replaceAll("_", " ")}`)
    .join(", ");

const Name = ({ item }: { item: PlanItem }) => (
  <>
    {item.name}
    {item.destination !== undefined && ` → ${item.destination}`}
    {item.routing_key && <code> {item.routing_key}</code>}
    {item.vhost && <small>in {item.vhost}</small>}
  </>
);

function Details({ item }: { item: PlanItem }) {
  const { before, after, reason } = item;
  const changed = Object.keys({ ...before, ...after }).filter((key) => asText(before?.[key]) !== asText(after?.[key]));
  return (
    <>
      {reason && <p class="reason">{reason}</p>}
      {item.losses && <p class="reason">also deletes {losses(item.losses)}</p>}
      {before && after && (
        <ul class="arguments">
          {changed.map((key) => (
            <li key={key}>
              <span class="quiet">{key}</span> <del>{asText(before[key])}</del> → <ins>{asText(after[key])}</ins>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
