// Visit a board with npm @modelcontextprotocol/inspector, one process per request.
// Usage: node --input-type=module - ERA URL < inspector.mjs
import { execFileSync } from "node:child_process";
import { resolve } from "node:path";

const [era, url] = process.argv.slice(-2);
const inspector = resolve("node_modules/.bin/inspector");
const target = ["--cli", url, "--transport", "http", "--protocol-era", era];
const env = { ...process.env, HOME: process.cwd() }; // it keeps a folder there, which is none of the person's
const limits = { env, timeout: 30_000, maxBuffer: 1 << 26, stdio: ["ignore", "pipe", "pipe"] };

const ask = (...words) => JSON.parse(execFileSync(process.execPath, [inspector, ...target, "--method", ...words], limits));
const call = (name) => ask("tools/call", "--tool-name", name);

const seen = {
  version: ask("initialize").protocolVersion,
  // strict: ends with an error when a schema would trouble some model's maker
  tools: ask("tools/list", "--strict").tools.map((tool) => tool.name),
  status: call("phone_bridge_status"),
  picture: call("screenshot"),
  bundle: call("support_bundle"),
};
try {
  call("no_such_tool");
} catch (failed) {
  seen.unknown = JSON.parse(failed.stderr).error.code;
}
console.log(JSON.stringify(seen));
