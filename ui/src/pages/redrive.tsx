/** Redrives dead letters: chooses the destination and edits, previews, and starts the job. */

import { useState } from "preact/hooks";
import { path, post } from "../api";
import type { Job, Preview } from "../api-types";
import { ARGUMENTS_NOTE, parseArguments } from "../components/arguments";
import { Button } from "../components/button";
import { DialogButton } from "../components/dialog";
import { Field, Form, type FormValues } from "../components/form";
import { PreviewCard } from "../components/job";
import { count } from "../format";
import type { DeathCause } from "../model";

interface RedriveProps {
  vhost: string;
  name: string;
  cause: DeathCause | undefined;
  selected: ReadonlySet<number>;
  started: (job: string) => void;
}

const TARGETS: [string, string][] = [
  ["queue", "original queue of each message"],
  ["exchange", "original exchange of each message"],
  ["other-queue", "another queue"],
  ["other-exchange", "another exchange"],
];

export const Redrive = (props: RedriveProps) => (
  <DialogButton label="Redrive" title={`Redrive ${describeSelection(props)}`} kind="main">
    {(close) => <RedriveForm {...props} close={close} />}
  </DialogButton>
);

function describeSelection({ cause, selected }: RedriveProps): string {
  if (selected.size) return selected.size === 1 ? "the selected message" : `${count(selected.size)} selected messages`;
  return cause ? "all messages of this cause" : "all dead letters";
}

function RedriveForm({ vhost, name, cause, selected, started, close }: RedriveProps & { close: () => void }) {
  const [body, setBody] = useState<Record<string, unknown>>();
  const [preview, setPreview] = useState<Preview>();
  const [target, setTarget] = useState("queue");
  const address = path("warren", "queues", vhost, name, "redrive");
  const requestPreview = async (values: FormValues) => {
    const wanted = {
      ...bodyOf(values, selected.size === 1),
      ...(selected.size ? { positions: [...selected] } : cause ? { group: cause } : {}),
    };
    setPreview(undefined);
    setPreview(await post<Preview>(address, { ...wanted, dry_run: true }));
    setBody(wanted);
  };
  const redrive = async () => {
    const job = await post<Job>(address, body);
    started(job.id);
    close();
  };
  return (
    <>
      <Form submit="Preview" action={requestPreview}>
        <div onChange={({ target }) => target instanceof HTMLSelectElement && setTarget(target.value)}>
          <Field name="to" label="Destination" choices={TARGETS} />
        </div>
        <div class="form-row">
          {target === "other-queue" && <Field name="where" label="Queue" required />}
          {target === "other-exchange" && <Field name="where" label="Exchange" required />}
          {target.endsWith("exchange") && <Field name="routing_key" label="Routing key" note="empty: unchanged" />}
        </div>
        <div class="form-row">
          <Field name="rate" label="Messages per second" type="number" step="any" note="empty: unlimited" />
          <Field name="limit" label="Limit" type="number" note="empty: all" />
        </div>
        <details>
          <summary>Edit messages</summary>
          <Field name="headers" label="Set headers" rows={2} note={ARGUMENTS_NOTE} />
          <Field name="removed" label="Remove headers" note="names, separated by commas" />
          {selected.size === 1 && <Field name="payload" label="New payload" rows={3} note="empty: unchanged" />}
        </details>
      </Form>
      {preview && (
        <PreviewCard preview={preview}>
          <Button kind="main" disabled={!preview.would_move} onClick={redrive}>
            Redrive
          </Button>
        </PreviewCard>
      )}
    </>
  );
}

function bodyOf(values: FormValues, isOne: boolean): Record<string, unknown> {
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
    ...rateAndLimit(rate, limit),
    edit,
  };
}

/** The fields of a body for a rate and a limit, as far as they are given. */
export const rateAndLimit = (rate: string | undefined, limit: string | undefined): Record<string, number> => ({
  ...(rate ? { rate: Number(rate) } : {}),
  ...(limit ? { limit: Number(limit) } : {}),
});
