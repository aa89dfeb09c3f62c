// Visit a board with npm @modelcontextprotocol/client 2.x. Usage: node --input-type=module - MODE URL < client2.mjs
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [mode, url] = process.argv.slice(-2);
const client = new Client({ name: "visitor", version: "1.0.0" }, { versionNegotiation: { mode } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const seen = {
  version: client.getNegotiatedProtocolVersion(),
  tools: (await client.listTools()).tools.map((tool) => tool.name),
  status: await client.callTool({ name: "phone_bridge_status", arguments: {} }),
  picture: await client.callTool({ name: "screenshot", arguments: {} }),
  bundle: await client.callTool({ name: "support_bundle", arguments: {} }),
};
await client.callTool({ name: "no_such_tool", arguments: {} }).catch((error) => (seen.unknown = error.code));
await client.close();
console.log(JSON.stringify(seen));
