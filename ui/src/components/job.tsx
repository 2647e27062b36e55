/** One job: what it would do, how far it is, stopping and undoing it. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, get, path, post, remove } from "../api";
import { count, rate } from "../format";
import type { Job, Preview, Refused } from "../model";
import { notify } from "./notice";
import { Table } from "./table";
import { Badge, Button, Card, Failure, type Tone } from "./ui";

const LOOK_MS = 500;
const TONES: Record<Job["state"], Tone> = {
  running: "plain",
  waiting: "warn",
  done: "good",
  failed: "bad",
  stopped: "warn",
};

export const isOver = (job: Job): boolean => job.ended_at !== null;

/** Where its messages go, in words. */
export function targetOf({ target }: Job): string {
  if (target.to === "exchange") return `exchange ${target.exchange ?? "they came by"}`;
  if (target.queue === undefined) return "the queues they died in";
  return target.vhost === undefined ? target.queue : `${target.queue} in ${target.vhost}`;
}

export function Outcome({ job }: { job: Job }) {
  return (
    <>
      <Badge tone={TONES[job.state]}>{job.is_stopping ? "stopping" : job.state}</Badge>
      {job.reason && <small>{job.reason}</small>}
      {job.too_late !== null && <small>{count(job.too_late)} too late</small>}
      {job.undone_by && <small>undone</small>}
    </>
  );
}

export function JobActions({ job, started = () => undefined }: { job: Job; started?: (undo: Job) => void }) {
  const address = path("warren", "jobs", job.id);
  const undo = async () => {
    const undoing = await post<Job>(`${address}/undo`);
    notify("What nobody has had is taken back.");
    started(undoing);
  };
  if (!isOver(job)) return <Button onClick={() => remove(address).then(() => notify("It stops."))}>Stop</Button>;
  if (job.undoable) return <Button onClick={undo}>Undo</Button>;
  return null;
}

/** How far the job `id` is, until it is over; `ended` is called then. */
export function Progress({ id, ended }: { id: string; ended: () => void }) {
  const [current, setCurrent] = useState(id);
  const [job, setJob] = useState<Job>();
  const [error, setError] = useState<ApiError>();
  useEffect(() => setCurrent(id), [id]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isGone = false;
    const look = async () => {
      try {
        const found = await get<Job>(path("warren", "jobs", current));
        if (isGone) return;
        setJob(found);
        if (isOver(found)) return ended();
      } catch (failure) {
        setError(failure instanceof ApiError ? failure : new ApiError(0, String(failure)));
        return;
      }
      timer = setTimeout(look, LOOK_MS);
    };
    void look();
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [current]);
  return (
    <Card title={job && isOver(job) ? "What came of it" : "On their way"}>
      <Failure error={error} />
      {job && (
        <>
          <p role="status">
            <Badge tone={TONES[job.state]}>{job.is_stopping ? "stopping" : job.state}</Badge> {count(job.moved)}{" "}
            {job.kind === "undo" ? "taken back" : "moved"}
            {job.refused > 0 && `, ${count(job.refused)} stay`}
            {job.too_late !== null && `, ${count(job.too_late)} too late`}
            {!isOver(job) && `, ${rate(job.moved_per_second)}`}
            {job.reason && `: ${job.reason}`}
          </p>
          <Staying refusals={job.refusals} />
          <p class="form-end">
            <JobActions job={job} started={(undo) => setCurrent(undo.id)} />
          </p>
        </>
      )}
    </Card>
  );
}

function Staying({ refusals }: { refusals: Refused[] }) {
  if (!refusals.length) return null;
  return (
    <Table
      label="What stays"
      items={refusals}
      itemKey={({ reason }) => reason}
      columns={[
        { label: "Stay because", show: ({ reason }) => reason },
        { label: "Messages", isNumber: true, show: (it) => count(it.count) },
      ]}
    />
  );
}

/** What would go where, and the button that has it go. */
export function PreviewCard({ preview, children }: { preview: Preview; children: ComponentChildren }) {
  return (
    <section aria-label="Preview" class="preview">
      <p role="status">
        {count(preview.would_go)} would go, {count(preview.refused)} would stay; {count(preview.examined)} were looked at
        {preview.next !== null && ", and there are more"}.
      </p>
      {preview.destinations.length > 0 && (
        <Table
          label="Where they would go"
          items={preview.destinations}
          itemKey={(end) => JSON.stringify([end.exchange, end.routing_key, end.queues])}
          columns={[
            { label: "To", show: ({ queues }) => queues.join(", ") },
            { label: "Exchange", show: ({ exchange }) => exchange || "(default)" },
            { label: "Routing key", show: (end) => <code>{end.routing_key}</code> },
            { label: "Messages", isNumber: true, show: (end) => count(end.count) },
          ]}
        />
      )}
      <Staying refusals={preview.refusals} />
      <p class="form-end">{children}</p>
    </section>
  );
}
