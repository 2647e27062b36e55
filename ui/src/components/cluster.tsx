/** The cluster as this node sees it, for all pages: only users with the tag monitoring may see it. */

import { type ComponentChildren, createContext } from "preact";
import { useContext } from "preact/hooks";
import { path } from "../api";
import type { Cluster, CurrentUser } from "../api-types";
import { useLive } from "../live";
import { hasSeveralNodes } from "../model";
import { link } from "../router";
import { mayMonitor } from "../session";

export const CLUSTER = path("warren", "cluster");

const Followed = createContext<Cluster | undefined>(undefined);

type Children = { children: ComponentChildren };

/** Lets `children` use the cluster, if `user` may see it. */
export const ClusterProvider = ({ user, children }: Children & { user: CurrentUser }): ComponentChildren =>
  mayMonitor(user) ? <Follow>{children}</Follow> : children;

function Follow({ children }: Children) {
  const { data } = useLive<Cluster>(CLUSTER);
  return <Followed.Provider value={data}>{children}</Followed.Provider>;
}

/** The cluster; undefined for a node that is alone, and for a user who may not see it. */
export function useCluster(): Cluster | undefined {
  const cluster = useContext(Followed);
  return cluster && hasSeveralNodes(cluster) ? cluster : undefined;
}

/** What is wrong with the majority of the cluster and with its members. */
export function ClusterConditions() {
  const cluster = useCluster();
  if (!cluster) return null;
  const down = cluster.members.filter((member) => !member.is_up).map(({ name }) => name);
  const details = <a href={link("nodes")}>See the nodes.</a>;
  return (
    <>
      {cluster.is_in_minority && (
        <p class="failure condition" role="alert">
          Node {cluster.node} is in the minority: nothing can be declared or changed on it until it reaches a majority of the
          nodes. {details}
        </p>
      )}
      {down.length > 0 && (
        <p class="failure condition" role="alert">
          {down.length === 1 ? "A node is" : "Nodes are"} down: {down.join(", ")}. {details}
        </p>
      )}
    </>
  );
}
