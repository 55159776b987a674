import { createServer } from 'webmq-server'

await createServer({ port: Number(process.env.PORT ?? 8080), history: ['chat.*.message=1000,1d'] }).start()
