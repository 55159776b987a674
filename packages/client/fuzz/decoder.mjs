// Fuzzes the decoders of both directions, from the vectors by mutation and from nothing.
// Usage: npx tsc -b packages/client && node packages/client/fuzz/decoder.mjs [--seconds 60] [--seed N]
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import {
  decodeClientMessage,
  decodeServerMessage,
  encodeClientMessage,
  encodeMessageFrame,
  encodeServerMessage,
  isKey,
  WebMQError,
} from '../dist/protocol/index.js'
import { fuzz } from './fuzz.mjs'

const INTERESTING = [
  '\n',
  ' ',
  '  ',
  '-',
  '=',
  '.',
  '#',
  '*',
  '\r',
  '\t',
  '\0',
  '\ufeff',
  '\u{1f642}',
  'id=',
  ' noecho',
  ' since=',
  ' last=',
  ' rewind=',
  ' limit=',
  ' reverse',
  ' more',
  ' position=',
  ' replay',
  ' op=enter',
  ' op=get',
  ' member=m',
  ' x=y',
  '{',
  '"',
  '9999999999999999',
  'publish ',
  'message ',
]
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const corpus = ['client-messages', 'server-messages'].flatMap((name) => {
  const { valid, invalid } = JSON.parse(readFileSync(new URL(`../vectors/${name}.json`, import.meta.url), 'utf8'))
  return [...valid, ...invalid].map(({ text, base64 }) =>
    base64 === undefined ? encoder.encode(text) : Buffer.from(base64, 'base64'),
  )
})

fuzz('decoder', (random) => {
  const bytes = random.below(20) === 0 ? randomBytes(random) : mutate(random, random.pick(corpus))
  // Node passes Buffers, browsers plain arrays.
  const data = random.below(2) === 0 ? Buffer.from(bytes) : Uint8Array.from(bytes)
  return [checkClientMessage(data), checkServerMessage(data), checkServerMessage(decoder.decode(data))]
})

function checkClientMessage(data) {
  const message = attempt(() => decodeClientMessage(data, true), data)
  if (message instanceof WebMQError) return `client message: ${message.code}`
  const again = decodeClientMessage(bytesOf(encodeClientMessage(message)), true)
  assert.deepEqual(plain(again), plain(message), `reads ${show(data)} in two ways`)
  if (message.verb === 'publish') {
    assert.ok(isKey(message.key), `takes ${show(data)} for a publish to a key`)
    const frame = encodeMessageFrame(message.key, message.messageId, !message.echo, message.payload)
    const delivered = decodeServerMessage(frame)
    assert.equal(delivered.key, message.key)
    assert.equal(delivered.replayed, !message.echo)
    assert.deepEqual([...delivered.payload], [...message.payload])
  }
  return `client message: ${message.verb}`
}

function checkServerMessage(data) {
  const kind = typeof data === 'string' ? 'server text' : 'server bytes'
  const message = attempt(() => decodeServerMessage(data), data)
  if (message instanceof WebMQError) return `${kind}: ${message.code}`
  if (message.verb !== 'message' || typeof message.payload === 'string') {
    const again = decodeServerMessage(encodeServerMessage(message))
    assert.deepEqual(again, message, `reads ${show(data)} in two ways`)
  }
  return `${kind}: ${message.verb}`
}

function attempt(decode, data) {
  try {
    return decode()
  } catch (error) {
    if (error instanceof WebMQError) return error
    throw new Error(`throws something else for ${show(data)}`, { cause: error })
  }
}

function mutate(random, original) {
  let bytes = [...original]
  for (let count = random.below(5); count > 0; count--) {
    const at = random.below(bytes.length + 1)
    const kind = random.below(6)
    if (kind === 0) bytes.splice(at, 1 + random.below(4))
    else if (kind === 1) bytes.splice(at, 0, ...encoder.encode(random.pick(INTERESTING)))
    else if (kind === 2) bytes.splice(at, 1, random.below(256))
    else if (kind === 3) bytes.splice(at, 1, ...encoder.encode(random.pick(INTERESTING)))
    else if (kind === 4) bytes.splice(at, 0, ...bytes.slice(random.below(bytes.length + 1)).slice(0, 400))
    else bytes = [...bytes.slice(0, at), ...random.pick(corpus).subarray(random.below(40))]
  }
  return bytes
}

function randomBytes(random) {
  return Array.from({ length: random.below(random.below(10) === 0 ? 3_000 : 60) }, () => random.below(256))
}

function bytesOf(encoded) {
  return typeof encoded === 'string' ? encoder.encode(encoded) : encoded
}

/** Payloads compare by content: a Buffer and a Uint8Array are the same here. */
function plain(message) {
  return message.payload === undefined ? message : { ...message, payload: [...message.payload] }
}

function show(data) {
  return typeof data === 'string' ? JSON.stringify(data) : `base64 ${Buffer.from(data).toString('base64')}`
}
