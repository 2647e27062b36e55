import { expect, test } from "vitest";
import { loginChoices, loginFailure } from "../src/login-choice";

const PLAIN = { oauth_enabled: false, enable_uaa: false, uaa_client_id: "", uaa_location: "" };
const of = (servers: Record<string, { id: string; label?: string; oauth_provider_url?: string }>) =>
  loginChoices({ ...PLAIN, oauth_enabled: true, oauth_resource_servers: servers }).map(({ label }) => label);

test("without OAuth 2 there is no login at a provider", () => {
  expect(loginChoices(PLAIN)).toEqual([]);
});

test("a login has its label, or the host of the only provider, or the name of the resource server", () => {
  expect(of({ a: { id: "a", label: "Staff" } })).toEqual(["Staff"]);
  expect(of({ a: { id: "a", oauth_provider_url: "https://id.example:8443/realms/main" } })).toEqual(["id.example:8443"]);
  expect(of({ a: { id: "a", oauth_provider_url: "not an address" } })).toEqual(["a"]);
  expect(of({ a: { id: "a", oauth_provider_url: "https://id.example" }, b: { id: "b", label: "B" } })).toEqual(["a", "B"]);
});

test("a failure is told in words of the page, whatever the address says", () => {
  expect(loginFailure("")).toBe("");
  expect(loginFailure("?error=Not_Authorized")).toContain("may not use this broker");
  const unknown = loginFailure("?error=Call+0800+1234");
  expect(unknown).toContain("did not succeed");
  expect(unknown).not.toContain("0800");
  expect(loginFailure("?error=constructor")).toBe(unknown);
});
