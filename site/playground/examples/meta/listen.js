import { listen, setup } from 'webmq-client'

setup({ url: 'ws://127.0.0.1:8080/ws' })

listen(
  'chat.*.message',
  ({ text }, { userId, timeMs }) => console.log(`${userId}: ${text}, ${new Date(timeMs).toISOString()}`),
  { meta: true },
)
