// What every JavaScript visit does once it is connected, as in steps.py; the visit's own module follows this text.
import { createInterface } from "node:readline";

const say = (seen) => console.log(JSON.stringify(seen));

// The token that the server wants, as a header; it comes in the environment, which `ps` does not show.
const authorised = () =>
  process.env.VISITOR_TOKEN ? { Authorization: `Bearer ${process.env.VISITOR_TOKEN}` } : {};

async function follow(version, requests) {
  say({ version });
  for await (const line of createInterface({ input: process.stdin })) {
    const [method, ...words] = JSON.parse(line);
    const refused = ({ code, message, data }) => ({ error: { code, message, data } });
    say(await requests[method](...words).catch(refused));
  }
}
