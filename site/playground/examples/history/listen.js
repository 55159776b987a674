import { setup } from 'webmq-client'
import { history } from 'webmq-client/parts'

setup({ url: 'ws://127.0.0.1:8080/ws' })

// Pages back, three messages at a time.
// Lose the log, and the page says so.
let before
setInterval(async () => {
  const page = await history('chat.42.message', { before, limit: 3 })
  console.log(page.messages.map(({ payload }) => payload.text).join(', '), page.gap ?? '')
  before = page.messages[0]?.position
}, 2000)
