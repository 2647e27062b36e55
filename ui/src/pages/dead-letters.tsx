/** Dead-lettered messages by queue and cause, and redriving them. */

import { useEffect, useState } from "preact/hooks";
import { path, withQuery } from "../api";
import type { DeadLetterGroup, DeadLetters, PeekedMessage } from "../api-types";
import { Button } from "../components/button";
import { JobProgress } from "../components/job";
import { Card, Page } from "../components/layout";
import { Badge, ErrorMessage, Loading } from "../components/status";
import { Table } from "../components/table";
import { useSelectedVhost, VhostSelect } from "../components/vhost-select";
import { count, formatBytes, formatDuration, plural, time } from "../format";
import { type DeathCause, splitProperties } from "../model";
import { useFetch } from "../request";
import { link, setQuery, useLocation } from "../router";
import { LoadMore, SearchState, useMessageSearch } from "./message-search";
import { PeekedMessageCard } from "./peek";
import { Redrive } from "./redrive";

const queueLink = ({ vhost, name }: DeadLetters): string => link("dead-letters", vhost, name);

export function DeadLettersPage() {
  const vhost = useSelectedVhost();
  const url = vhost ? path("warren", "dead-letters", vhost) : path("warren", "dead-letters");
  const { data, error, isPending, reload } = useFetch<{ items: DeadLetters[]; filtered_count: number }>(
    withQuery(url, { page: 1, page_size: 100 }),
  );
  const holding = data?.items.filter((queue) => queue.dead_letters > 0 || queue.next !== null) ?? [];
  return (
    <Page
      title="Dead letters"
      aside={
        <>
          <VhostSelect />
          <Button onClick={reload}>Refresh</Button>
        </>
      }
    >
      <p class="quiet">
        Queues that receive dead-lettered messages, grouped by the first cause. Viewing them does not change the queues.
      </p>
      <ErrorMessage error={error} />
      {isPending && <Loading label="Searching for dead letters …" />}
      {data && !holding.length && <Card>There are no dead letters.</Card>}
      {data && data.filtered_count > data.items.length && (
        <p class="quiet">
          The first {data.items.length} of {count(data.filtered_count)} queues are shown.
        </p>
      )}
      {holding.map((queue) => (
        <Card
          key={queueLink(queue)}
          title={queue.name}
          aside={
            <a class="button" href={queueLink(queue)}>
              Open
            </a>
          }
        >
          <DeadLetterCounts queue={queue} />
          <Groups groups={queue.groups} address={queueLink(queue)} />
        </Card>
      ))}
    </Page>
  );
}

function DeadLetterCounts({ queue }: { queue: DeadLetters }) {
  return (
    <p class="quiet">
      {plural(queue.dead_letters, "dead letter")}
      {queue.other_messages > 0 && `, ${plural(queue.other_messages, "other message")}`}, in virtual host {queue.vhost}
      {queue.next !== null && `; only the first ${count(queue.examined)} messages were scanned`}
    </p>
  );
}

const addressOf = (address: string, { queue, reason, exchange }: DeathCause): string =>
  `${address}?${new URLSearchParams({ died: queue, reason, exchange })}`;

function Groups({ groups, address }: { groups: DeadLetterGroup[]; address: string }) {
  return (
    <Table
      label="Causes"
      items={groups}
      itemKey={({ queue, reason, exchange }) => JSON.stringify([queue, reason, exchange])}
      empty="None of these messages is a dead letter."
      columns={[
        { label: "Original queue", show: (group) => <a href={addressOf(address, group)}>{group.queue}</a> },
        { label: "Reason", show: ({ reason }) => <Badge tone="warn">{reason}</Badge> },
        { label: "Messages", isNumber: true, show: (group) => count(group.count) },
        { label: "Size", isNumber: true, show: ({ bytes }) => formatBytes(bytes) },
        { label: "Original exchange", show: ({ exchange }) => exchange || "(default)" },
        { label: "Dead-lettered at", show: (group) => <TimeRange group={group} /> },
        { label: "Routing keys", show: ({ routing_keys }) => <code>{routing_keys.join(", ")}</code> },
      ]}
    />
  );
}

