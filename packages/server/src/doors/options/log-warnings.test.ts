import { expect, it } from 'vitest'
import { logWarnings } from './log-warnings.js'
import { resolveOptions } from './options.js'
import type { ServerOptions } from './server-options.js'

// Symptom: `--history t.#=20000` kept 10,000 messages, and nobody said so. Cause: `historyMaxMessages` wins over the rules.
it.each<[ServerOptions, string[]]>([
  [{}, []],
  [{ history: ['t.#=10000,10m'] }, []],
  [{ history: ['t.#=20000,10m'] }, ['t.#=20000: the log holds 10000 messages']],
  [{ history: ['t.#=1000'], historyMaxMessages: 100 }, ['t.#=1000: the log holds 100 messages']],
  [{ history: ['a.#=6000', 'b.#=6000'] }, ['12000 messages, and the log holds 10000']],
  [{ history: ['a.#=5000', 'b.#=5000'] }, []],
  [{ history: ['a.#=100'], historyMaxMessages: 0 }, ['nothing is logged']],
  [{ history: ['a.#=10000'], historyMaxBytes: 900_000 }, ['10000 messages of 100 bytes do not fit']],
  [{ history: ['a.#=100'], historyMaxBytes: 60_000 }, ['a message of maxPayloadBytes, 65536, is dropped']],
  [{ retain: ['a.#'], retainMaxBytes: 60_000 }, ['a retained message of maxPayloadBytes, 65536, is refused']],
  [{ retain: ['a.#'] }, []],
])('of %j', (options, expected) => {
  const warnings = logWarnings(resolveOptions({ ...options, maxPayloadBytes: 65_536 }))
  expect(warnings).toEqual(expected.map((text) => expect.stringContaining(text)))
})
