// Fuzzes what reads the bytes of brokers and of other nodes: envelopes, bundles, attributes, batches of a Redis log, messages
// of RabbitMQ and JetStream, frames of the mesh, messages between nodes.
// Usage: npx tsc -b && node packages/server/fuzz/brokers.mjs [--seconds 60] [--seed N]
import assert from 'node:assert/strict'
import { fingerprintOfStored, streamMessageOf } from '../../broker-nats/dist/stream-message.js'
import { encodeEpochRecord, encodeLogHeader, LOG_HEADER, recordOf } from '../../broker-rabbitmq/dist/log-record.js'
import { deliveryOf, encodeMessageId } from '../../broker-rabbitmq/dist/message-properties.js'
import { decodeLogBatch, envelopesOf } from '../../broker-redis/dist/log-reader.js'
import { fuzz, mutate, randomBytes } from '../../client/fuzz/fuzz.mjs'
import {
  decodeSequence,
  decodeStart,
  decodeStarted,
  encodeFrame,
  encodeStart,
} from '../dist/adapters/brokers/mesh/frames.js'
import { FrameReader } from '../dist/adapters/brokers/mesh/wire.js'
import { decodeBundle, encodeBundle } from '../dist/adapters/brokers/remote/bundle.js'
import { decodeEnvelope, encodeEnvelope } from '../dist/adapters/brokers/remote/envelope.js'
import { Receiver } from '../dist/adapters/brokers/remote/receiver.js'
import { decodeContent, decodePart, encodeContent, encodePart } from '../dist/features/nodes/node-message.js'
import { decodeAttributes, encodeAttributes } from '../dist/kernel/ports/attributes.js'

const NODE = '0123456789abcdef'
const MAX_FRAME_BYTES = 4_096
const ATTRIBUTES = {
  userId: 'ann',
  timeMs: 1_800_000_000_000,
  id: 'x'.repeat(22),
  copyOf: 7,
  copyFingerprint: 9,
  key: 'a.b',
}
const MESSAGES = [
  { key: 'a.b', sequence: 1, payload: Buffer.from('{}'), isBinary: false },
  { key: 'a.b', sequence: 2 ** 40, payload: Buffer.from([0, 255]), isBinary: true, publisher: 7, messageId: 'id-1' },
  { key: 'ü', sequence: 3, payload: Buffer.from('[1]'), isBinary: false, attributes: ATTRIBUTES },
  { key: '$webmq.ephemeral', sequence: 4, payload: Buffer.from('1'), isBinary: false, attributes: { key: 'a' } },
  { key: 'a', sequence: 5, payload: encodeBundle(bundle(3), 0, 3), isBinary: true, isBundle: true },
]
const ENVELOPES = MESSAGES.flatMap((message) => [
  encodeEnvelope(NODE, message),
  encodeEnvelope(NODE, message, message.key),
  encodeEnvelope(NODE, { ...message, sequence: 0 }, message.key),
])
const FRAMES = [
  encodeFrame(16, Buffer.from('\u0003a.b{}')),
  encodeFrame(18, Buffer.from('\u0002id\u0003a.b{}')),
  encodeFrame(4, encodeStart({ isResumed: true, received: 5, generation: 2 ** 33, streamId: NODE })),
  encodeFrame(33),
]
const LOG_BATCHES = [
  Buffer.from(`epoch-1 5 1800000000000\n`),
  Buffer.concat([Buffer.from('e 1 2\n'), ...ENVELOPES.flatMap((envelope) => [lengthOf(envelope), envelope])]),
]
const NODE_MESSAGES = [
  encodePart('node-1', encodeContent('nodes', 'hello', '{"a":1}', Buffer.from('x')), false),
  encodePart('node-1', encodeContent('table', 'put', '{}'), true, 3),
]
const EPOCH_RECORD = encodeEpochRecord({ nonce: 'n', timeMs: 5, epoch: 'epoch-1', candidate: 'epoch-2' })
const REPLIES = ['$JS.ACK.S.c.1.5.6.1800000000000000000.7', '$JS.ACK.d.a.S.c.1.5.6.1800000000000000000.7.x']
const TEXTS = [...REPLIES, encodeLogHeader('epoch-1', 1_800_000_000_000), encodeMessageId(NODE, MESSAGES[1])]
const INTERESTING = [
  ...[[0], [0xff], [0, 0, 0, 0], [0xff, 0xff, 0xff, 0xff], [0x40], [0x7f], [0, 0x40], [0x10], [0x0a], [0x2e]],
  ...[1, 2, 3, 4, 5, 6, 7].map((tag) => [tag, 4, 1, 2, 3, 4]),
  ...['{', '"', '#', '*', '$', ' ', '-1', '99999999999999999999', 'webmq-', '\ud83d\ude42'].map((text) =>
    Buffer.from(text),
  ),
]