function TimeRange({ group: { oldest, newest } }: { group: DeadLetterGroup }) {
  const [first, last] = [time(oldest), time(newest)];
  return (
    <>
      {first}
      {last !== first && <small>to {last}</small>}
    </>
  );
}

function useCause(): DeathCause | undefined {
  const { query } = useLocation();
  const queue = query.get("died");
  if (queue === null) return undefined;
  return { queue, reason: query.get("reason") ?? "", exchange: query.get("exchange") ?? "" };
}

export function DeadLetterQueuePage({ vhost, name }: { vhost: string; name: string }) {
  const { data, error, isPending, reload } = useFetch<DeadLetters>(path("warren", "queues", vhost, name, "dead-letters"));
  const [job, setJob] = useState<string>();
  const [selected, setSelected] = useState<ReadonlySet<number>>(new Set());
  // Counts finished jobs: the messages are searched again after each.
  const [round, setRound] = useState(0);
  const cause = useCause();
  useEffect(() => setSelected(new Set()), [cause?.queue, cause?.reason, cause?.exchange]);
  const moved = () => {
    setRound((before) => before + 1);
    setSelected(new Set());
    void reload();
  };
  return (
    <Page
      title={name}
      aside={
        <>
          <a class="button" href={link("queues", vhost, name)}>
            Queue
          </a>
          <Redrive vhost={vhost} name={name} cause={cause} selected={selected} started={setJob} />
        </>
      }
    >
      <ErrorMessage error={error} />
      {isPending && <Loading label="Grouping dead letters by cause …" />}
      {job && <JobProgress key={job} id={job} ended={moved} />}
      {data && (
        <Card
          title="Causes"
          aside={cause && <Button onClick={() => setQuery({ died: "", reason: "", exchange: "" })}>Show all causes</Button>}
        >
          <DeadLetterCounts queue={data} />
          <Groups groups={data.groups} address={link("dead-letters", vhost, name)} />
        </Card>
      )}
      <Messages
        key={`${round} ${JSON.stringify(cause)}`}
        vhost={vhost}
        name={name}
        cause={cause}
        selected={selected}
        select={setSelected}
      />
    </Page>
  );
}

interface MessagesProps {
  vhost: string;
  name: string;
  cause: DeathCause | undefined;
  selected: ReadonlySet<number>;
  select: (places: ReadonlySet<number>) => void;
}

const FACTS = ["queue", "reason", "exchange"] as const;

function Messages({ vhost, name, cause, selected, select }: MessagesProps) {
  const search = useMessageSearch(vhost, name);
  const found = search.data?.messages ?? [];
  useEffect(() => {
    const conditions = (cause ? FACTS : []).flatMap((fact) => {
      const value = cause?.[fact] ?? "";
      // The broker ignores spaces at the ends of a condition: such names are compared here.
      return value === value.trim() ? [`headers.x-first-death-${fact}=${value}`] : [];
    });
    void search.start({ conditions, matches: (message) => hasCause(message, cause) }, () => Promise.resolve(0));
  }, []);
  const toggle = (place: number) => {
    const places = new Set(selected);
    if (!places.delete(place)) places.add(place);
    select(places);
  };
  return (
    <Card title={cause ? `Dead-lettered from ${cause.queue}: ${cause.reason}` : "Messages"}>
      <SearchState search={search} more={selected.size > 0 ? `; ${count(selected.size)} selected` : ""} />
      <ol class="messages">
        {found.map((message) => (
          <li key={message.position}>
            <label class="check">
              <input type="checkbox" checked={selected.has(message.position)} onChange={() => toggle(message.position)} /> Select,
              in this queue for {formatDuration(message.age_ms)}
            </label>
            <PeekedMessageCard message={message} />
          </li>
        ))}
      </ol>
      <LoadMore search={search} />
    </Card>
  );
}

function hasCause({ properties }: PeekedMessage, cause: DeathCause | undefined): boolean {
  return !cause || FACTS.every((fact) => splitProperties(properties).headers?.[`x-first-death-${fact}`] === cause[fact]);
}
