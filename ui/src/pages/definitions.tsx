/** Everything that was set up, as one file: out of the broker, and into it. */

import { useState } from "preact/hooks";
import { path, post } from "../api";
import { notify } from "../parts/notice";
import { Card, Field, Form, Page, type Values } from "../parts/ui";
import { PlanImport } from "./plan";
import { useVhosts } from "./vhost-choice";

export function Definitions() {
  return (
    <Page title="Definitions">
      <p class="quiet">
        Users, virtual hosts, permissions, policies, exchanges, queues and bindings; no messages. Files of RabbitMQ are read
        as they are.
      </p>
      <div class="columns">
        <Export />
        <Import />
      </div>
      <PlanImport />
    </Page>
  );
}

const address = (vhost: string): string => (vhost ? path("definitions", vhost) : path("definitions"));
export const vhostChoices = (names: string[]): [string, string][] => [["", "all"], ...names.map((name): [string, string] => [name, name])];

function Export() {
  const names = useVhosts();
  const [vhost, setVhost] = useState("");
  return (
    <Card title="Export">
      <div class="field">
        <label for="export-vhost">Virtual host</label>
        <select id="export-vhost" value={vhost} onChange={(event) => setVhost(event.currentTarget.value)}>
          {vhostChoices(names).map(([name, text]) => (
            <option key={name} value={name}>
              {text}
            </option>
          ))}
        </select>
      </div>
      <p class="form-end">
        <a class="button main" href={address(vhost)} download="definitions.json">
          Download
        </a>
      </p>
    </Card>
  );
}

const SIZE_MAX = 10_000_000;

/** What is in a file that was chosen. */
export async function readDocument(file: File | undefined): Promise<unknown> {
  if (!file) throw new Error("choose a file");
  if (file.size > SIZE_MAX) throw new Error("the file is larger than 10 MB");
  try {
    return JSON.parse(await file.text()) as unknown;
  } catch (error) {
    throw new Error(`${file.name} is no JSON: ${error instanceof Error ? error.message : ""}`);
  }
}

interface FileFieldProps {
  id: string;
  label: string;
  choose: (file: File | undefined) => void;
}

export function FileField({ id, label, choose }: FileFieldProps) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="file"
        accept="application/json,.json"
        onChange={(event) => choose(event.currentTarget.files?.[0])}
      />
    </div>
  );
}

function Import() {
  const names = useVhosts();
  const [file, setFile] = useState<File>();
  const load = async ({ vhost = "" }: Values) => {
    await post(address(vhost), await readDocument(file));
    notify(`${file?.name} is imported.`);
  };
  return (
    <Card title="Import">
      <p class="quiet">What is there already and is called the same is changed; nothing is deleted.</p>
      <Form submit="Import" action={load}>
        <FileField id="import-file" label="File" choose={setFile} />
        <Field name="vhost" label="Into" choices={vhostChoices(names)} />
      </Form>
    </Card>
  );
}
