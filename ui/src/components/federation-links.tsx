/** Federation links as a table: all of them, or those of one exchange or queue. */

import { path, post, withQuery } from "../api";
import type { FederationLink } from "../api-types";
import { shortAddress } from "../definition";
import { type Live, useLive } from "../live";
import { rateOf } from "../model";
import { federationPage, link } from "../router";
import { ConfirmButton } from "./dialog";
import { Card } from "./layout";
import { Forwarded, Lag, LastError, LinkState } from "./link-cells";
import { LinkTable } from "./link-table";
import { notify } from "./notice";
import { Sparkline } from "./sparkline";
import type { Column } from "./table";

/** The name of the federated exchange or queue. */
export const nameOf = (it: FederationLink): string => it.exchange ?? it.queue ?? "";

export const objectPage = (it: FederationLink): string =>
  link(it.type === "queue" ? "queues" : "exchanges", it.vhost, nameOf(it));

export function RestartLink({ link: it, refresh }: { link: FederationLink; refresh: () => void }) {
  const restart = async () => {
    await post(path("warren", "federation-links", it.vhost, it.id, "restart"));
    notify(`The link of “${nameOf(it)}” connects again.`);
    refresh();
  };
  return (
    <ConfirmButton
      label="Restart"
      object={`the link of “${nameOf(it)}” with “${it.upstream}”`}
      question="It closes both connections and connects again. What this broker has not confirmed is delivered again."
      kind="plain"
      action={restart}
    />
  );
}

interface FederationLinkTableProps {
  live: Live<FederationLink[]>;
  mayChange: boolean;
  /** True on the page of the federated exchange or queue. */
  isOfOne?: boolean;
}

export function FederationLinkTable({ live, mayChange, isOfOne }: FederationLinkTableProps) {
  const columns: Column<FederationLink>[] = [
    {
      label: "Upstream",
      show: (it) => [
        <a key="upstream" href={federationPage(it.vhost, it.id)}>
          {it.upstream}
        </a>,
        <Quiet key="uri">{shortAddress(it.uri || (it.source_uris[0] ?? ""))}</Quiet>,
      ],
    },
    { label: "State", show: (it) => <LinkState link={it} state={it.status} /> },
    {
      label: "Rate",
      show: (it) => <Sparkline counter={it.forwarded} current={rateOf(it, "forwarded")} label={`Rate of ${nameOf(it)}`} />,
    },
    { label: "Forwarded", isNumber: true, show: (it) => <Forwarded link={it} /> },
    { label: "Behind", isNumber: true, show: (it) => <Lag link={it} /> },
    { label: "Last error", show: (it) => <LastError link={it} /> },
  ];
  if (!isOfOne) {
    columns.unshift({
      label: "Federated",
      show: (it) => [
        <a key="object" href={objectPage(it)}>
          {nameOf(it)}
        </a>,
        <Quiet key="type">{`${it.type} in ${it.vhost}`}</Quiet>,
      ],
    });
  }
  if (mayChange) columns.push({ label: "Actions", show: (it) => <RestartLink link={it} refresh={live.refresh} /> });
  return (
    <LinkTable
      label="Federation links"
      live={live}
      itemKey={({ id }) => id}
      textOf={(it) => `${nameOf(it)} ${it.upstream}`}
      stateOf={({ status }) => status}
      empty={isOfOne ? "It has no links, as no upstream of its policy exists." : "This node runs no federation links."}
      columns={columns}
    />
  );
}

const Quiet = ({ children }: { children: string }) => <small class="why quiet address">{children}</small>;

/** The links of one exchange or queue; nothing if it is not federated. */
export function LinksOf({
  vhost,
  kind,
  name,
  mayChange,
}: {
  vhost: string;
  kind: "exchange" | "queue";
  name: string;
  mayChange: boolean;
}) {
  const live = useLive<FederationLink[]>(withQuery(path("federation-links", vhost), { [kind]: name }));
  if (!live.data?.length) return null;
  return (
    <Card title="Federation links">
      <FederationLinkTable live={live} mayChange={mayChange} isOfOne />
    </Card>
  );
}
