/** Everything that was set up, as one file: out of the broker, and into it. */

import { useState } from "preact/hooks";
import { path, post } from "../api";
import { FileField, readJson } from "../components/json-file";
import { notify } from "../components/notice";
import { Card, Field, Form, Page, type Values } from "../components/ui";
import { useVhosts, vhostOptions } from "../components/vhost-select";
import { PlanImport } from "./plan-import";

export function Definitions() {
  return (
    <Page title="Definitions">
      <p class="quiet">
        Users, virtual hosts, permissions, policies, exchanges, queues and bindings; no messages. Files of RabbitMQ are read as
        they are.
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

function Export() {
  const names = useVhosts();
  const [vhost, setVhost] = useState("");
  return (
    <Card title="Export">
      <div class="field">
        <label for="export-vhost">Virtual host</label>
        <select id="export-vhost" value={vhost} onChange={(event) => setVhost(event.currentTarget.value)}>
          {vhostOptions(names).map(([name, text]) => (
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

function Import() {
  const names = useVhosts();
  const [file, setFile] = useState<File>();
  const load = async ({ vhost = "" }: Values) => {
    await post(address(vhost), await readJson(file));
    notify(`${file?.name} is imported.`);
  };
  return (
    <Card title="Import">
      <p class="quiet">What is there already and is called the same is changed; nothing is deleted.</p>
      <Form submit="Import" action={load}>
        <FileField id="import-file" label="File" choose={setFile} />
        <Field name="vhost" label="Into" choices={vhostOptions(names)} />
      </Form>
    </Card>
  );
}
