import { setup } from 'webmq-client'
import { openStream } from 'webmq-client/stream'

setup({ url: 'ws://127.0.0.1:8080/ws' })

const words = 'a stream is a message that grows until it ends'.split(' ')
const writer = await openStream('chat.42.answer')
for (const word of words) {
  await writer.append(`${word} `)
  await new Promise((resolve) => setTimeout(resolve, 700))
}
await writer.end()
