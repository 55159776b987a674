// ws: a loop over the clients, as its documentation shows it.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { WebSocketServer } from 'ws'
import { installedVersion } from '../dist/targets/installed-version.js'
import { isTokenValid } from '../dist/targets/json-web-token.js'
import { serveTarget, targetSettings } from '../dist/targets/serve-target.js'
import { maxWaitingBytesOf } from '../dist/targets/target-server.js'

const { jwtSecret, compression, tls } = targetSettings()
let receivedCount = 0

const http =
  tls === undefined
    ? createServer()
    : createHttpsServer({ cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) })
const server = new WebSocketServer({
  server: http,
  perMessageDeflate: compression === true ? { serverNoContextTakeover: true, clientNoContextTakeover: true } : false,
  verifyClient: ({ req }) =>
    jwtSecret === undefined ||
    isTokenValid(jwtSecret, (req.headers.authorization ?? '').slice('Bearer '.length), Date.now() / 1_000),
})
await new Promise((resolve) => http.listen(0, '127.0.0.1', resolve))
server.on('connection', (socket) => {
  socket.on('message', (message) => {
    receivedCount++
    if (message.length === 4) socket.send('pong')
  })
  // The peer vanished; its `close` follows.
  socket.on('error', () => undefined)
  socket.send('ready')
})

serveTarget({
  port: http.address().port,
  version: installedVersion('ws'),
  publish(writer, seq, timeUs) {
    // One copy for everyone: ws keeps a reference until it is written.
    const message = Buffer.from(writer.write(seq, timeUs))
    for (const socket of server.clients) socket.send(message, { binary: false })
  },
  waitingBytes() {
    let most = 0
    for (const socket of server.clients) most = Math.max(most, socket.bufferedAmount)
    return most
  },
  maxWaitingBytes: () => maxWaitingBytesOf(server.clients.size),
  connectionCount: () => server.clients.size,
  receivedCount: () => receivedCount,
})
