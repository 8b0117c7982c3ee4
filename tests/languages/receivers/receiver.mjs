// A receiver around verify.mjs or verify_edge.mjs: PORT, WEBHOOK_SECRET and STORED say where, with what,
// and into which file.
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const { verify } = await import(pathToFileURL(process.argv[2]));
const { PORT, WEBHOOK_SECRET, STORED } = process.env;
const seen = new Set();

createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const signatures = request.headersDistinct["x-service-signature"];
  if (!(await verify(signatures, body, WEBHOOK_SECRET.split("\n")))) {
    return response.writeHead(400).end();
  }
  const event = JSON.parse(body);
  if (!seen.has(event.id)) {
    appendFileSync(STORED, `${event.id} ${event.type}\n`);
    seen.add(event.id);
  }
  response.writeHead(204).end();
}).listen(Number(PORT), "127.0.0.1");
