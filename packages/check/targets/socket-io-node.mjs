// A node of Socket.IO as its documents build it: connection state recovery, and the Redis streams adapter between nodes.
// Its back end publishes by HTTP. The answer says that `emit` was called; Socket.IO has no confirmation of the adapter.
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { createAdapter } from '@socket.io/redis-streams-adapter'
import { createClient } from 'redis'
import { Server } from 'socket.io'

// Without Redis there is one node, with the adapter in its memory.
const [port, streamName, redisUrl] = process.argv.slice(2)

async function adapterOver(url) {
  const redis = createClient({ url })
  redis.on('error', (error) => console.error(error))
  await redis.connect()
  return createAdapter(redis, { streamName, sessionKeyPrefix: `${streamName}:session:`, maxLen: 100_000 })
}

const adapter = redisUrl === undefined ? {} : { adapter: await adapterOver(redisUrl) }

const http = createServer(async (request, response) => {
  if (request.url === '/publish') {
    const { channel, payload } = await json(request)
    io.to(channel).emit('message', channel, payload)
  }
  response.setHeader('content-type', 'application/json').end('{}')
})
const io = new Server(http, {
  ...adapter,
  connectionStateRecovery: { maxDisconnectionDuration: 120_000 },
})
io.on('connection', (socket) => {
  if (!socket.recovered) socket.join(socket.handshake.auth.channels)
})
http.listen(Number(port), '127.0.0.1')

process.once('SIGTERM', async () => {
  await io.close()
  // What is written to Redis before is sent first: the sessions of the clients.
  await new Promise((resolve) => setTimeout(resolve, 300))
  process.exit()
})
