/** The checks that orchestrators ask, for people. */

import { useEffect } from "preact/hooks";
import { ApiError, get, path } from "../api";
import { LiveTable } from "../components/table";
import { Badge, Button, Page } from "../components/ui";
import { useQuestion } from "../request";

const CHECKS: [string, string][] = [
  ["alarms", "No alarm holds publishers up"],
  ["local-alarms", "No alarm of this node does"],
  ["virtual-hosts", "Every virtual host is running"],
  ["protocol-listener/amqp", "Clients can connect by AMQP"],
  ["certificate-expiration/1/months", "No certificate expires within a month"],
  ["node-is-mirror-sync-critical", "No mirror would be lost with this node"],
  ["node-is-quorum-critical", "No majority would be lost with this node"],
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
  const results = useQuestion<Result[]>();
  const run = () => results.ask(() => Promise.all(CHECKS.map(check)), true);
  useEffect(() => void run(), []);
  return (
    <Page title="Health" aside={<Button onClick={run}>Check again</Button>}>
      <LiveTable
        label="Health checks"
        live={results}
        itemKey={({ name }) => name}
        columns={[
          { label: "Check", show: ({ text, name }) => [text, <small>{name}</small>] },
          { label: "Result", show: ({ failure }) => <Badge tone={failure ? "bad" : "good"}>{failure ? "failed" : "ok"}</Badge> },
          { label: "Why", show: ({ failure }) => failure ?? "" },
        ]}
      />
    </Page>
  );
}
