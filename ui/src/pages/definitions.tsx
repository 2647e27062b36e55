/** Everything that was set up, as one file: out of the broker, and into it. */

import { useState } from "preact/hooks";
import { path, post } from "../api";
import { notify } from "../parts/notice";
import { Card, Field, Form, Page, type Values } from "../parts/ui";
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
    </Page>
  );
}

const address = (vhost: string): string => (vhost ? path("definitions", vhost) : path("definitions"));
const choices = (names: string[]): [string, string][] => [["", "all"], ...names.map((name): [string, string] => [name, name])];

function Export() {
  const names = useVhosts();
  const [vhost, setVhost] = useState("");
  return (
    <Card title="Export">
      <div class="field">
        <label for="export-vhost">Virtual host</label>
        <select id="export-vhost" value={vhost} onChange={(event) => setVhost(event.currentTarget.value)}>
          {choices(names).map(([name, text]) => (
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

function Import() {
  const names = useVhosts();
  const [file, setFile] = useState<File>();
  const load = async ({ vhost = "" }: Values) => {
    if (!file) throw new Error("choose a file");
    if (file.size > SIZE_MAX) throw new Error("the file is larger than 10 MB");
    let document: unknown;
    try {
      document = JSON.parse(await file.text());
    } catch (error) {
      throw new Error(`${file.name} is no JSON: ${error instanceof Error ? error.message : ""}`);
    }
    await post(address(vhost), document);
    notify(`${file.name} is imported.`);
  };
  return (
    <Card title="Import">
      <p class="quiet">What is there already and is called the same is changed; nothing is deleted.</p>
      <Form submit="Import" action={load}>
        <div class="field">
          <label for="import-file">File</label>
          <input
            id="import-file"
            type="file"
            accept="application/json,.json"
            onChange={(event) => setFile(event.currentTarget.files?.[0])}
          />
        </div>
        <Field name="vhost" label="Into" choices={choices(names)} />
      </Form>
    </Card>
  );
}
