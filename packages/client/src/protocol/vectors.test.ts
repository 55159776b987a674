import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  contains,
  decodeClientMessage,
  decodeServerMessage,
  encodeClientMessage,
  encodeMessageFrame,
  encodeMeta,
  encodeServerMessage,
  errorOfCloseCode,
  isKey,
  isPattern,
  isReconnectable,
  matches,
  parsePosition,
  type TextServerMessage,
  validateKey,
  validatePattern,
  WebMQError,
} from './index.js'

interface Texts {
  readonly valid: readonly { readonly text: string }[]
  readonly invalid: readonly { readonly text: string; readonly code: string }[]
}

/** A text or a binary frame. */
type WireVector = { readonly text: string } | { readonly base64: string }

type PayloadVector = { readonly payload?: WireVector }

interface Messages {
  readonly valid: readonly (WireVector & {
    readonly name: string
    readonly decoded: Readonly<Record<string, unknown>> & PayloadVector
    readonly canonical?: boolean
  })[]
  readonly invalid: readonly (WireVector & {
    readonly name: string
    readonly code: string
    readonly requestId?: string
  })[]
}

function load<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../../vectors/${name}.json`, import.meta.url), 'utf8')) as T
}

function bytesOf(vector: WireVector): Uint8Array {
  return 'text' in vector
    ? new TextEncoder().encode(vector.text)
    : Uint8Array.from(Buffer.from(vector.base64, 'base64'))
}

function wireOf(vector: WireVector): string | Uint8Array {
  return 'text' in vector ? vector.text : bytesOf(vector)
}

function thrownBy(action: () => unknown): unknown {
  try {
    action()
  } catch (error) {
    return error
  }
  return undefined
}

function expectError(action: () => unknown, code: string): WebMQError {
  const error = thrownBy(action)
  if (!(error instanceof WebMQError)) throw new Error(`expected ${code}, got ${String(error)}`)
  expect(error.code).toBe(code)
  return error
}

describe.each([
  { name: 'keys', isValid: isKey, validate: validateKey },
  { name: 'patterns', isValid: isPattern, validate: validatePattern },
])('vectors of $name', ({ name, isValid, validate }) => {
  const { valid, invalid } = load<Texts>(name)

  it.each(valid)('accepts $text', ({ text }) => {
    expect(isValid(text)).toBe(true)
    expect(() => validate(text)).not.toThrow()
  })

  it.each(invalid)('refuses $text', ({ text, code }) => {
    expect(isValid(text)).toBe(false)
    expectError(() => validate(text), code)
  })
})

describe('vectors of matching', () => {
  const table = load<readonly { pattern: string; matches: readonly string[]; rejects: readonly string[] }[]>('matching')
  const cases = table.flatMap((row) => [
    ...row.matches.map((key) => ({ pattern: row.pattern, key, expected: true })),
    ...row.rejects.map((key) => ({ pattern: row.pattern, key, expected: false })),
  ])

  it.each(cases)('$pattern on $key is $expected', ({ pattern, key, expected }) => {
    expect([isPattern(pattern), isKey(key)]).toEqual([true, true])
    expect(matches(pattern, key)).toBe(expected)
  })
})

describe('vectors of containment', () => {
  const table =
    load<readonly { outer: string; inner: string; contains: boolean; counterexample?: string }[]>('containment')

  it.each(table)('$outer contains $inner is $contains', ({ outer, inner, contains: expected, counterexample }) => {
    expect(contains(outer, inner)).toBe(expected)
    expect(counterexample === undefined).toBe(expected)
    if (counterexample === undefined) return
    expect([isKey(counterexample), matches(inner, counterexample), matches(outer, counterexample)]).toEqual([
      true,
      true,
      false,
    ])
  })
})

describe('vectors of client messages', () => {
  const { valid, invalid } = load<Messages>('client-messages')

  it.each(valid)('$name', (vector) => {
    const { decoded, canonical = true } = vector
    const { payload } = decoded
    const isBinary = 'base64' in vector
    const actual = decodeClientMessage(bytesOf(vector), isBinary)
    expect(actual).toEqual(payload === undefined ? decoded : { ...decoded, payload: bytesOf(payload) })
    const encoded = encodeClientMessage(
      'payload' in actual && payload ? { ...actual, payload: wireOf(payload) } : actual,
    )
    if (canonical) expect(encoded).toEqual(wireOf(vector))
    else expect(encoded).not.toEqual(wireOf(vector))
  })

  it.each(invalid)('refuses: $name', (vector) => {
    const error = expectError(() => decodeClientMessage(bytesOf(vector), 'base64' in vector), vector.code)
    expect(error.requestId).toBe(vector.requestId)
  })
})

describe('vectors of server messages', () => {
  const { valid, invalid } = load<Messages>('server-messages')

  it.each(valid)('$name', (vector) => {
    const { decoded, canonical = true } = vector
    const { payload } = decoded
    const actual = decodeServerMessage(wireOf(vector))
    expect(actual).toEqual(payload === undefined ? decoded : { ...decoded, payload: wireOf(payload) })
    if (actual.verb === 'message') {
      const { key, position, replayed, meta = {} } = actual
      const bytes = payload ? bytesOf(payload) : new Uint8Array()
      const frame = encodeMessageFrame(key, parsed(position), replayed, bytes, encodeMeta(meta))
      if (canonical) expect(Array.from(frame)).toEqual(Array.from(bytesOf(vector)))
    }
    if (isText(actual)) expect(encodeServerMessage(actual) === wireOf(vector)).toBe(canonical)
  })

  it.each(invalid)('refuses: $name', (vector) => {
    expectError(() => decodeServerMessage(wireOf(vector)), vector.code)
    expectError(() => decodeServerMessage(bytesOf(vector)), vector.code)
  })
})

function parsed(position: string | undefined) {
  return position === undefined ? undefined : parsePosition(position)
}

function isText(message: ReturnType<typeof decodeServerMessage>): message is TextServerMessage {
  return message.verb !== 'message' || typeof message.payload === 'string'
}

describe('vectors of close codes', () => {
  const table = load<readonly { code: number; reconnect: boolean; error?: string }[]>('close-codes')

  it.each(table)('$code', ({ code, reconnect, error }) => {
    expect(isReconnectable(code)).toBe(reconnect)
    expect(errorOfCloseCode(code)).toBe(error)
  })
})
