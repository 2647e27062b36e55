/** Moves messages of a queue to another queue, of this broker or of another one. */

import { useState } from "preact/hooks";
import { ApiError, path, post, put } from "../api";
import type { CurrentUser, Job, Preview, Shovel } from "../api-types";
import { Button } from "../components/button";
import { Field, FieldErrors, Form, type FormValues } from "../components/form";
import { JobProgress, PreviewCard } from "../components/job";
import { Card } from "../components/layout";
import { LinkState } from "../components/link-cells";
import { useVhosts } from "../components/vhost-select";
import { refusedFields } from "../definition";
import { count, plural } from "../format";
import { useLive } from "../live";
import { link, shovelPage } from "../router";
import { mayMakePolicies, mayMonitor } from "../session";
import { CONDITIONS_NOTE, parseConditions } from "./peek";
import { rateAndLimit } from "./redrive";

interface MoveProps {
  vhost: string;
  name: string;
  user: CurrentUser;
  changed: () => void;
}

export function Move({ user, ...rest }: MoveProps) {
  return (
    <>
      <MoveWithin {...rest} />
      {mayMakePolicies(user) && mayMonitor(user) && <MoveAway vhost={rest.vhost} name={rest.name} />}
    </>
  );
}

function MoveWithin({ vhost, name, changed }: Omit<MoveProps, "user">) {
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

/** Moves what the queue contains now to another broker: a shovel that is deleted when it is done. */
function MoveAway({ vhost, name }: { vhost: string; name: string }) {
  const [shovel, setShovel] = useState<string>();
  const move = async (values: FormValues) => {
    const definition = {
      "src-uri": `amqp:///${encodeURIComponent(vhost)}`,
      "src-queue": name,
      "src-delete-after": "queue-length",
      "dest-uri": values.uri ?? "",
      "dest-queue": values.queue ?? "",
    };
    const chosen = `Move from ${name} ${Date.now().toString(36)}`;
    try {
      await put(path("parameters", "shovel", vhost, chosen), { value: definition });
    } catch (failure) {
      if (!(failure instanceof ApiError)) throw failure;
      const refused = refusedFields(failure.message, ["dest-queue"])["dest-queue"];
      if (refused) throw new FieldErrors({ queue: refused });
      // The reason of a wrong address quotes the address, without its key.
      if (/URI|dest-uri/.test(failure.message)) throw new FieldErrors({ uri: failure.message });
      throw failure;
    }
    setShovel(chosen);
  };
  return (
    <Card title="Move to another broker">
      {shovel && <MoveProgress key={shovel} vhost={vhost} shovel={shovel} />}
      <p class="quiet">
        A shovel moves the messages that are ready now, in order and with confirms, and is deleted when it is done. While it runs
        it is on the page <a href={link("shovels")}>Shovels</a>.
      </p>
      <Form submit="Move to broker" action={move}>
        <div class="form-row">
          <Field
            name="uri"
            label="Address of the broker"
            required
            placeholder="amqp://user:password@host:5672/vhost"
            autocomplete="off"
          />
          <Field name="queue" label="Queue there" required value={name} note="declared if it does not exist" />
        </div>
      </Form>
    </Card>
  );
}

/** What the shovel of a move does, until it is deleted because everything was moved. */
function MoveProgress({ vhost, shovel }: { vhost: string; shovel: string }) {
  const { data, error } = useLive<Shovel>(path("shovels", "vhost", vhost, shovel));
  if (error?.status === 404) {
    return (
      <p class="outcome done" role="status">
        Moved: the shovel has ended.
      </p>
    );
  }
  return (
    <p role="status">
      {data && <LinkState link={data} state={data.state} />} {plural(data?.confirmed ?? 0, "message")} moved
      {typeof data?.remaining === "number" && `, ${count(data.remaining)} remaining`}.{" "}
      <a href={shovelPage(vhost, shovel)}>Its page</a>
    </p>
  );
}
