/** Sending dead letters back: which, where to, what is changed; first as a preview. */

import { useState } from "preact/hooks";
import { path, post } from "../api";
import { ARGUMENTS_NOTE, parseArguments } from "../components/arguments";
import { Opening } from "../components/dialog";
import { PreviewCard } from "../components/job";
import { Button, Field, Form, type Values } from "../components/ui";
import { count } from "../format";
import type { Cause, Job, Preview } from "../model";

interface RedriveProps {
  vhost: string;
  name: string;
  cause: Cause | undefined;
  chosen: ReadonlySet<number>;
  started: (job: string) => void;
}

const WAYS: [string, string][] = [
  ["queue", "the queue that each died in"],
  ["exchange", "the exchange that each came by"],
  ["other-queue", "this queue"],
  ["other-exchange", "this exchange"],
];

export const Redrive = (props: RedriveProps) => (
  <Opening label="Send back" title={`Send back ${whichOf(props)}`} kind="main">
    {(close) => <RedriveForm {...props} close={close} />}
  </Opening>
);

function whichOf({ cause, chosen }: RedriveProps): string {
  if (chosen.size) return chosen.size === 1 ? "the chosen message" : `${count(chosen.size)} chosen messages`;
  return cause ? "all of this cause" : "all dead letters";
}

function RedriveForm({ vhost, name, cause, chosen, started, close }: RedriveProps & { close: () => void }) {
  const [order, setOrder] = useState<Record<string, unknown>>();
  const [preview, setPreview] = useState<Preview>();
  const [way, setWay] = useState("queue");
  const address = path("warren", "queues", vhost, name, "redrive");
  const look = async (values: Values) => {
    const wanted = {
      ...orderOf(values, chosen.size === 1),
      ...(chosen.size ? { places: [...chosen] } : cause ? { group: cause } : {}),
    };
    setPreview(undefined);
    setPreview(await post<Preview>(address, { ...wanted, dry_run: true }));
    setOrder(wanted);
  };
  const send = async () => {
    const job = await post<Job>(address, order);
    started(job.id);
    close();
  };
  return (
    <>
      <Form submit="Preview" action={look}>
        <div onChange={({ target }) => target instanceof HTMLSelectElement && setWay(target.value)}>
          <Field name="to" label="To" choices={WAYS} />
        </div>
        <div class="form-row">
          {way === "other-queue" && <Field name="where" label="Queue" required />}
          {way === "other-exchange" && <Field name="where" label="Exchange" required />}
          {way.endsWith("exchange") && <Field name="routing_key" label="Routing key" note="empty: its own" />}
        </div>
        <div class="form-row">
          <Field name="rate" label="Messages a second" type="number" step="any" note="empty: as fast as it goes" />
          <Field name="limit" label="At most" type="number" note="empty: all" />
        </div>
        <details>
          <summary>Change something on the way</summary>
          <Field name="headers" label="Set headers" rows={2} note={ARGUMENTS_NOTE} />
          <Field name="removed" label="Remove headers" note="names, with commas between" />
          {chosen.size === 1 && <Field name="payload" label="New payload" rows={3} note="empty: as it is" />}
        </details>
      </Form>
      {preview && (
        <PreviewCard preview={preview}>
          <Button kind="main" disabled={!preview.would_go} onClick={send}>
            Send
          </Button>
        </PreviewCard>
      )}
    </>
  );
}

function orderOf(values: Values, isOne: boolean): Record<string, unknown> {
  const { to = "queue", where = "", routing_key = "", rate, limit, headers = "", removed = "", payload } = values;
  const edit = {
    headers: parseArguments(headers),
    remove_headers: removed
      .split(",")
      .map((name) => name.trim())
      .filter(Boolean),
    ...(isOne && payload ? { payload } : {}),
  };
  return {
    to: to.replace("other-", ""),
    ...(to === "other-queue" ? { queue: where } : {}),
    ...(to === "other-exchange" ? { exchange: where } : {}),
    ...(to.endsWith("exchange") && routing_key ? { routing_key } : {}),
    ...pacing(rate, limit),
    edit,
  };
}

/** How fast, and how many, if that is said. */
export const pacing = (rate: string | undefined, limit: string | undefined): Record<string, number> => ({
  ...(rate ? { rate: Number(rate) } : {}),
  ...(limit ? { limit: Number(limit) } : {}),
});
