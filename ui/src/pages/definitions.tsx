/** Export and import of definitions. */

import { useState } from "preact/hooks";
import { path, post } from "../api";
import { Field, Form, type FormValues } from "../components/form";
import { FileField, readJson } from "../components/json-file";
import { Card, Page } from "../components/layout";
import { notify } from "../components/notice";
import { useVhosts, vhostOptions } from "../components/vhost-select";
import { PlanImport } from "./plan-import";

export function Definitions() {
  return (
    <Page title="Definitions">
      <p class="quiet">
        Users, virtual hosts, permissions, policies, exchanges, queues and bindings, without messages. Files exported by RabbitMQ
        can be imported.
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
  const load = async ({ vhost = "" }: FormValues) => {
    await post(address(vhost), await readJson(file));
    notify(`Imported ${file?.name}.`);
  };
  return (
    <Card title="Import">
      <p class="quiet">Existing objects with the same name are updated. Nothing is deleted.</p>
      <Form submit="Import" action={load}>
        <FileField id="import-file" label="File" choose={setFile} />
        <Field name="vhost" label="Into virtual host" choices={vhostOptions(names)} />
      </Form>
    </Card>
  );
}
