import { createServer } from 'webmq-server'

await createServer({ port: Number(process.env.PORT ?? 8080), history: ['assistant.#=10000,1d'] }).start()
