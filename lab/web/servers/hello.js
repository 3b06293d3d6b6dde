// Hello over HTTP by Node's own server, which has one thread: port, threads, the file of /json, and with TLS certificate and key.
"use strict";
const fs = require("fs");
const [port, , file, certificate, key] = process.argv.slice(2);
const json = fs.readFileSync(file);
function answer(request, response) {
  if (request.url === "/json") response.writeHead(200, {"content-type": "application/json", "content-length": json.length}).end(json);
  else response.writeHead(200, {"content-type": "text/plain; charset=utf-8", "content-length": 6}).end("hello\n");
}
const server = certificate
  ? require("http2").createSecureServer({cert: fs.readFileSync(certificate), key: fs.readFileSync(key), allowHTTP1: true}, answer)
  : require("http").createServer(answer);
server.listen(+port, "127.0.0.1");
