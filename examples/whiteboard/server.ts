import { createServer } from 'webmq-server'

const server = createServer({
  port: Number(process.env.PORT ?? 8080),
  history: ['board.*.updates=1000,1h'],
  retain: ['board.*.snapshot.#'],
})
await server.start()
