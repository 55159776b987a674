// The client of WebMQ by lines of JSON, as an example for a client of another system: README.md.
//
// Arguments: listen <url> <channel>…, or publish <url>. It ends when its standard input does.
import { createInterface } from 'node:readline'
import { WebMQClient } from 'webmq-client'
import { WebSocket } from 'ws'

const [what, url, ...channels] = process.argv.slice(2)
const client = new WebMQClient({ url, WebSocket })
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`)
const lines = createInterface(process.stdin)
lines.once('close', () => process.exit())

if (what === 'listen') {
  const subscriptions = channels.map((channel) =>
    client.listen(channel, ({ number }) => say({ what: 'message', channel, number })),
  )
  await Promise.all(subscriptions.map(({ ready }) => ready))
  for (const [index, subscription] of subscriptions.entries()) {
    const channel = channels[index]
    subscription.on('gap', () => say({ what: 'told', channel, isRecovered: false }))
    subscription.on('ready', ({ recovered }) => {
      if (recovered) say({ what: 'told', channel, isRecovered: true })
    })
  }
  say({ what: 'live' })
} else {
  lines.on('line', async (line) => {
    const { channel, number } = JSON.parse(line)
    try {
      await client.publish(channel, { number })
      say({ outcome: 'acked' })
    } catch (error) {
      say({ outcome: error.retryable ? 'unknown' : 'refused' })
    }
  })
}
