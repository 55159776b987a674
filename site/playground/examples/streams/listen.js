import { setup } from 'webmq-client'
import { readStream } from 'webmq-client/stream'

setup({ url: 'ws://127.0.0.1:8080/ws' })

// Cut the network while it is written, and restore it:
// the text has no hole.
const reader = readStream('chat.42.answer')
let shown = ''
for await (const { text = '', isWhole } of reader) {
  shown = isWhole ? text : shown + text
  console.log(shown)
}
console.log(reader.status)
