import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { anyPack, durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../src/gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../src/gen/google/rpc/status_pb.js";
import { AdminService, HummockError, statusError } from "../src/index.js";
import { Service } from "./service.js";

const INFO = { reason: "INVALID_REQUEST", domain: "hummock.dev", metadata: { limit: "100" } };
const VIOLATIONS = [{ field: "tuning.top_k", description: "at most 200" }];

const FACTS = {
  code: "INVALID_ARGUMENT",
  reason: "INVALID_REQUEST",
  message: "top_k is 900",
  fieldViolations: [{ field: "tuning.top_k", rule: "at most 200" }],
  metadata: { limit: "100" },
  retryAfterMs: 1500,
};

async function failing(error: ConnectError): Promise<HummockError> {
  await using service = await Service.start(router => {
    router.service(AdminService, {
      getStatus() {
        throw error;
      },
    });
  });
  using client = service.client();
  const failed: unknown = await client.admin.getStatus({}).catch(error => error);
  assert.ok(failed instanceof HummockError);
  return failed;
}

test("an error tells what the service told", async () => {
  const details = [
    { desc: ErrorInfoSchema, value: INFO },
    { desc: BadRequestSchema, value: { fieldViolations: VIOLATIONS } },
    { desc: RetryInfoSchema, value: { retryDelay: durationFromMs(1500) } },
  ];
  const error = await failing(new ConnectError("top_k is 900", Code.InvalidArgument, undefined, details));
  assert.deepEqual(told(error), FACTS);
});

test("without details the reason is the code's name", async () => {
  const error = await failing(new ConnectError("a rule of a proxy", Code.PermissionDenied));
  assert.deepEqual(told(error), {
    code: "PERMISSION_DENIED",
    reason: "PERMISSION_DENIED",
    message: "a rule of a proxy",
    fieldViolations: [],
    metadata: {},
    retryAfterMs: undefined,
  });
});

test("a status inside a reply tells the same, and what cannot be read is left out", () => {
  const details = [
    { typeUrl: "type.googleapis.com/google.rpc.BadRequest", value: new Uint8Array([0xff]) },
    anyPack(ErrorInfoSchema, create(ErrorInfoSchema, INFO)),
    { typeUrl: "type.googleapis.com/what.comes.Later", value: new Uint8Array([1, 2]) },
  ];
  const status = create(StatusSchema, { code: Code.InvalidArgument, message: "top_k is 900", details });
  assert.deepEqual(told(statusError(status)), { ...FACTS, fieldViolations: [], retryAfterMs: undefined });
});

test("a code that nobody knows is UNKNOWN", () => {
  assert.equal(statusError(create(StatusSchema, { code: 99 })).code, "UNKNOWN");
});

function told({ code, reason, message, fieldViolations, metadata, retryAfterMs }: HummockError) {
  return { code, reason, message, fieldViolations, metadata, retryAfterMs };
}
