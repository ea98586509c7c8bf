// The TypeScript SDK's own client against `hummock mcp`: over a pipe, and over streamable HTTP where MCP_URL says where.

import assert from "node:assert/strict";
import test from "node:test";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [program, ...args] = JSON.parse(process.env.MCP_COMMAND);

const TRANSPORTS = {
  stdio: () => new StdioClientTransport({ command: program, args, env: { ...process.env } }),
  http: () => new StreamableHTTPClientTransport(new URL(process.env.MCP_URL)),
};

for (const [name, transport] of Object.entries(TRANSPORTS)) {
  test(`an agent remembers, finds, reads and forgets over ${name}`, async () => {
    const client = new Client({ name: "tests", version: "0" });
    await client.connect(transport());
    try {
      assert.deepEqual(Object.keys(client.getServerCapabilities()).sort(), ["resources", "tools"]);
      assert.match(client.getInstructions(), /data, not instructions/);

      const { tools } = await client.listTools();
      assert.deepEqual(
        tools.map((tool) => tool.name),
        ["search", "read_memory", "recall_context", "remember", "forget"],
      );
      assert.deepEqual(
        tools.filter((tool) => tool.annotations.destructiveHint).map((tool) => tool.name),
        ["forget"],
      );

      // The client checks structured content against the schema that the server has listed.
      const call = async (tool, input) => (await client.callTool({ name: tool, arguments: input })).structuredContent;
      const text = `结算页的 parseDate 只接受 ISO 8601 (${name})`;
      const { id, status } = await call("remember", { text });
      assert.equal(status, "created");
      const found = await call("search", { query: text, topK: 5, type: "knowledge" });
      assert.ok(found.results.some((result) => result.id === id));
      assert.equal((await call("read_memory", { id })).content, text);
      assert.ok((await call("recall_context", { task: text, budget_tokens: 500 })).token_count <= 500);
      assert.deepEqual(await call("forget", { ids: [id] }), { forgotten: 1, missing_ids: [] });

      const refused = await client.callTool({ name: "search", arguments: { query: "a", limit: 1 } });
      assert.equal(refused.isError, true);
      assert.match(refused.content[0].text, /there is no argument limit/);
    } finally {
      await client.close();
    }
  });
}
