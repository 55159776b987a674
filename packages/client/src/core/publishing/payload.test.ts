import { describe, expect, it, onTestFinished } from 'vitest'
import { createTestClient } from '../../dev/testing/index.js'
import { decodePayload, encodePayload } from './payload.js'

class Point {
  readonly x = 1
  readonly y = 2
}

const cycle: { self?: unknown } = {}
cycle.self = { again: [cycle] }

/** Values that JSON cannot say arrived as `{}`, as `null`, or without their members. */
describe('a payload that JSON cannot say', () => {
  it.each<[string, unknown, string]>([
    ['a Blob', new Blob(['a']), 'payload is a Blob'],
    ['a promise that nobody awaited', Promise.resolve(1), 'payload is a Promise: await it'],
    [
      'a Map',
      { users: [{ seen: new Map([[1, 2]]) }] },
      'payload.users[0].seen is a Map: convert it to an object or an array',
    ],
    ['a Set', [new Set([1])], 'payload[0] is a Set'],
    ['an Error', { error: new Error('x') }, 'payload.error is an Error'],
    ['a function', { a: 1, onClick: () => 1 }, 'payload.onClick is a function'],
    ['a symbol', { a: 1, b: Symbol('b') }, 'payload.b is a symbol'],
    ['a bigint', { a: 1n }, 'payload.a is a bigint: convert it, or use the codec of webmq-client/msgpack'],
    ['nested bytes', { image: new Uint8Array(2) }, 'payload.image is a Uint8Array'],
    ['a nested buffer', { image: new ArrayBuffer(2) }, 'payload.image is an ArrayBuffer'],
    ['not a number', { a: Number.NaN }, 'payload.a is NaN'],
    ['infinity', [1, Number.NEGATIVE_INFINITY], 'payload[1] is -Infinity'],
    ['a cycle', { cycle }, 'payload.cycle.self.again[0] contains itself'],
    // It threw a RangeError: whoever looked for the defect had no room on the stack either. Then it took a third of a second.
    ['many levels', nested(100_000), `payload${'[0]'.repeat(65)} is nested too deeply`],
    ['a bigint below many levels', nested(4_700, 1n), 'payload'],
    ['undefined', undefined, 'payload is undefined'],
    ['a response', { response: new Response('x') }, 'payload.response is a Response'],
  ])('is refused, with its place: %s', async (_what, payload, detail) => {
    const { client, server } = createTestClient()
    // Its heartbeat would set timers in the tests that follow.
    onTestFinished(() => client.close({ flushMs: 0 }))
    await expect(client.publish('a', payload)).rejects.toMatchObject({
      code: 'E_PAYLOAD_INVALID',
      message: expect.stringContaining(`: ${detail}`),
    })
    await client.publish('a', 1)
    expect(server.received).toHaveLength(1)
  })

  it.each<[string, unknown, string]>([
    ['members that are undefined', { a: undefined, b: 1 }, '{"b":1}'],
    ['dates', { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    ['instances with members', new Point(), '{"x":1,"y":2}'],
    ['what says itself how', { map: Object.assign(new Map(), { toJSON: () => 1 }) }, '{"map":1}'],
    ['empty objects', [{}, Object.create(null), []], '[{},{},[]]'],
    ['boxed values', [Object(1), Object('a')], '[1,"a"]'],
    ['the same object twice', [[1], [1]].fill([2]), '[[2],[2]]'],
    ['inherited members', Object.assign(Object.create({ method: () => 1 }), { a: 1 }), '{"a":1}'],
    ['null', null, 'null'],
  ])('is not: %s', (_what, payload, json) => {
    expect(encodePayload(payload, undefined)).toBe(json)
  })

  it('is not bytes, in any view', () => {
    const bytes = new Uint8Array([1, 2, 3, 4])
    for (const view of [bytes, bytes.buffer, new DataView(bytes.buffer), new Uint16Array(bytes.buffer)]) {
      expect(encodePayload(view, undefined)).toEqual(bytes)
    }
    expect(encodePayload(bytes, undefined)).not.toBe(bytes)
  })
})

function nested(levels: number, innermost: unknown = 1): unknown {
  let value = innermost
  for (let level = 0; level < levels; level++) value = [value]
  return value
}

// Symptom: an id of 64 bits lost digits, and no codec could help. Cause: the text of a message was read by JSON.parse alone.
it('reads and writes texts by a codec that can', () => {
  const texts = {
    encode: (value: unknown) => `${value}`,
    decode: (bytes: Uint8Array) => bytes,
    parse: (text: string) => `<${text}>`,
  }
  expect(encodePayload('1724442618569203714', texts)).toBe('1724442618569203714')
  expect(decodePayload('1724442618569203714', texts)).toBe('<1724442618569203714>')
  const { parse: _, ...bytesAlone } = texts
  expect(decodePayload('[1]', bytesAlone)).toEqual([1])
})
