import { createServer } from 'webmq-server'

await createServer({ port: Number(process.env.PORT ?? 8080) }).start()
