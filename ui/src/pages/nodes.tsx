/** The nodes of the cluster: its members, what is wrong with them, and the resources that they use. */

import { path, withQuery } from "../api";
import type { Cluster, Member, Node, Overview } from "../api-types";
import { CLUSTER } from "../components/cluster";
import { Card, Page } from "../components/layout";
import { Badge, ErrorMessage, Loading, type Tone } from "../components/status";
import { Table } from "../components/table";
import { asSentence, count, formatBytes, formatDuration } from "../format";
import { useLive } from "../live";
import { roleOf, stateOf } from "../model";

const STATE_TONES = { up: "good", down: "bad", draining: "warn" } as const;
const LINK_TONES: Record<string, Tone> = { connected: "good", silent: "warn", "not connected": "bad" };

export function NodesPage() {
  const { data, error } = useLive<Cluster>(CLUSTER);
  const { data: overview } = useLive<Partial<Overview>>(withQuery(path("overview"), { columns: "in_memory,alarms" }));
  return (
    <Page title="Nodes">
      <ErrorMessage error={error} />
      {!data && !error && <Loading />}
      {data && (
        <>
          <Problems problems={data.problems} />
          <Members cluster={data} />
          <Nodes title="Resources" isInMemory={overview?.in_memory ?? false} />
        </>
      )}
    </Page>
  );
}

function Problems({ problems }: { problems: string[] }) {
  if (!problems.length) return null;
  return (
    <Card title="Problems">
      <ul class="problems">
        {problems.map((problem) => (
          <li key={problem}>{asSentence(problem)}.</li>
        ))}
      </ul>
    </Card>
  );
}

function Members({ cluster }: { cluster: Cluster }) {
  const { data: nodes } = useLive<Node[]>(path("nodes"));
  const partitions = new Map(nodes?.map((node) => [node.name, node.partitions]));
  return (
    <Card title={`Members of ${cluster.cluster_name}`}>
      <Table<Member>
        label="Members"
        items={cluster.members}
        itemKey={({ name }) => name}
        columns={[
          { label: "Name", show: ({ name }) => name },
          { label: "State", show: (member) => <Badge tone={STATE_TONES[stateOf(member)]}>{stateOf(member)}</Badge> },
          { label: "Role", show: roleOf },
          {
            label: "Link",
            show: (member) =>
              member.link === "self" ? (
                "this node"
              ) : (
                <Badge tone={member.is_up ? LINK_TONES[member.link] : "plain"}>{member.link}</Badge>
              ),
          },
          { label: "Address", show: ({ host, cluster_port }) => (host ? `${host}:${cluster_port}` : "–") },
          { label: "Version", show: ({ version }) => version ?? "–" },
          { label: "Partitions", show: ({ name }) => <Partitions names={partitions.get(name)} /> },
        ]}
      />
    </Card>
  );
}

/** The nodes that a node does not hear although they are up; undefined if it does not answer. */
function Partitions({ names }: { names: string[] | undefined }) {
  if (!names) return <>–</>;
  return names.length ? <Badge tone="bad">{names.join(", ")}</Badge> : <>none</>;
}

/** The nodes with what they use of memory, disk and file descriptors. */
export function Nodes({ title = "Nodes", isInMemory }: { title?: string; isInMemory: boolean }) {
  const { data, error } = useLive<Node[]>(path("nodes"));
  return (
    <Card title={title}>
      <ErrorMessage error={error} />
      {data && (
        <Table
          label="Nodes"
          items={data}
          itemKey={({ name }) => name}
          columns={[
            { label: "Name", show: ({ name }) => name },
            {
              label: "State",
              show: ({ running }) => <Badge tone={running ? "good" : "bad"}>{running ? "running" : "down"}</Badge>,
            },
            { label: "Uptime", show: ({ uptime }) => (uptime === undefined ? "–" : formatDuration(uptime)) },
            {
              label: "Memory",
              show: (node) => (
                <Level used={node.mem_used} limit={node.mem_limit} isAlarm={node.mem_alarm} word="high watermark" />
              ),
            },
            {
              label: "Disk free",
              show: (node) =>
                isInMemory ? (
                  <span class="quiet">not used: the broker runs in memory only</span>
                ) : (
                  <Level used={node.disk_free} limit={node.disk_free_limit} isAlarm={node.disk_free_alarm} word="low watermark" />
                ),
            },
            {
              label: "File descriptors",
              isNumber: true,
              show: ({ fd_used, fd_total }) => (fd_total === undefined ? "–" : `${count(fd_used)} of ${count(fd_total)}`),
            },
          ]}
        />
      )}
    </Card>
  );
}

interface LevelProps {
  used: number | undefined;
  limit: number | undefined;
  isAlarm: boolean | undefined;
  word: string;
}

function Level({ used, limit, isAlarm, word }: LevelProps) {
  return (
    <>
      {formatBytes(used)} <span class="quiet">{limit === undefined ? "" : `${word} ${formatBytes(limit)}`}</span>{" "}
      {isAlarm && <Badge tone="bad">alarm: publishers are blocked</Badge>}
    </>
  );
}
