/** One job: its preview, its progress, and stopping or undoing it. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, get, path, post, remove } from "../api";
import type { Job, NotMoved, Preview } from "../api-types";
import { count, rate } from "../format";
import { Button } from "./button";
import { Card } from "./layout";
import { notify } from "./notice";
import { Badge, ErrorMessage, type Tone } from "./status";
import { Table } from "./table";

const POLL_MS = 500;
const TONES: Record<Job["state"], Tone> = {
  running: "plain",
  waiting: "warn",
  done: "good",
  failed: "bad",
  stopped: "warn",
};

export const isOver = (job: Job): boolean => job.ended_at !== null;

/** The destination of its messages, in words. */
export function describeTarget({ target }: Job): string {
  if (target.to === "exchange") return `exchange ${target.exchange ?? "that each message came from"}`;
  if (target.queue === undefined) return "original queues";
  return target.vhost === undefined ? target.queue : `${target.queue} in ${target.vhost}`;
}

export function JobState({ job }: { job: Job }) {
  return (
    <>
      <Badge tone={TONES[job.state]}>{job.is_stopping ? "stopping" : job.state}</Badge>
      {job.reason && <small>{job.reason}</small>}
      {job.not_undone !== null && <small>{count(job.not_undone)} already delivered</small>}
      {job.undone_by && <small>undone</small>}
    </>
  );
}

export function JobActions({ job, started = () => undefined }: { job: Job; started?: (undo: Job) => void }) {
  const address = path("warren", "jobs", job.id);
  const undo = async () => {
    const undoing = await post<Job>(`${address}/undo`);
    notify("Undo started: messages that were not delivered meanwhile are moved back.");
    started(undoing);
  };
  if (!isOver(job)) return <Button onClick={() => remove(address).then(() => notify("The job is stopping."))}>Stop</Button>;
  if (job.undoable) return <Button onClick={undo}>Undo</Button>;
  return null;
}

/** The progress of the job `id` until it has ended; then `ended` is called. */
export function JobProgress({ id, ended }: { id: string; ended: () => void }) {
  const [current, setCurrent] = useState(id);
  const [job, setJob] = useState<Job>();
  const [error, setError] = useState<ApiError>();
  useEffect(() => setCurrent(id), [id]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isGone = false;
    const poll = async () => {
      try {
        const found = await get<Job>(path("warren", "jobs", current));
        if (isGone) return;
        setJob(found);
        if (isOver(found)) return ended();
      } catch (failure) {
        setError(failure instanceof ApiError ? failure : new ApiError(0, String(failure)));
        return;
      }
      timer = setTimeout(poll, POLL_MS);
    };
    void poll();
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [current]);
  return (
    <Card title={job && isOver(job) ? "Job result" : "Job progress"}>
      <ErrorMessage error={error} />
      {job && (
        <>
          <p role="status">
            <Badge tone={TONES[job.state]}>{job.is_stopping ? "stopping" : job.state}</Badge> {count(job.moved)}{" "}
            {job.kind === "undo" ? "moved back" : "moved"}
            {job.not_moved > 0 && `, ${count(job.not_moved)} not moved`}
            {job.not_undone !== null && `, ${count(job.not_undone)} already delivered`}
            {!isOver(job) && `, ${rate(job.moved_per_second)}`}
            {job.reason && `: ${job.reason}`}
          </p>
          <RefusalTable refusals={job.not_moved_reasons} />
          <p class="form-end">
            <JobActions job={job} started={(undo) => setCurrent(undo.id)} />
          </p>
        </>
      )}
    </Card>
  );
}

function RefusalTable({ refusals }: { refusals: NotMoved[] }) {
  if (!refusals.length) return null;
  return (
    <Table
      label="Messages that are not moved"
      items={refusals}
      itemKey={({ reason }) => reason}
      columns={[
        { label: "Not moved because", show: ({ reason }) => reason },
        { label: "Messages", isNumber: true, show: (it) => count(it.count) },
      ]}
    />
  );
}

/** What a job would move where, with the button that starts it. */
export function PreviewCard({ preview, children }: { preview: Preview; children: ComponentChildren }) {
  return (
    <section aria-label="Preview" class="preview">
      <p role="status">
        {count(preview.would_move)} would be moved, {count(preview.not_moved)} would not; {count(preview.examined)} scanned
        {preview.next !== null && ", and there are more"}.
      </p>
      {preview.destinations.length > 0 && (
        <Table
          label="Destinations"
          items={preview.destinations}
          itemKey={(end) => JSON.stringify([end.exchange, end.routing_key, end.queues])}
          columns={[
            { label: "Queues", show: ({ queues }) => queues.join(", ") },
            { label: "Exchange", show: ({ exchange }) => exchange || "(default)" },
            { label: "Routing key", show: (end) => <code>{end.routing_key}</code> },
            { label: "Messages", isNumber: true, show: (end) => count(end.count) },
          ]}
        />
      )}
      <RefusalTable refusals={preview.not_moved_reasons} />
      <p class="form-end">{children}</p>
    </section>
  );
}
