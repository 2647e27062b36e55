/** Messages on their way: redrives, moves and undos, how far they are, and what came of them. */

import { path } from "../api";
import { JobActions, Outcome, targetOf } from "../components/job";
import { Listing } from "../components/table";
import { Page } from "../components/ui";
import { count, time } from "../format";
import type { Job } from "../model";
import { link } from "../router";

export const Jobs = () => (
  <Page title="Jobs">
    <p class="quiet">The last hundred are remembered until the node stops. Stopped or failed, what was moved stays moved.</p>
    <Listing<Job>
      label="Jobs"
      url={path("warren", "jobs")}
      itemKey={({ id }) => id}
      empty="No messages were moved since the node started."
      columns={[
        { label: "Queue", show: (job) => <a href={link("queues", job.vhost, job.queue)}>{job.queue}</a> },
        { label: "State", show: (job) => <Outcome job={job} /> },
        { label: "Does", show: (job) => job.kind },
        { label: "To", show: (job) => targetOf(job) },
        { label: "Moved", isNumber: true, show: (job) => count(job.moved) },
        { label: "Stay", isNumber: true, show: (job) => count(job.refused) },
        { label: "Actions", show: (job) => <JobActions job={job} /> },
        { label: "User", show: (job) => job.user },
        { label: "Began", sort: "started_at", show: (job) => time(job.started_at) },
      ]}
    />
  </Page>
);
