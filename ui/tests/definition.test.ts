import { expect, test } from "vitest";
import { addressesOf, refusedFields, typed, writtenAddresses } from "../src/definition";

test("addresses are written one per line", () => {
  expect(writtenAddresses(" amqp:// \n\n")).toBe("amqp://");
  expect(writtenAddresses("a\nb")).toEqual(["a", "b"]);
  expect(addressesOf(["a", "b"])).toEqual(["a", "b"]);
  expect(addressesOf(undefined)).toEqual([]);
});

test("numbers and truth values are typed", () => {
  expect([typed("5"), typed("true"), typed("5s"), typed("")]).toEqual([5, true, "5s", ""]);
});

test("a refusal is shown at the fields that it names, unless one of its lines names none", () => {
  const names = ["src-queue", "src-queue-args", "prefetch-count"];
  expect(refusedFields("Validation failed\n\nsrc-queue-args should be a map\n", names)).toEqual({
    "src-queue-args": "src-queue-args should be a map",
  });
  expect(refusedFields("Validation failed\n\nsomething else\n", names)).toEqual({});
});