const receiver = new Receiver({ dedupeWindowMs: 1_000, dedupeMaxIds: 50 })
const delivered = []
receiver.start(NODE, { deliver: (message) => delivered.push(message) > 0, refused: () => undefined })

/** A view of `bytes`, not something beside it. */
function assertView(part, bytes) {
  assert.equal(part.buffer, bytes.buffer)
  assert.ok(part.byteOffset >= bytes.byteOffset)
  assert.ok(part.byteOffset + part.length <= bytes.byteOffset + bytes.length)
}

function checkEnvelope(make, random) {
  const bytes = make(ENVELOPES)
  const key = random.pick([undefined, 'told.key'])
  const delivery = decodeEnvelope(key, bytes)
  if (delivery === undefined) return ['envelope: refused']
  assertView(delivery.payload, bytes)
  assert.ok(delivery.key.length > 0)
  delivered.length = 0
  receiver.deliver(delivery)
  for (const message of delivered) assertView(message.payload, bytes)
  const { source } = delivery
  if (source === undefined) return ['envelope: of another program']
  // What was read as text may have had bytes that are no UTF-8: they come longer.
  if (JSON.stringify(delivery).includes('\ufffd')) return ['envelope: without UTF-8']
  const message = { ...delivery, ...source }
  assert.deepEqual(decodeEnvelope(undefined, encodeEnvelope(source.node, message, delivery.key)), delivery)
  return [`envelope: ${source.isBundle ? 'bundle' : 'message'}`]
}

function checkBundle(make) {
  const bytes = make([MESSAGES[4].payload, encodeBundle(bundle(1), 0, 1)])
  const messages = decodeBundle('a', bytes)
  if (messages === undefined) return ['bundle: refused']
  for (const { payload } of messages) assertView(payload, bytes)
  assert.deepEqual(decodeBundle('a', encodeBundle(messages, 0, messages.length)), messages)
  return ['bundle']
}

function checkAttributes(make) {
  const bytes = make([encodeAttributes(ATTRIBUTES), encodeAttributes({ isEphemeral: true }), encodeAttributes({})])
  const attributes = decodeAttributes(bytes)
  if (attributes === undefined) return ['attributes: refused']
  if (Object.values(attributes).some((value) => typeof value === 'string' && value.includes('\ufffd')))
    return ['attributes: without UTF-8']
  assert.deepEqual(decodeAttributes(encodeAttributes(attributes)), attributes)
  return ['attributes']
}

function checkLogBatch(make) {
  const bytes = make(LOG_BATCHES)
  const batch = decodeLogBatch(bytes)
  if (batch === undefined) return ['batch: refused']
  for (const envelope of envelopesOf(batch)) assertView(envelope, bytes)
  return ['batch']
}

function checkNodeMessage(make) {
  const part = decodePart(make(NODE_MESSAGES))
  if (part === undefined) return ['part: refused']
  const { node, content, hasMore, index, format } = part
  if (format === NODE_MESSAGES[0][0]) assert.deepEqual(decodePart(encodePart(node, content, hasMore, index)), part)
  const message = decodeContent(node, content)
  if (message === undefined) return ['part']
  assert.ok(typeof message.fields === 'object' && message.fields !== null)
  return ['node message']
}

function checkMeshFrames(make, random) {
  const bytes = Buffer.concat(Array.from({ length: 1 + random.below(3) }, () => make(FRAMES)))
  const whole = framesOf([bytes])
  const pieces = []
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + random.below(random.pick([3, 20]))
    pieces.push(bytes.subarray(at, end))
    at = end
  }
  assert.deepEqual(framesOf(pieces), whole)
  return [whole.error === undefined ? 'frames' : 'frames: refused']
}

