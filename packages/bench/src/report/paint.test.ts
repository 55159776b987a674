import { stripVTControlCharacters } from 'node:util'
import { describe, expect, it } from 'vitest'
import { painted } from './paint.js'

const TEXT = `Results

Verdict: ok (1.2 of 2 cores were busy)

Latency:
  p50: 0.4ms
Target  Verdict
------  -------------------
ws      generator saturated
uws     ok

Assertions:
  holds: gaps=0 (0)
  FAILS: p99<1ms (2)
`
const TERMINAL = { isTTY: true, write: () => undefined }

describe('the colours of a result', () => {
  it('are of titles, verdicts and assertions, and change no character', () => {
    const text = painted(TEXT, TERMINAL, {})
    expect(stripVTControlCharacters(text)).toBe(TEXT)
    for (const part of [
      '\u001b[1mLatency:\u001b[22m',
      'Verdict: \u001b[32mok\u001b[39m (',
      'uws     \u001b[32mok\u001b[39m',
      '\u001b[33mgenerator saturated',
      '\u001b[31m  FAILS',
    ]) {
      expect(text).toContain(part)
    }
  })

  it('are for terminals only, and not with NO_COLOR', () => {
    expect(painted(TEXT, { write: () => undefined }, {})).toBe(TEXT)
    expect(painted(TEXT, TERMINAL, { NO_COLOR: '1' })).toBe(TEXT)
    expect(painted(TEXT, TERMINAL, { TERM: 'dumb' })).toBe(TEXT)
  })
})
