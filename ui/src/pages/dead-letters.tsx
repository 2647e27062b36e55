/** Dead letters: where there are some, what they died of, and sending them back. */

import { useEffect, useState } from "preact/hooks";
import { path, withQuery } from "../api";
import { Progress } from "../components/job";
import { Table } from "../components/table";
import { Badge, Button, Card, Failure, Loading, Page } from "../components/ui";
import { useChosenVhost, VhostChoice } from "../components/vhost-select";
import { count, octets, span, time } from "../format";
import type { Cause, DeadGroup, DeadQueue, PeekedMessage } from "../model";
import { useAnswer } from "../request";
import { link, setQuery, usePlace } from "../router";
import { Further, SearchState, useSearch } from "./message-search";
import { MessageFacts } from "./peek";
import { Redrive } from "./redrive";

const queueLink = ({ vhost, name }: DeadQueue): string => link("dead-letters", vhost, name);

export function DeadLetters() {
  const vhost = useChosenVhost();
  const url = vhost ? path("warren", "dead-letters", vhost) : path("warren", "dead-letters");
  const { data, error, isAsking, again } = useAnswer<{ items: DeadQueue[]; filtered_count: number }>(
    withQuery(url, { page: 1, page_size: 100 }),
  );
  const holding = data?.items.filter((queue) => queue.dead_letters > 0 || queue.next !== null) ?? [];
  return (
    <Page
      title="Dead letters"
      aside={
        <>
          <VhostChoice />
          <Button onClick={again}>Look again</Button>
        </>
      }
    >
      <p class="quiet">
        Queues that a dead-letter exchange leads to, and what their messages died of first. Looking changes nothing.
      </p>
      <Failure error={error} />
      {isAsking && <Loading label="Looking for dead letters …" />}
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
          <Found queue={queue} />
          <Groups groups={queue.groups} address={queueLink(queue)} />
        </Card>
      ))}
    </Page>
  );
}

function Found({ queue }: { queue: DeadQueue }) {
  return (
    <p class="quiet">
      {count(queue.dead_letters)} dead letters{queue.not_dead > 0 && `, ${count(queue.not_dead)} other messages`}, in virtual host{" "}
      {queue.vhost}
      {queue.next !== null && `; the first ${count(queue.examined)} were looked at, and there are more`}
    </p>
  );
}

const addressOf = (address: string, { queue, reason, exchange }: Cause): string =>
  `${address}?${new URLSearchParams({ died: queue, reason, exchange })}`;

function Groups({ groups, address }: { groups: DeadGroup[]; address: string }) {
  return (
    <Table
      label="Causes"
      items={groups}
      itemKey={({ queue, reason, exchange }) => JSON.stringify([queue, reason, exchange])}
      empty="None of these is a dead letter."
      columns={[
        { label: "Died in", show: (group) => <a href={addressOf(address, group)}>{group.queue}</a> },
        { label: "Because", show: ({ reason }) => <Badge tone="warn">{reason}</Badge> },
        { label: "Messages", isNumber: true, show: (group) => count(group.count) },
        { label: "Bodies", isNumber: true, show: ({ bytes }) => octets(bytes) },
        { label: "Came by", show: ({ exchange }) => exchange || "(default)" },
        { label: "When", show: (group) => <When group={group} /> },
        { label: "Routing keys", show: ({ routing_keys }) => <code>{routing_keys.join(", ")}</code> },
      ]}
    />
  );
}

function When({ group: { oldest, newest } }: { group: DeadGroup }) {
  const [first, last] = [time(oldest), time(newest)];
  return (
    <>
      {first}
      {last !== first && <small>to {last}</small>}
    </>
  );
}

function useCause(): Cause | undefined {
  const { query } = usePlace();
  const queue = query.get("died");
  if (queue === null) return undefined;
  return { queue, reason: query.get("reason") ?? "", exchange: query.get("exchange") ?? "" };
}

export function DeadQueuePage({ vhost, name }: { vhost: string; name: string }) {
  const { data, error, isAsking, again } = useAnswer<DeadQueue>(path("warren", "queues", vhost, name, "dead-letters"));
  const [job, setJob] = useState<string>();
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  // Counts up when something has moved: what is shown is looked for anew.
  const [round, setRound] = useState(0);
  const cause = useCause();
  useEffect(() => setChosen(new Set()), [cause?.queue, cause?.reason, cause?.exchange]);
  const moved = () => {
    setRound((before) => before + 1);
    setChosen(new Set());
    void again();
  };
  return (
    <Page
      title={name}
      aside={
        <>
          <a class="button" href={link("queues", vhost, name)}>
            Queue
          </a>
          <Redrive vhost={vhost} name={name} cause={cause} chosen={chosen} started={setJob} />
        </>
      }
    >
      <Failure error={error} />
      {isAsking && <Loading label="Looking what they died of …" />}
      {job && <Progress key={job} id={job} ended={moved} />}
      {data && (
        <Card
          title="What they died of"
          aside={cause && <Button onClick={() => setQuery({ died: "", reason: "", exchange: "" })}>All causes</Button>}
        >
          <Found queue={data} />
          <Groups groups={data.groups} address={link("dead-letters", vhost, name)} />
        </Card>
      )}
      <Messages
        key={`${round} ${JSON.stringify(cause)}`}
        vhost={vhost}
        name={name}
        cause={cause}
        chosen={chosen}
        choose={setChosen}
      />
    </Page>
  );
}

interface MessagesProps {
  vhost: string;
  name: string;
  cause: Cause | undefined;
  chosen: ReadonlySet<number>;
  choose: (places: ReadonlySet<number>) => void;
}

const FACTS = ["queue", "reason", "exchange"] as const;

function Messages({ vhost, name, cause, chosen, choose }: MessagesProps) {
  const search = useSearch(vhost, name);
  const found = search.data?.messages ?? [];
  useEffect(() => {
    const conditions = (cause ? FACTS : []).flatMap((fact) => {
      const value = cause?.[fact] ?? "";
      // Spaces at the ends of a condition do not count: such names are told apart here.
      return value === value.trim() ? [`headers.x-first-death-${fact}=${value}`] : [];
    });
    void search.begin({ conditions, fits: (message) => isOf(message, cause) }, () => Promise.resolve(0));
  }, []);
  const toggle = (place: number) => {
    const places = new Set(chosen);
    if (!places.delete(place)) places.add(place);
    choose(places);
  };
  return (
    <Card title={cause ? `Those that died in ${cause.queue}: ${cause.reason}` : "Messages"}>
      <SearchState search={search} more={chosen.size > 0 ? `; ${count(chosen.size)} chosen` : ""} />
      <ol class="messages">
        {found.map((message) => (
          <li key={message.place}>
            <label class="check">
              <input type="checkbox" checked={chosen.has(message.place)} onChange={() => toggle(message.place)} /> Choose this
              one, here for {span(message.age_ms)}
            </label>
            <MessageFacts message={message} />
          </li>
        ))}
      </ol>
      <Further search={search} />
    </Card>
  );
}

function isOf({ properties }: PeekedMessage, cause: Cause | undefined): boolean {
  return !cause || FACTS.every((fact) => properties.headers?.[`x-first-death-${fact}`] === cause[fact]);
}
