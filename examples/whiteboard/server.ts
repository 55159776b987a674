import { createServer } from 'webmq-server'

await createServer({ port: Number(process.env.PORT ?? 8080), history: ['board.#=1000,1h'] }).start()
