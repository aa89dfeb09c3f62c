// Visit a server with npm @modelcontextprotocol/sdk 1.x. Words: SERVER...
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [program, ...args] = process.argv.slice(1);
const transport = args.length
  ? new StdioClientTransport({ command: program, args, maxBufferSize: 1 << 26 }) // else 10 MiB, less than a bundle may have
  : new StreamableHTTPClientTransport(new URL(program), { requestInit: { headers: authorised() } });
const tell = transport.setProtocolVersion?.bind(transport); // the client keeps no record of the version
let agreed;
transport.setProtocolVersion = (version) => {
  agreed = version;
  tell?.(version);
};
const client = new Client({ name: "visitor", version: "1.0.0" });
await client.connect(transport);
await follow(agreed, {
  ping: () => client.ping(),
  "tools/list": () => client.listTools(),
  "tools/call": (name, args) => client.callTool({ name, arguments: args }),
});
await client.close();
