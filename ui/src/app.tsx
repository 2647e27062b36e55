/** The frame of every page: the signed-in user, the menu and the current page. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { path, withQuery } from "./api";
import type { CurrentUser, Overview } from "./api-types";
import { ClusterProvider, useCluster } from "./components/cluster";
import { Notices } from "./components/notice";
import { useLive } from "./live";
import { ChannelPage, Channels } from "./pages/channels";
import { ConnectionPage, Connections } from "./pages/connections";
import { DeadLetterQueuePage, DeadLettersPage } from "./pages/dead-letters";
import { Definitions } from "./pages/definitions";
import { ExchangePage, Exchanges } from "./pages/exchanges";
import { Flags } from "./pages/feature-flags";
import { Federation } from "./pages/federation";
import { FederationLinkPage } from "./pages/federation-link";
import { Health } from "./pages/health";
import { Jobs } from "./pages/jobs";
import { Limits } from "./pages/limits";
import { NodesPage } from "./pages/nodes";
import { OverviewPage } from "./pages/overview";
import { Policies } from "./pages/policies";
import { QueuePage } from "./pages/queue";
import { Queues } from "./pages/queues";
import { ShovelPage, Shovels } from "./pages/shovels";
import { SignIn } from "./pages/sign-in";
import { Streams } from "./pages/streams";
import { Topology } from "./pages/topology";
import { UserPage, Users } from "./pages/users";
import { VhostPage, Vhosts } from "./pages/vhosts";
import { link, useLocation } from "./router";
import { isAdministrator, mayMakePolicies, mayMonitor, type Session, useSession } from "./session";

interface Entry {
  name: string;
  label: string;
  isFor?: (user: CurrentUser) => boolean;
  /** True for a page that a node without others does not need. */
  isOfCluster?: boolean;
}

/** Monitors see the links to other brokers, policy makers define them. */
function mayLink(user: CurrentUser): boolean {
  return mayMonitor(user) || mayMakePolicies(user);
}

const MONITORING: Entry[] = [
  { name: "", label: "Overview" },
  { name: "nodes", label: "Nodes", isOfCluster: true },
  { name: "connections", label: "Connections" },
  { name: "channels", label: "Channels" },
  { name: "exchanges", label: "Exchanges" },
  { name: "queues", label: "Queues" },
  { name: "streams", label: "Streams" },
  { name: "topology", label: "Topology" },
  { name: "dead-letters", label: "Dead letters" },
  { name: "jobs", label: "Jobs" },
  { name: "shovels", label: "Shovels", isFor: mayLink },
  { name: "federation", label: "Federation", isFor: mayLink },
  { name: "health", label: "Health", isFor: mayMonitor },
];
const ADMINISTRATION: Entry[] = [
  { name: "users", label: "Users", isFor: isAdministrator },
  { name: "vhosts", label: "Virtual hosts", isFor: isAdministrator },
  { name: "policies", label: "Policies" },
  { name: "limits", label: "Limits", isFor: isAdministrator },
  { name: "definitions", label: "Definitions", isFor: isAdministrator },
  { name: "flags", label: "Feature flags", isFor: isAdministrator },
];

export function App() {
  const session = useSession();
  if (session.user === undefined) return null;
  if (session.user === null) {
    return (
      <>
        <SignIn signIn={session.signIn} />
        <Notices />
      </>
    );
  }
  return (
    <ClusterProvider user={session.user}>
      <SkipLink />
      <Frame session={session} user={session.user}>
        <Route user={session.user} />
      </Frame>
      <Notices />
    </ClusterProvider>
  );
}

/** A link, which assistive technology expects here; its fragment must not reach the router. */
function SkipLink() {
  const skip = (event: Event) => {
    event.preventDefault();
    document.getElementById("main")?.focus();
  };
  return (
    // biome-ignore lint/a11y/useValidAnchor: it leads to a place in the page, as links do.
    <a class="skip" href="#main" onClick={skip}>
      Skip to content
    </a>
  );
}

