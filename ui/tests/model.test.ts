import { expect, test } from "vitest";
import { rateOf, splitProperties } from "../src/model";

test("headers stand apart from the other properties", () => {
  const properties = { content_type: "text/plain", headers: { tenant: "acme" } };
  expect(splitProperties(properties)).toEqual({ headers: { tenant: "acme" }, properties: { content_type: "text/plain" } });
});

test("a message without properties has an empty list of them in the API, and an empty table here", () => {
  expect(splitProperties([])).toEqual({ headers: undefined, properties: {} });
});

test("the rate of what was never counted is unknown", () => {
  expect(rateOf({ publish_details: { rate: 5 } }, "publish")).toBe(5);
  expect(rateOf({}, "publish")).toBeUndefined();
  expect(rateOf(undefined, "publish")).toBeUndefined();
});
