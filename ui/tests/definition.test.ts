import { expect, test } from "vitest";
import { addressesOf, masked, refusedFields, typed, writtenAddresses } from "../src/definition";

test("passwords of addresses are masked, also those with a slash or an at sign", () => {
  expect(masked("amqp://u:secret@host/%2f")).toBe("amqp://u:***@host/%2f");
  expect(masked("amqp://u:a@b/c@host")).toBe("amqp://u:***@host");
  expect(masked("amqp://host/v")).toBe("amqp://host/v");
  expect(masked("amqp://")).toBe("amqp://");
});

test("a masked password is that of the old address", () => {
  expect(writtenAddresses("amqp://u:***@new", "amqp://u:s$&t@old")).toBe("amqp://u:s$&t@new");
  expect(writtenAddresses("amqp://b:***@two\namqp://a:***@one", ["amqp://a:1@one", "amqp://b:2@two"])).toEqual([
    "amqp://b:2@two",
    "amqp://a:1@one",
  ]);
  expect(() => writtenAddresses("amqp://u:***@new", undefined)).toThrow("password");
});

test("addresses are written one per line", () => {
  expect(writtenAddresses(" amqp:// \n\n", undefined)).toBe("amqp://");
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