function Route({ user }: { user: CurrentUser }) {
  const [page = "", ...names] = useLocation().segments;
  const [first, second] = names;
  useEffect(() => {
    document.title = `${[...names].reverse().join(" in ") || page || "Overview"} · Warren`;
    document.getElementById("main")?.scrollTo(0, 0);
  }, [page, first, second]);

  const here: Record<string, () => ComponentChildren> = {
    "": () => <OverviewPage user={user} />,
    nodes: () => <NodesPage />,
    connections: () => (first === undefined ? <Connections /> : <ConnectionPage name={first} />),
    channels: () => (first === undefined ? <Channels /> : <ChannelPage name={first} />),
    exchanges: () => (second === undefined ? <Exchanges /> : <ExchangePage vhost={first ?? ""} name={second} user={user} />),
    queues: () => (second === undefined ? <Queues /> : <QueuePage vhost={first ?? ""} name={second} user={user} />),
    streams: () => <Streams />,
    "dead-letters": () =>
      second === undefined ? <DeadLettersPage /> : <DeadLetterQueuePage vhost={first ?? ""} name={second} />,
    jobs: () => <Jobs />,
    shovels: () =>
      second === undefined ? <Shovels user={user} /> : <ShovelPage vhost={first ?? ""} name={second} user={user} />,
    "static-shovels": () => <ShovelPage name={first ?? ""} user={user} />,
    federation: () =>
      second === undefined ? <Federation user={user} /> : <FederationLinkPage vhost={first ?? ""} id={second} user={user} />,
    users: () => (first === undefined ? <Users /> : <UserPage name={first} />),
    vhosts: () => (first === undefined ? <Vhosts /> : <VhostPage name={first} />),
    policies: () => <Policies user={user} />,
    limits: () => <Limits />,
    definitions: () => <Definitions />,
    flags: () => <Flags />,
    topology: () => <Topology />,
    health: () => <Health />,
  };
  const show = here[page];
  // The key makes a new page for each object, so that no state of the previous one remains.
  return <div key={[page, ...names].join("\n")}>{show ? show() : <p>Page not found.</p>}</div>;
}

function Frame({ session, user, children }: { session: Session; user: CurrentUser; children: ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  const page = useLocation().segments[0] ?? "";
  useEffect(() => setOpen(false), [page]);
  return (
    <div class="frame">
      <header class="top">
        <button
          type="button"
          class="icon menu"
          aria-expanded={isOpen}
          aria-controls="menu"
          aria-label="Menu"
          onClick={() => setOpen(!isOpen)}
        >
          ☰
        </button>
        <a class="brand" href={link()}>
          <img src="icon.svg" alt="" width="26" height="26" /> Warren
        </a>
        <span class="who">
          <Theme />
          <span class="user-name">{user.name}</span>
          <button type="button" onClick={() => void session.signOut()}>
            Sign out
          </button>
        </span>
      </header>
      <nav id="menu" class={isOpen ? "side open" : "side"} aria-label="Main navigation">
        <Entries entries={MONITORING} user={user} page={page} />
        <h2>Admin</h2>
        <Entries entries={ADMINISTRATION} user={user} page={page} />
      </nav>
      <main id="main" tabIndex={-1}>
        <Conditions />
        {children}
      </main>
    </div>
  );
}

/** Conditions of the broker that every page shows: alarms, and running in memory only. */
function Conditions() {
  const { data } = useLive<Partial<Overview>>(withQuery(path("overview"), { columns: "in_memory,alarms" }));
  const alarms = data?.alarms ?? [];
  return (
    <>
      {alarms.length > 0 && (
        <p class="failure condition" role="alert">
          Resource alarm: {alarms.map(({ node, resource }) => `${resource} on node ${node}`).join(", ")}. Publishing is blocked
          until the alarm clears.
        </p>
      )}
      {data?.in_memory && (
        <p class="paused condition" role="status">
          This broker runs in memory only: queues, messages and users are lost when it stops.
        </p>
      )}
    </>
  );
}

function Entries({ entries, user, page }: { entries: Entry[]; user: CurrentUser; page: string }) {
  const isCluster = useCluster() !== undefined;
  return (
    <ul>
      {entries
        .filter(({ isFor, isOfCluster }) => (!isFor || isFor(user)) && (!isOfCluster || isCluster))
        .map(({ name, label }) => (
          <li key={name}>
            <a href={name ? link(name) : link()} aria-current={name === page ? "page" : undefined}>
              {label}
            </a>
          </li>
        ))}
    </ul>
  );
}

const THEMES = ["auto", "light", "dark"] as const;

/** Light, dark, or the preference of the system. */
function Theme() {
  const [theme, setTheme] = useState(() => localStorage.getItem("theme") ?? "auto");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
  }, [theme]);
  return (
    <select aria-label="Theme" value={theme} onChange={(event) => setTheme(event.currentTarget.value)}>
      {THEMES.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}
