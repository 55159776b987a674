// Prints what a built checkout writes for other nodes and into brokers, and how it reads that:
// node test/skew/record-formats.mjs <checkout>. `formats.json` is what the older state prints.
import { existsSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const [, , root = '.'] = process.argv
/** In older checkouts the brokers stand in the server, and in those before without wings: their rooms in `dist` itself. */
const load = (file) => {
  const [, broker, name] = /^adapters\/brokers\/(rabbitmq)\/(.*)$/.exec(file) ?? []
  const paths = [
    ...(broker === undefined ? [] : [`broker-${broker}/dist/${name}`]),
    ...[file, file.slice(file.indexOf('/') + 1)].map((each) => `server/dist/${each}`),
  ].map((each) => path.resolve(root, 'packages', each))
  return import(pathToFileURL(paths.find((each) => existsSync(each)) ?? paths[0]))
}
const [envelope, bundle, attributes, nodes, frames, handshake, ids, records, fingerprints] = await Promise.all(
  [
    'adapters/brokers/remote/envelope.js',
    'adapters/brokers/remote/bundle.js',
    'kernel/ports/attributes.js',
    'features/nodes/node-message.js',
    'adapters/brokers/mesh/frames.js',
    'adapters/brokers/mesh/handshake.js',
    'adapters/brokers/rabbitmq/message-properties.js',
    'adapters/brokers/rabbitmq/log-record.js',
    'adapters/brokers/log/fingerprint.js',
  ].map(load),
)

const NODE = '0123456789abcdef'
const KEY = 'chat.42.message'
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const TIME_MS = 1_780_000_000_123
const text = Buffer.from('{"text":"hi"}')
const plain = { sequence: 7, key: KEY, payload: text, isBinary: false, isLogged: true }
const stamped = { userId: 'ada', timeMs: TIME_MS, id: 'A_-4567890123456789012', traceparent: TRACE }

const MESSAGES = {
  plain,
  binary: { ...plain, payload: Buffer.from([0, 255]), isBinary: true, sequence: 2 ** 40 },
  'with publisher and id': { ...plain, publisher: 4_000_000_000, messageId: 'order_1-2' },
  'with attributes': { ...plain, messageId: 'x', attributes: stamped },
  ephemeral: { ...plain, attributes: { isEphemeral: true } },
  copied: { ...plain, attributes: { key: 'prices.x', copyOf: 2 ** 50, copyFingerprint: 3_000_000_000 } },
}

const made = {
  meshVersion: frames.MESH_VERSION,
  meshFrames: frames.FRAME,
  meshRefusals: frames.REFUSAL,
  meshHello: handshake.encodeHello(
    { nodeId: NODE, namespace: 'webmq', rulesHash: 'abcdefghijklmnop', listenPort: 9_000 },
    Buffer.alloc(16, 7),
  ),
  nodeFormat: nodes.NODE_FORMAT,
  nodePart: nodes.encodePart(NODE, nodes.encodeContent('nodes', 'lease', '{"validMs":5}', text), true, 258),
  envelopes: named(MESSAGES, (message) => envelope.encodeEnvelope(NODE, message, KEY)),
  attributes: named(MESSAGES, ({ attributes: own }) => own && attributes.encodeAttributes(own)),
  bundle: bundle.encodeBundle([plain, { ...plain, isBinary: true }], 0, 2),
  amqpIds: named(MESSAGES, (message) => ids.encodeMessageId(NODE, message)),
  amqpLogHeader: records.encodeLogHeader('epoch-1', TIME_MS),
  amqpEpochRecord: records.encodeEpochRecord({ nonce: 'n', timeMs: TIME_MS, epoch: 'epoch-1', denies: 'epoch-0' }),
  fingerprints: {
    source: fingerprints.fingerprintOfSource({ node: NODE, sequence: 7 }, TIME_MS),
    foreign: fingerprints.fingerprintOfForeign({ key: KEY, messageId: 'm', payload: text, timeMs: TIME_MS }),
    time: fingerprints.fingerprintOfTime(1_780_000_000, 123),
    text: fingerprints.fingerprintOfText('n'),
    place: fingerprints.fingerprintOfPlace(3, TIME_MS),
  },
}

/** Of what another checkout has written, when it is given. */
const given = process.argv[3] === undefined ? bytesOf(made) : JSON.parse(process.argv[3])
const read = {
  nodePart: readPart(buffer(given.nodePart)),
  envelopes: named(given.envelopes, (hex) => envelope.decodeEnvelope(undefined, buffer(hex))),
  attributes: named(given.attributes, (hex) => hex && attributes.decodeAttributes(buffer(hex))),
  bundle: bundle.decodeBundle(KEY, buffer(given.bundle)),
  amqpIds: named(given.amqpIds, (id) => ids.decodeMessageId(id, KEY)),
  amqpMessage: records.recordOf({
    fields: { exchange: 'webmq', routingKey: KEY },
    properties: {
      messageId: given.amqpIds.plain,
      contentType: 'application/json',
      headers: { 'x-stream-offset': 9, 'webmq-log': given.amqpLogHeader },
    },
    content: text,
  }),
  amqpEpochRecord: records.recordOf({
    fields: { exchange: '', routingKey: 'webmq.log' },
    properties: { type: 'webmq-mark', headers: { 'x-stream-offset': 3 } },
    content: buffer(given.amqpEpochRecord),
  }),
}
process.stdout.write(`${JSON.stringify({ written: bytesOf(made), read: bytesOf(read) }, null, 2)}\n`)

function readPart(bytes) {
  const part = nodes.decodePart(bytes)
  return { ...part, message: nodes.decodeContent(part.node, part.content) }
}

function named(values, map) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]))
}

function buffer(hex) {
  return Buffer.from(hex, 'hex')
}

/** Bytes as hexadecimal text. */
function bytesOf(value) {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  if (Array.isArray(value)) return value.map(bytesOf)
  return typeof value === 'object' && value !== null ? named(value, bytesOf) : value
}
