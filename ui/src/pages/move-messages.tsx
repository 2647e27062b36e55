/** Moves messages of a queue to another queue. */

import { useState } from "preact/hooks";
import { path, post } from "../api";
import type { Job, Preview } from "../api-types";
import { Button } from "../components/button";
import { Field, Form, type FormValues } from "../components/form";
import { JobProgress, PreviewCard } from "../components/job";
import { Card } from "../components/layout";
import { useVhosts } from "../components/vhost-select";
import { link } from "../router";
import { CONDITIONS_NOTE, parseConditions } from "./peek";
import { rateAndLimit } from "./redrive";

export function Move({ vhost, name, changed }: { vhost: string; name: string; changed: () => void }) {
  const [body, setBody] = useState<Record<string, unknown>>();
  const [preview, setPreview] = useState<Preview>();
  const [job, setJob] = useState<string>();
  const vhosts = useVhosts();
  const address = path("warren", "queues", vhost, name, "move");
  const requestPreview = async (values: FormValues) => {
    const wanted = {
      destination: values.destination,
      destination_vhost: values.destination_vhost ?? vhost,
      match: parseConditions(values.conditions ?? ""),
      ...rateAndLimit(values.rate, values.limit),
    };
    setPreview(undefined);
    setPreview(await post<Preview>(address, { ...wanted, dry_run: true }));
    setBody(wanted);
  };
  const move = async () => {
    setJob((await post<Job>(address, body)).id);
    setPreview(undefined);
  };
  return (
    <>
      {job && <JobProgress key={job} id={job} ended={changed} />}
      <Card>
        <p class="quiet">
          Messages are moved to another queue unchanged and in order, while consumers keep running. To return dead letters to
          their original queues, redrive them on the page of <a href={link("dead-letters", vhost, name)}>its dead letters</a>.
        </p>
        <Form submit="Preview" action={requestPreview}>
          <div class="form-row">
            <Field name="destination" label="Destination queue" required />
            {vhosts.length > 1 && (
              <Field name="destination_vhost" label="Destination virtual host" choices={vhosts} value={vhost} />
            )}
            <Field name="limit" label="Limit" type="number" note="empty: all" />
            <Field name="rate" label="Messages per second" type="number" step="any" note="empty: unlimited" />
          </div>
          <Field name="conditions" label="Filter" rows={2} note={CONDITIONS_NOTE} placeholder="headers.tenant=acme" />
        </Form>
        {preview && (
          <PreviewCard preview={preview}>
            <Button kind="main" disabled={!preview.would_move} onClick={move}>
              Move
            </Button>
          </PreviewCard>
        )}
      </Card>
    </>
  );
}
