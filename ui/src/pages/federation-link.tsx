/** One federation link. */

import { get, path, withQuery } from "../api";
import type { CurrentUser, DryRun, FederationLink } from "../api-types";
import { DryRunCard } from "../components/dry-run";
import { nameOf, objectPage, RestartLink } from "../components/federation-links";
import { Page } from "../components/layout";
import { LinkDetails } from "../components/link-details";
import { ErrorMessage, Loading } from "../components/status";
import { samplingQuery, TimeRangeSelect, useTimeRange } from "../components/time-range";
import { useLive } from "../live";
import { mayMakePolicies } from "../session";

export function FederationLinkPage({ vhost, id, user }: { vhost: string; id: string; user: CurrentUser }) {
  const age = useTimeRange();
  const { data, error, refresh } = useLive<FederationLink>(
    withQuery(path("warren", "federation-links", vhost, id), samplingQuery(age)),
  );
  const mayChange = mayMakePolicies(user);
  return (
    <Page
      title={data ? `${nameOf(data)} from ${data.upstream}` : "Federation link"}
      aside={
        <>
          <TimeRangeSelect age={age} />
          {data && mayChange && <RestartLink link={data} refresh={refresh} />}
        </>
      }
    >
      <ErrorMessage error={error} />
      {!data && !error && <Loading />}
      {data && (
        <LinkDetails
          link={data}
          state={data.status}
          facts={[
            [
              data.type === "queue" ? "Queue" : "Exchange",
              <a key="object" href={objectPage(data)}>
                {nameOf(data)}
              </a>,
            ],
            ["Name at the upstream", data.upstream_exchange ?? data.upstream_queue],
            ["Upstream", data.upstream],
            ["Virtual host", data.vhost],
            ["Consumer tag", data.consumer_tag],
          ]}
        />
      )}
      {data && mayChange && <DryRunCard ask={() => get<DryRun>(path("warren", "federation", vhost, data.type, nameOf(data)))} />}
    </Page>
  );
}
