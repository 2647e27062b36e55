/** What the sign-in page offers, and what it says of a login that has failed. */

import type { AuthSettings, ResourceServer } from "./api-types";

const FAILURES = new Map([
  ["provider_unavailable", "The identity provider does not answer. Try again later."],
  ["Not_Authorized", "The identity provider knows you, but you may not use this broker. Ask its administrator for access."],
]);

export interface LoginChoice {
  id: string;
  label: string;
}

/** A login for each resource server: with its label, its name, or if it is the only one with the host of the provider. */
export function loginChoices({ oauth_resource_servers: servers = {} }: AuthSettings): LoginChoice[] {
  const all = Object.values(servers);
  const name = ({ id, oauth_provider_url: url = "" }: ResourceServer) =>
    all.length === 1 && URL.canParse(url) ? new URL(url).host : id;
  return all.map((server) => ({ id: server.id, label: server.label || name(server) }));
}

/** Why the login has failed that led to this page, in words of its own; empty if none has. */
export function loginFailure(search: string): string {
  const error = new URLSearchParams(search).get("error");
  if (!error) return "";
  return FAILURES.get(error) ?? "The login at the identity provider did not succeed. The log of the broker says why.";
}
