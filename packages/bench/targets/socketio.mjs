// Socket.IO over WebSocket alone: `io.emit` to everyone.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { Server } from 'socket.io'
import { installedVersion } from '../dist/targets/installed-version.js'
import { isTokenValid } from '../dist/targets/json-web-token.js'
import { serveTarget, targetSettings } from '../dist/targets/serve-target.js'
import { maxWaitingBytesOf } from '../dist/targets/target-server.js'

const { jwtSecret, compression, tls, recovery } = targetSettings()
let receivedCount = 0

const http =
  tls === undefined
    ? createServer()
    : createHttpsServer({ cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) })
const io = new Server(http, {
  transports: ['websocket'],
  perMessageDeflate: compression === true,
  ...(recovery === true ? { connectionStateRecovery: {} } : {}),
  allowRequest: (request, done) => {
    const token = (request.headers.authorization ?? '').slice('Bearer '.length)
    done(null, jwtSecret === undefined || isTokenValid(jwtSecret, token, Date.now() / 1_000))
  },
})
io.on('connection', (socket) => {
  socket.on('in', () => {
    receivedCount++
  })
  socket.on('join', (room) => {
    socket.join(room)
    socket.emit('joined')
  })
  socket.on('ping', () => {
    receivedCount++
    socket.emit('pong')
  })
})
await new Promise((resolve) => http.listen(0, '127.0.0.1', resolve))

serveTarget({
  port: http.address().port,
  version: installedVersion('socket.io'),
  publish(writer, seq, timeUs, room) {
    const to = room === undefined ? io : io.to(room)
    to.emit('tick', writer.object(seq, timeUs))
  },
  waitingBytes() {
    let most = 0
    for (const { conn } of io.of('/').sockets.values()) {
      const queued = conn.writeBuffer.reduce((sum, packet) => sum + (packet.data?.length ?? 0), 0)
      most = Math.max(most, queued + (conn.transport.socket?.bufferedAmount ?? 0))
    }
    return most
  },
  maxWaitingBytes: () => maxWaitingBytesOf(io.engine.clientsCount),
  connectionCount: () => io.engine.clientsCount,
  receivedCount: () => receivedCount,
})
