// Visit a server with npm @modelcontextprotocol/inspector, one process per request. Words: ERA SERVER...
import { execFileSync } from "node:child_process";
import { resolve } from "node:path";

const [era, ...server] = process.argv.slice(1);
const inspector = resolve("node_modules/.bin/inspector");
const transport = server.length > 1 ? "stdio" : "http";
const env = { ...process.env, HOME: process.cwd() }; // it keeps a folder there, which is none of the person's
const limits = { env, timeout: 30_000, maxBuffer: 1 << 26, stdio: ["ignore", "pipe", "pipe"] };

const ask = (...words) => {
  const target = ["--cli", ...server, "--transport", transport, "--protocol-era", era];
  return JSON.parse(execFileSync(process.execPath, [inspector, ...target, "--method", ...words], limits));
};
const tried = async (...words) => {
  try {
    return ask(...words);
  } catch (failed) {
    throw JSON.parse(failed.stderr).error;
  }
};

await follow(ask("initialize").protocolVersion, {
  // strict: ends with an error when a schema would trouble some model's maker
  "tools/list": () => tried("tools/list", "--strict"),
  "tools/call": (name) => tried("tools/call", "--tool-name", name),
});
