import { beforeEach, expect, test } from "vitest";
import type { ClusterAnswer } from "../src/api";
import { type EventStream, type LiveEvent, LiveFeed } from "../src/live-feed";

/** A broker and a browser that a test controls. */
class Surroundings {
  readonly streams: { paths: string[]; stream: EventStream; isClosed: boolean }[] = [];
  readonly waiting: (() => void)[] = [];
  isPageHidden = false;
  session: () => Promise<unknown> = () => Promise.resolve({});
  request: (url: string) => Promise<ClusterAnswer> = () => Promise.reject(new Error("not expected"));

  readonly feed = new LiveFeed({
    open: (paths) => {
      const opened = {
        paths,
        isClosed: false,
        stream: {
          onmessage: null,
          onerror: null,
          get isClosed() {
            return opened.isClosed;
          },
          close: () => {
            opened.isClosed = true;
          },
        } as EventStream,
      };
      this.streams.push(opened);
      return opened.stream;
    },
    request: (url) => this.request(url),
    checkSession: () => this.session(),
    isHidden: () => this.isPageHidden,
    later: (action) => this.waiting.push(action),
  });

  get followed(): string[][] {
    return this.streams.filter(({ isClosed }) => !isClosed).map(({ paths }) => paths);
  }

  send(path: string, body: unknown, status = 200): void {
    const open = this.streams.find(({ isClosed }) => !isClosed);
    open?.stream.onmessage?.({ data: JSON.stringify({ path, status, body }) });
  }
}

const settled = () => new Promise<void>((done) => setTimeout(done));

let page: Surroundings;
let events: LiveEvent[];
const note = (event: LiveEvent) => events.push(event);

beforeEach(() => {
  page = new Surroundings();
  events = [];
});

test("all addresses that are followed at once share one connection", async () => {
  page.feed.subscribe("/a", note);
  page.feed.subscribe("/b", note);
  page.feed.subscribe("/a", note);
  await settled();
  expect(page.streams.map(({ paths }) => paths)).toEqual([["/a", "/b"]]);
});

test("a listener that joins later begins with the last answer", async () => {
  page.feed.subscribe("/a", () => undefined);
  await settled();
  page.send("/a", 1);
  page.send("/a", 2);
  page.feed.subscribe("/a", note);
  expect(events).toEqual([{ path: "/a", status: 200, body: 2 }]);
});

test("an address without listeners is no longer followed, and its last answer is forgotten", async () => {
  const leave = page.feed.subscribe("/a", () => undefined);
  page.feed.subscribe("/b", () => undefined);
  await settled();
  page.send("/a", 1);
  leave();
  await settled();
  expect(page.followed).toEqual([["/b"]]);
  page.feed.subscribe("/a", note);
  expect(events).toEqual([]);
});

test("unsubscribing twice does not end the subscription of another listener", async () => {
  const leave = page.feed.subscribe("/a", () => undefined);
  leave();
  page.feed.subscribe("/a", note);
  leave();
  await settled();
  expect(page.followed).toEqual([["/a"]]);
  page.send("/a", 1);
  expect(events).toHaveLength(1);
});

test("a hidden page has no connection, and one again when it is shown", async () => {
  page.feed.subscribe("/a", note);
  await settled();
  page.isPageHidden = true;
  page.feed.schedule();
  await settled();
  expect(page.followed).toEqual([]);
  page.isPageHidden = false;
  page.feed.schedule();
  await settled();
  expect(page.followed).toEqual([["/a"]]);
});

test("a refresh tells every listener the answer", async () => {
  page.request = () => Promise.resolve({ body: "new", nodes_missing: ["b"] });
  page.feed.subscribe("/a", note);
  page.feed.subscribe("/a", (event) => note(event));
  await page.feed.refresh("/a");
  const event = { path: "/a", status: 200, body: "new", nodes_missing: ["b"] };
  expect(events).toEqual([event, event]);
});

test("a refresh that an event overtakes asks again", async () => {
  const answers: ((answer: ClusterAnswer) => void)[] = [];
  page.request = () => new Promise((answer) => answers.push(answer));
  page.feed.subscribe("/a", note);
  await settled();
  const refreshed = page.feed.refresh("/a");
  page.send("/a", "event");
  answers[0]?.({ body: "older or newer" });
  await refreshed;
  expect(events.map(({ body }) => body)).toEqual(["event"]);
  answers[1]?.({ body: "newest" });
  await settled();
  expect(events.map(({ body }) => body)).toEqual(["event", "newest"]);
});

test("a refresh that fails tells the status, and is not kept for later listeners", async () => {
  page.request = () => Promise.reject(Object.assign(new Error("no such queue"), { status: 404 }));
  page.feed.subscribe("/a", note);
  await page.feed.refresh("/a");
  expect(events.map(({ status }) => status)).toEqual([404]);
  page.feed.subscribe("/a", note);
  expect(events).toHaveLength(1);
});

test("a lost connection is told only if the broker does not answer either", async () => {
  page.feed.subscribe("/a", note);
  await settled();
  page.streams[0]?.stream.onerror?.();
  await settled();
  expect(events).toEqual([]);
  page.session = () => Promise.reject(new Error("the broker cannot be reached"));
  page.streams[0]?.stream.onerror?.();
  await settled();
  expect(events.map(({ path, status }) => [path, status])).toEqual([["/a", 0]]);
});

test("a connection that the browser has given up is opened again later", async () => {
  page.feed.subscribe("/a", note);
  await settled();
  const [first] = page.streams;
  if (first) first.isClosed = true;
  first?.stream.onerror?.();
  expect(page.streams).toHaveLength(1);
  expect(page.waiting).toHaveLength(1);
  page.waiting[0]?.();
  expect(page.followed).toEqual([["/a"]]);
});
