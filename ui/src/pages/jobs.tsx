/** Jobs that move messages: redrives, moves and undos, with their progress and result. */

import { path } from "../api";
import type { Job } from "../api-types";
import { describeTarget, JobActions, JobState } from "../components/job";
import { Page } from "../components/layout";
import { PagedTable } from "../components/table";
import { count, time } from "../format";
import { link } from "../router";

export const Jobs = () => (
  <Page title="Jobs">
    <p class="quiet">
      The last 100 jobs are kept until the node restarts. When a job stops or fails, the messages that it has moved stay moved.
    </p>
    <PagedTable<Job>
      label="Jobs"
      url={path("warren", "jobs")}
      itemKey={({ id }) => id}
      empty="No jobs have run since the node started."
      columns={[
        { label: "Queue", show: (job) => <a href={link("queues", job.vhost, job.queue)}>{job.queue}</a> },
        { label: "State", show: (job) => <JobState job={job} /> },
        { label: "Type", show: (job) => job.kind },
        { label: "Destination", show: (job) => describeTarget(job) },
        { label: "Moved", isNumber: true, show: (job) => count(job.moved) },
        { label: "Not moved", isNumber: true, show: (job) => count(job.not_moved) },
        { label: "Actions", show: (job) => <JobActions job={job} /> },
        { label: "User", show: (job) => job.user },
        { label: "Started", sort: "started_at", show: (job) => time(job.started_at) },
      ]}
    />
  </Page>
);
