/** Tables: of items at hand, of a followed list, and of a list that the broker pages and sorts. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Query, withQuery } from "../api";
import type { Page } from "../api-types";
import { count } from "../format";
import { type Live, useLive } from "../live";
import { currentLocation, setQuery, useLocation } from "../router";
import { ErrorMessage, Loading, NodesMissing } from "./status";

export interface Column<T> {
  label: string;
  /** The field by which the broker sorts. */
  sort?: string;
  isNumber?: boolean;
  show: (item: T) => ComponentChildren;
}

interface TableProps<T> {
  label: string;
  columns: Column<T>[];
  items: T[];
  itemKey: (item: T) => string;
  sorting?: { by: string; isReverse: boolean; choose: (field: string) => void };
  empty?: string;
}

export function Table<T>({
  label,
  columns,
  items,
  itemKey,
  sorting,
  empty = `There are no ${label.toLowerCase()}.`,
}: TableProps<T>) {
  if (!items.length) return <p class="quiet">{empty}</p>;
  return (
    <div class="table" tabIndex={0} role="group" aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading key={column.label} column={column} sorting={sorting} />
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={itemKey(item)}>
              {columns.map((column) => (
                <td key={column.label} class={column.isNumber ? "number" : undefined}>
                  {column.show(item)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A followed list; it shows that it is loading until the broker has answered. */
export function LiveTable<T>({
  live: { data, error, nodesMissing },
  ...rest
}: Omit<TableProps<T>, "items"> & { live: Pick<Live<T[]>, "data" | "error"> & Partial<Live<T[]>> }) {
  return (
    <>
      <ErrorMessage error={error} />
      <NodesMissing names={nodesMissing} />
      {data ? <Table items={data} {...rest} /> : !error && <Loading />}
    </>
  );
}

function Heading<T>({ column, sorting }: { column: Column<T>; sorting: TableProps<T>["sorting"] }) {
  const style = column.isNumber ? "number" : undefined;
  const { label, sort } = column;
  if (!sorting || !sort) {
    return (
      <th scope="col" class={style}>
        {label}
      </th>
    );
  }
  const isChosen = sorting.by === sort;
  return (
    <th scope="col" class={style} aria-sort={isChosen ? (sorting.isReverse ? "descending" : "ascending") : "none"}>
      <button type="button" class="sort" onClick={() => sorting.choose(sort)}>
        {label}
        <span aria-hidden="true">{isChosen ? (sorting.isReverse ? " ↓" : " ↑") : ""}</span>
      </button>
    </th>
  );
}

interface PagedTableProps<T> {
  label: string;
  url: string;
  columns: Column<T>[];
  itemKey: (item: T) => string;
  query?: Query;
  empty?: string;
  pageSize?: number;
}

const PAGE_SIZE = 50;
const TYPING_MS = 250;

/** One page of a list that the broker filters, sorts and pages. */
export function PagedTable<T>({ label, url, columns, itemKey, query = {}, empty, pageSize = PAGE_SIZE }: PagedTableProps<T>) {
  const place = useLocation().query;
  const by = place.get("sort") ?? "";
  const isReverse = place.get("reverse") === "1";
  const live = useLive<Page<T>>(
    withQuery(url, {
      ...query,
      page: place.get("page") ?? 1,
      page_size: pageSize,
      name: place.get("name") ?? "",
      use_regex: place.get("regex") === "1",
      sort: by,
      sort_reverse: by ? isReverse : undefined,
    }),
  );
  // A refused request, such as one with an invalid pattern, keeps the previous page.
  const shown = useRef<Page<T>>(undefined);
  if (live.data) shown.current = live.data;
  const data = live.data ?? (live.error && shown.current);
  const choose = (field: string) => setQuery({ sort: field, reverse: by === field && !isReverse ? "1" : "", page: "" });
  return (
    <>
      <Filter label={label} found={data?.filtered_count} total={data?.total_count} />
      <ErrorMessage error={live.error} />
      <NodesMissing names={live.nodesMissing} />
      {data ? (
        <Table
          label={label}
          columns={columns}
          items={data.items}
          itemKey={itemKey}
          sorting={{ by, isReverse, choose }}
          empty={place.get("name") ? "No name matches the filter." : empty}
        />
      ) : (
        !live.error && <Loading />
      )}
      {data && data.page_count > 1 && <Pages current={data.page} last={data.page_count} />}
    </>
  );
}

function Filter({ label, found, total }: { label: string; found: number | undefined; total: number | undefined }) {
  const place = useLocation().query;
  const name = place.get("name") ?? "";
  const [text, setText] = useState(name);
  // A link of the menu opens the list without its filter.
  useEffect(() => setText(name), [name]);
  useEffect(() => {
    const timer = setTimeout(() => {
      if (text !== (currentLocation().query.get("name") ?? "")) setQuery({ name: text, page: "" });
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <div class="filter">
      <input
        type="search"
        aria-label={`Filter ${label} by name`}
        placeholder="Filter by name"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <label class="check">
        <input
          type="checkbox"
          checked={place.get("regex") === "1"}
          onChange={(event) => setQuery({ regex: event.currentTarget.checked ? "1" : "", page: "" })}
        />{" "}
        Regular expression
      </label>
      <span class="quiet" role="status">
        {total === undefined ? "" : found === total ? count(total) : `${count(found)} of ${count(total)}`}
      </span>
    </div>
  );
}

function Pages({ current, last }: { current: number; last: number }) {
  const to = (page: number) => setQuery({ page: page > 1 ? String(page) : "" });
  return (
    <nav class="pages" aria-label="Pages">
      <button type="button" disabled={current <= 1} onClick={() => to(current - 1)}>
        Previous
      </button>
      <span>
        Page {count(current)} of {count(last)}
      </span>
      <button type="button" disabled={current >= last} onClick={() => to(current + 1)}>
        Next
      </button>
    </nav>
  );
}
