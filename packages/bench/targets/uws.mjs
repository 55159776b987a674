// uWebSockets.js with its own publish/subscribe, as an application on it would use it.

import { isTokenValid } from '../dist/targets/json-web-token.js'
import { loadUws } from '../dist/targets/load-uws.js'
import { serveTarget, targetSettings } from '../dist/targets/serve-target.js'
import { maxWaitingBytesOf } from '../dist/targets/target-server.js'

const { jwtSecret, compression, isLossless, tls, uwsPackage } = targetSettings()
const { uws: uWS, version } = loadUws(uwsPackage)
/** The default is 64 KiB, and uws silently drops messages beyond it. */
const maxBackpressure = isLossless === true ? 16 * 1024 * 1024 : 64 * 1024
const sockets = new Set()
let receivedCount = 0

const app = tls === undefined ? uWS.App() : uWS.SSLApp({ cert_file_name: tls.certFile, key_file_name: tls.keyFile })
app.ws('/*', {
  compression: compression === true ? uWS.SHARED_COMPRESSOR | uWS.SHARED_DECOMPRESSOR : uWS.DISABLED,
  maxPayloadLength: 1024 * 1024,
  idleTimeout: 0,
  sendPingsAutomatically: false,
  maxBackpressure,
  upgrade(response, request, context) {
    const token = request.getHeader('authorization').slice('Bearer '.length)
    if (jwtSecret !== undefined && !isTokenValid(jwtSecret, token, Date.now() / 1_000)) {
      response.writeStatus('401 Unauthorized').end()
      return
    }
    response.upgrade(
      {},
      request.getHeader('sec-websocket-key'),
      request.getHeader('sec-websocket-protocol'),
      request.getHeader('sec-websocket-extensions'),
      context,
    )
  },
  open(socket) {
    sockets.add(socket)
    socket.subscribe('tick')
    socket.send('ready')
  },
  message(socket, message) {
    receivedCount++
    if (message.byteLength === 4) socket.send('pong')
  },
  close(socket) {
    sockets.delete(socket)
  },
})
const listening = await new Promise((resolve) => app.listen('127.0.0.1', 0, resolve))
// Builds from the npm registry name this differently.
const port = (uWS.us_socket_local_port ?? uWS.getSocketPort)(listening)

serveTarget({
  port,
  version,
  publish(writer, seq, timeUs) {
    app.publish('tick', writer.write(seq, timeUs), false)
  },
  // A flood: one write per connection for the whole batch. Its own publish makes one for every 32 messages.
  publishBatch(writers, firstSeq, timeUs) {
    const batch = writers.map((writer, place) => writer.write(firstSeq + place, timeUs))
    for (const socket of sockets) {
      socket.cork(() => {
        for (const message of batch) socket.send(message, false)
      })
    }
    return Promise.resolve()
  },
  waitingBytes() {
    let most = 0
    for (const socket of sockets) most = Math.max(most, socket.getBufferedAmount())
    return most
  },
  maxWaitingBytes: () => Math.min(maxBackpressure, maxWaitingBytesOf(sockets.size)) / 2,
  connectionCount: () => sockets.size,
  receivedCount: () => receivedCount,
})
