// Visit a server with npm @modelcontextprotocol/client 2.x. Words: MODE SERVER...
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [mode, program, ...args] = process.argv.slice(1);
const client = new Client({ name: "visitor", version: "1.0.0" }, { versionNegotiation: { mode } });
const transport = args.length
  ? new StdioClientTransport({ command: program, args, maxBufferSize: 1 << 26 }) // else 10 MiB, less than a bundle may have
  : new StreamableHTTPClientTransport(new URL(program), { requestInit: { headers: authorised() } });
await client.connect(transport);
await follow(client.getNegotiatedProtocolVersion(), {
  ping: () => client.ping(),
  "tools/list": () => client.listTools(),
  "tools/call": (name, args) => client.callTool({ name, arguments: args }),
});
await client.close();
