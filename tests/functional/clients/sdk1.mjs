// Visit a board with npm @modelcontextprotocol/sdk 1.x. Usage: node --input-type=module - URL < sdk1.mjs
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "visitor", version: "1.0.0" });
const transport = new StreamableHTTPClientTransport(new URL(process.argv.at(-1)));
await client.connect(transport);
await client.ping();
const seen = {
  version: transport.protocolVersion,
  tools: (await client.listTools()).tools.map((tool) => tool.name),
  status: await client.callTool({ name: "phone_bridge_status", arguments: {} }),
  picture: await client.callTool({ name: "screenshot", arguments: {} }),
  bundle: await client.callTool({ name: "support_bundle", arguments: {} }),
};
await client.callTool({ name: "no_such_tool", arguments: {} }).catch((error) => (seen.unknown = error.code));
await client.close();
console.log(JSON.stringify(seen));
