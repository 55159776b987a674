import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import { FakeServer } from '../../../test/fake-server.js'
import type { WebMQServer } from './webmq-server.js'

let fake: FakeServer

beforeEach(async () => {
  fake = await FakeServer.start({ history: ['#=1000'] })
})
afterEach(() => fake.server.stop({ drainMs: 0 }))

type Call = (server: WebMQServer, value: never) => unknown

/** Every call that takes a key. */
const WITH_KEY: Readonly<Record<string, Call>> = {
  publish: (server, key) => server.publish(key, 1),
  publishBatch: (server, key) => server.publishBatch([{ key, payload: 1 }]),
  request: (server, key) => server.request(key, 1),
  history: (server, key) => server.history(key),
  presence: (server, key) => server.presence(key),
  stream: (server, key) => server.stream(key),
  readStream: (server, key) => server.readStream(key),
}
const NO_KEYS = ['', 'a.*', 'chat.user name', 'room.7\n{}', 'a\ud800', 'x'.repeat(256), 5, null, undefined, ['a'], {}]

async function outcomeOf(call: Call, value: unknown): Promise<unknown> {
  try {
    return ['no error', await call(fake.server, value as never)]
  } catch (error) {
    return error instanceof WebMQError ? error.code : error
  }
}

// Symptom: `stream('chat.user name')` was taken, and replays had messages of another key; a line break went into the header.
describe.each(Object.entries(WITH_KEY))('%s', (_, call) => {
  it.each(NO_KEYS.map((key) => [key]))('refuses the key %j', async (key) => {
    expect(await outcomeOf(call, key)).toBe('E_KEY_INVALID')
    expect((await fake.server.history('chat.user')).messages).toEqual([])
  })
})

it.each<[string, string, Call, unknown[]]>([
  ['a pattern', 'E_PATTERN_INVALID', (server, it) => server.listen(it, () => 0), ['a b', 'a#', '$x', 5, null, ['a']]],
  ['a pattern', 'E_PATTERN_INVALID', (server, it) => server.respond(it, () => 0), ['a b', 'a#', '$x', 5, null, ['a']]],
  ['a handler', 'E_OPTION_INVALID', (server, it) => server.listen('a', it), [undefined, null, 'f', {}]],
  ['a handler', 'E_OPTION_INVALID', (server, it) => server.respond('a', it), [undefined, null, 'f', {}]],
  [
    'a group',
    'E_OPTION_INVALID',
    (server, group) => server.listen('a', () => 0, { group }),
    [5, null, 'a b', '', ['g']],
  ],
  ['a group', 'E_OPTION_INVALID', (server, group) => server.respond('a', () => 0, { group }), [5, null, 'a b', '']],
  ['an id', 'E_MESSAGE_INVALID', (server, id) => server.publish('a', 1, { id }), [5, null, 'a b', '', ['x']]],
  [
    'a time',
    'E_OPTION_INVALID',
    (server, timeoutMs) => server.request('a', 1, { timeoutMs }),
    [0, -1, Number.NaN, null],
  ],
  ['a limit', 'E_OPTION_INVALID', (server, limit) => server.history('a', { limit }), [-1, 1.5, Number.NaN, '5', null]],
  ['a time', 'E_OPTION_INVALID', (server, rewindMs) => server.history('a', { rewindMs }), [-1, Number.NaN, '5m']],
  ['a position', 'E_POSITION_INVALID', (server, since) => server.history('a', { since }), ['x', 5, null]],
  ['a position', 'E_POSITION_INVALID', (server, before) => server.history('a', { before }), ['x', 5, null]],
  ['a payload', 'E_PAYLOAD_INVALID', (server, it) => server.publish('a', it), [undefined, 1n, new Map(), () => 0]],
  ['a payload', 'E_PAYLOAD_INVALID', (server, it) => server.request('a', it), [undefined, 1n, new Map(), () => 0]],
  ['a flag', 'E_OPTION_INVALID', (server, ephemeral) => server.publish('a', 1, { ephemeral }), ['false', 1]],
  ['a trace', 'E_OPTION_INVALID', (server, traceparent) => server.publish('a', 1, { traceparent }), [5, {}]],
  ['a flag', 'E_OPTION_INVALID', (server, reverse) => server.history('a', { reverse }), ['false', 1]],
  ['a list', 'E_OPTION_INVALID', (server, messages) => server.publishBatch(messages), [undefined, null, {}, 'ab']],
  ['a time', 'E_OPTION_INVALID', (server, drainMs) => server.stop({ drainMs }), ['0', true]],
  ['a function', 'E_OPTION_INVALID', (server, onGap) => server.listen('a', () => 0, { onGap }), [5, 'f', {}]],
  ['a function', 'E_OPTION_INVALID', (server, handler) => server.on('gap', handler), [5, 'f', {}]],
  ['meta', 'E_PAYLOAD_INVALID', (server, meta) => server.stream('a', { meta }), [1n, new Map(), () => 0, Number.NaN]],
])('refuses what is not %s: %s', async (_, code, call, values) => {
  for (const value of values) expect([value, await outcomeOf(call, value)]).toEqual([value, code])
})

/** Every call with options, and one that it has. */
const WITH_OPTIONS: readonly (readonly [name: string, meant: string, call: Call])[] = [
  ['ephemral', 'ephemeral', (server, options) => server.publish('a', 1, options)],
  ['rewindM', 'rewindMs', (server, options) => server.history('a', options)],
  ['grop', 'group', (server, options) => server.listen('a', () => 0, options)],
  ['grop', 'group', (server, options) => server.respond('a', () => 0, options)],
  ['timeout', 'timeoutMs', (server, options) => server.request('a', 1, options)],
  ['mta', 'meta', (server, options) => server.stream('a', options)],
  ['drain', 'drainMs', (server, options) => server.stop(options)],
]

// Symptom: `publish(key, payload, { ephemral: true })` was logged, and `history(key, { last: 1 })` gave a hundred messages.
it.each(WITH_OPTIONS)('refuses the unknown option %s: is it %s?', async (name, meant, call) => {
  const refused = (async () => call(fake.server, { [name]: 5 } as never))()
  await expect(refused).rejects.toMatchObject({ code: 'E_OPTION_INVALID' })
  await expect(refused).rejects.toThrow(`${name}: unknown option, did you mean ${meant}?`)
  for (const value of [5, 'x', null]) expect([value, await outcomeOf(call, value)]).toEqual([value, 'E_OPTION_INVALID'])
  expect((await fake.server.history('a')).messages).toEqual([])
})

it('refuses an unknown member of a message, and an unknown event', async () => {
  const message = { key: 'a', payload: 1, ephemral: true }
  await expect(fake.server.publishBatch([{ key: 'a', payload: 0 }, message])).rejects.toThrow(
    'message 1 of the batch: option is not valid: ephemral: unknown option, did you mean ephemeral?',
  )
  expect((await fake.server.history('a')).messages).toEqual([])
  expect(() => fake.server.on('brokr' as 'broker', () => 0)).toThrow('did you mean broker?')
})
