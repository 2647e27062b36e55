/** Moving messages of a queue to another, as they are. */

import { useState } from "preact/hooks";
import { path, post } from "../api";
import { PreviewCard, Progress } from "../components/job";
import { Button, Card, Field, Form, type Values } from "../components/ui";
import { useVhosts } from "../components/vhost-select";
import type { Job, Preview } from "../model";
import { link } from "../router";
import { CONDITIONS_NOTE, conditionsIn } from "./peek";
import { pacing } from "./redrive";

export function Move({ vhost, name, changed }: { vhost: string; name: string; changed: () => void }) {
  const [order, setOrder] = useState<Record<string, unknown>>();
  const [preview, setPreview] = useState<Preview>();
  const [job, setJob] = useState<string>();
  const vhosts = useVhosts();
  const address = path("warren", "queues", vhost, name, "move");
  const look = async (values: Values) => {
    const wanted = {
      destination: values.destination,
      destination_vhost: values.destination_vhost ?? vhost,
      match: conditionsIn(values.conditions ?? ""),
      ...pacing(values.rate, values.limit),
    };
    setPreview(undefined);
    setPreview(await post<Preview>(address, { ...wanted, dry_run: true }));
    setOrder(wanted);
  };
  const move = async () => {
    setJob((await post<Job>(address, order)).id);
    setPreview(undefined);
  };
  return (
    <>
      {job && <Progress key={job} id={job} ended={changed} />}
      <Card>
        <p class="quiet">
          Messages go to another queue as they are, in their order; consumers go on meanwhile. To send dead letters back to where
          they came from, see <a href={link("dead-letters", vhost, name)}>its dead letters</a>.
        </p>
        <Form submit="Preview" action={look}>
          <div class="form-row">
            <Field name="destination" label="To the queue" required />
            {vhosts.length > 1 && <Field name="destination_vhost" label="In virtual host" choices={vhosts} value={vhost} />}
            <Field name="limit" label="At most" type="number" note="empty: all" />
            <Field name="rate" label="Messages a second" type="number" step="any" note="empty: as fast as it goes" />
          </div>
          <Field name="conditions" label="Those that fit" rows={2} note={CONDITIONS_NOTE} placeholder="headers.tenant=acme" />
        </Form>
        {preview && (
          <PreviewCard preview={preview}>
            <Button kind="main" disabled={!preview.would_go} onClick={move}>
              Move
            </Button>
          </PreviewCard>
        )}
      </Card>
    </>
  );
}
