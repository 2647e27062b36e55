/** Feature flags: features that are used once all nodes of a cluster support them. */

import { path } from "../api";
import type { FeatureFlag } from "../api-types";
import { Page } from "../components/layout";
import { Badge } from "../components/status";
import { LiveTable } from "../components/table";
import { useLive } from "../live";

export function Flags() {
  const live = useLive<FeatureFlag[]>(path("feature-flags"));
  return (
    <Page title="Feature flags">
      <LiveTable
        label="Feature flags"
        live={live}
        itemKey={({ name }) => name}
        columns={[
          { label: "Name", show: ({ name }) => name },
          { label: "Description", show: ({ desc }) => desc },
          { label: "State", show: ({ state }) => <Badge tone={state === "enabled" ? "good" : "plain"}>{state}</Badge> },
        ]}
      />
    </Page>
  );
}
