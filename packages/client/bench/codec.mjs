// Cost of the codec's hot paths: the best of many short rounds, in nanoseconds per call.
// Usage: npx tsc -b packages/client && node packages/client/bench/codec.mjs
import {
  contains,
  decodeClientMessage,
  decodeServerMessage,
  encodeClientMessage,
  encodeMessageFrame,
  matches,
} from '../dist/protocol/index.js'

const ROUNDS = 40
const CALLS = 50_000
const encoder = new TextEncoder()

/** Keeps results alive, so that no call can be optimised away. */
let sink = 0

function measure(name, call) {
  let best = Infinity
  for (let round = 0; round < ROUNDS; round++) {
    const start = process.hrtime.bigint()
    for (let index = 0; index < CALLS; index++) sink += call(index)
    best = Math.min(best, Number(process.hrtime.bigint() - start) / CALLS)
  }
  console.log(`${best.toFixed(0).padStart(6)} ns  ${name}`)
}

const payload = encoder.encode(JSON.stringify({ text: 'x'.repeat(100) }))
const publish = (header) => encoder.encode(`publish ${header}\n{"text":"${'x'.repeat(100)}"}`)
const plain = publish('17 chat.42.message')
const withId = publish('17 chat.42.message id=0123456789abcdefghijk')
const unacknowledged = publish('- chat.42.message')
const manyKeys = Array.from({ length: 1_000 }, (_, index) => publish(`17 chat.${index}.message`))
const coldKeys = Array.from({ length: 50_000 }, (_, index) => publish(`17 chat.${index}.message`))
const unicode = publish('17 räume.42.nachricht')
const text = new TextDecoder().decode(encodeMessageFrame('chat.42.message', 'k3f:1234567', false, payload))

measure('decodeClientMessage: publish, same key', () => decodeClientMessage(plain, false).key.length)
measure('decodeClientMessage: publish with message id', () => decodeClientMessage(withId, false).key.length)
measure('decodeClientMessage: publish, no acknowledgement', () => decodeClientMessage(unacknowledged, false).key.length)
measure(
  'decodeClientMessage: publish, 1,000 keys',
  (index) => decodeClientMessage(manyKeys[index % 1_000], false).key.length,
)
measure('decodeClientMessage: publish, 50,000 keys', (index) => decodeClientMessage(coldKeys[index], false).key.length)
measure('decodeClientMessage: publish, key not ASCII', () => decodeClientMessage(unicode, false).key.length)
measure('encodeMessageFrame', () => encodeMessageFrame('chat.42.message', 'k3f:1234567', false, payload).length)
measure(
  'encodeMessageFrame, key not ASCII',
  () => encodeMessageFrame('räume.42.nachricht', 'k3f:1234567', false, payload).length,
)
measure('decodeServerMessage: message', () => decodeServerMessage(text).key.length)
measure(
  'encodeClientMessage: publish',
  () => encodeClientMessage({ verb: 'publish', id: '17', key: 'chat.42.message', echo: true, payload: '{}' }).length,
)
measure('matches: chat.*.message', () => Number(matches('chat.*.message', 'chat.42.message')))
measure('matches: #.message', () => Number(matches('#.message', 'chat.42.message')))
measure('contains: chat.*.#, chat.42.message', () => Number(contains('chat.*.#', 'chat.42.message')))
if (sink === 0) throw new Error('nothing was computed')
