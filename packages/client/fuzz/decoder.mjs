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
import { fuzz, mutate, randomBytes } from './fuzz.mjs'

const encoder = new TextEncoder()
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
].map((text) => encoder.encode(text))
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const corpus = ['client-messages', 'server-messages'].flatMap((name) => {
  const { valid, invalid } = JSON.parse(readFileSync(new URL(`../vectors/${name}.json`, import.meta.url), 'utf8'))
  return [...valid, ...invalid].map(({ text, base64 }) =>
    base64 === undefined ? encoder.encode(text) : Buffer.from(base64, 'base64'),
  )
})

await fuzz('decoder', (random) => {
  const bytes = random.below(20) === 0 ? randomBytes(random) : mutate(random, corpus, INTERESTING)
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
  // Binary ones have encoders of their own.
  if (!(message.payload instanceof Uint8Array)) {
    // The decoder trusts the server more than the encoder does its caller: an id may have any characters.
    const text = attempt(() => encodeServerMessage(message), data)
    if (text instanceof WebMQError) return `${kind}: ${message.verb} that no server writes`
    assert.deepEqual(asJson(decodeServerMessage(text)), asJson(message), `reads ${show(data)} in two ways`)
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

function bytesOf(encoded) {
  return typeof encoded === 'string' ? encoder.encode(encoded) : encoded
}

/** Payloads compare by content: a Buffer and a Uint8Array are the same here. No encoder of ours writes a trace. */
function plain({ trace, ...message }) {
  return message.payload === undefined ? message : { ...message, payload: [...message.payload] }
}

/** As JSON has it, which knows no infinite number. A message that ends its header with a space has an empty text for meta. */
function asJson(message) {
  return JSON.parse(JSON.stringify(message.meta === '' ? { ...message, meta: undefined } : message))
}

function show(data) {
  return typeof data === 'string' ? JSON.stringify(data) : `base64 ${Buffer.from(data).toString('base64')}`
}
