import { createServer } from 'webmq-server'
import { systemOptions } from './gateway/system'

// Pages listen, and cannot publish: every event comes from a gateway.
const grants = [{ keys: ['auction.*.bid', 'auction.items'], allow: ['listen'] }] as const

await createServer({
  ...systemOptions(process.env),
  port: Number(process.env.PORT ?? 8080),
  hooks: { connect: () => ({ grants }) },
}).start()
