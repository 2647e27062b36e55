/** The results of the health checks of the HTTP API. */

import { useEffect } from "preact/hooks";
import { ApiError, get, path } from "../api";
import { Button } from "../components/button";
import { Page } from "../components/layout";
import { Badge } from "../components/status";
import { LiveTable } from "../components/table";
import { useRequest } from "../request";

const CHECKS: [string, string][] = [
  ["alarms", "No resource alarms in the cluster"],
  ["local-alarms", "No resource alarms on this node"],
  ["virtual-hosts", "All virtual hosts are running"],
  ["protocol-listener/amqp", "There is an AMQP listener"],
  ["certificate-expiration/1/months", "No TLS certificate expires within a month"],
  ["node-is-mirror-sync-critical", "No mirrored queue depends on this node alone"],
  ["node-is-quorum-critical", "No quorum queue would lose its quorum without this node"],
];

interface Result {
  name: string;
  text: string;
  failure: string | undefined;
}

async function check([name, text]: [string, string]): Promise<Result> {
  try {
    await get(path("health", "checks", ...name.split("/")));
    return { name, text, failure: undefined };
  } catch (error) {
    return { name, text, failure: error instanceof ApiError ? error.message : String(error) };
  }
}

export function Health() {
  const results = useRequest<Result[]>();
  const run = () => results.run(() => Promise.all(CHECKS.map(check)), true);
  useEffect(() => void run(), []);
  return (
    <Page title="Health" aside={<Button onClick={run}>Run again</Button>}>
      <LiveTable
        label="Health checks"
        live={results}
        itemKey={({ name }) => name}
        columns={[
          { label: "Check", show: ({ text, name }) => [text, <small>{name}</small>] },
          { label: "Result", show: ({ failure }) => <Badge tone={failure ? "bad" : "good"}>{failure ? "failed" : "ok"}</Badge> },
          { label: "Reason", show: ({ failure }) => failure ?? "" },
        ]}
      />
    </Page>
  );
}