function framesOf(pieces) {
  const frames = []
  let error
  const reader = new FrameReader(MAX_FRAME_BYTES, (type, bytes, start, end) => {
    assert.ok(start <= end && end <= bytes.length)
    const body = Buffer.from(bytes.subarray(start, end))
    for (const decode of [decodeStart, decodeStarted, (body) => decodeSequence(body, 0)]) attempt(() => decode(body))
    frames.push([type, body])
  })
  for (const piece of pieces) {
    error = attempt(() => reader.push(piece))
    if (error !== undefined) break
  }
  return { frames, error }
}

function attempt(act) {
  try {
    act()
    return undefined
  } catch (error) {
    assert.ok(error instanceof RangeError, String(error))
    return error.constructor.name
  }
}

function checkRabbitmq(make, random) {
  const text = () => make(TEXTS.map((text) => Buffer.from(text))).toString()
  const value = () => random.pick([undefined, text(), 5, Number.NaN, null, {}, make(ENVELOPES), text()])
  const inBase64 = () => make([encodeAttributes(ATTRIBUTES)]).toString('base64')
  const key = random.pick(['a.b', 'ü', '', '*', text()])
  const fields = { exchange: random.pick(['', 'webmq']), routingKey: key }
  const properties = {
    messageId: random.pick([encodeMessageId(NODE, { ...MESSAGES[1], key }), value()]),
    contentType: random.pick(['application/json', 'application/octet-stream', undefined, value()]),
    contentEncoding: random.pick([undefined, 'utf-8', value()]),
    type: random.pick(['webmq-mark', undefined, value()]),
    timestamp: value(),
    headers: random.pick([
      undefined,
      {
        'x-stream-offset': random.pick([5, value()]),
        [LOG_HEADER]: random.pick([TEXTS[2], value()]),
        'webmq-attributes': random.pick([undefined, make([encodeAttributes(ATTRIBUTES)]), inBase64(), value()]),
        'webmq-attributes-text': random.pick([undefined, inBase64(), value()]),
      },
    ]),
  }
  const message = { fields, properties, content: make([EPOCH_RECORD, Buffer.from('{}')]) }
  const delivery = deliveryOf(message)
  if (delivery?.source !== undefined) assert.ok(Number.isSafeInteger(delivery.source.sequence))
  const record = recordOf(message)
  if (record === undefined) return ['record: refused']
  assert.ok(Number.isInteger(record.fingerprint) && record.fingerprint > 0)
  return [
    `record: ${record.epochRecord !== undefined ? 'epoch' : record.delivery !== undefined ? 'message' : 'neither'}`,
  ]
}

function checkJetStream(make) {
  const reply = make(REPLIES.map((text) => Buffer.from(text))).toString()
  let message
  try {
    message = streamMessageOf({ subject: 'a', data: Buffer.alloc(0), reply })
  } catch (error) {
    assert.equal(error.message, 'a message of the stream without its sequence')
    return ['stream: refused']
  }
  assert.ok(
    [message.sequence, message.deliverySequence].every((count) => Number.isInteger(count)),
    reply,
  )
  assert.match(message.time, /^\d{19}$/)
  assert.ok(!Number.isNaN(message.pendingCount), reply)
  assert.ok(Number.isInteger(fingerprintOfStored(message.time)))
  return ['stream message']
}

const CHECKS = [
  ...[checkEnvelope, checkEnvelope, checkBundle, checkAttributes, checkLogBatch],
  ...[checkNodeMessage, checkMeshFrames, checkRabbitmq, checkJetStream],
]

function bundle(count) {
  return Array.from({ length: count }, (_, index) => ({
    key: 'a',
    payload: Buffer.from('x'.repeat(index)),
    isBinary: index === 1,
  }))
}

function lengthOf(bytes) {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return length
}

await fuzz('brokers', (random) => {
  const make = (corpus) =>
    Buffer.from(random.below(30) === 0 ? randomBytes(random) : mutate(random, corpus, INTERESTING))
  const check = random.pick(CHECKS)
  return check(make, random)
})
