import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Breach, parse, selectionOptions } from './wire.js'

/** What `parse` makes of a text: a message, or its breach. Any other exception fails the test. */
function read(text: string, isBinary = false) {
  try {
    return parse(text, isBinary)
  } catch (error) {
    if (error instanceof Breach) return error
    throw error
  }
}

const VERBS = ['welcome', 'ok', 'error', 'message', 'gap', 'pong', 'bye'] as const
const WORDS = [
  ...['', '-', '1', 'a.b', 'e:1', 'E_X', 'no-history', '4001', 'replay', 'more', 'recovered', 'duplicate'],
  ...['position=e:1', 'position=', 'replayed=2', 'replayed=x', 'gap=limit', '__proto__', 'constructor=1', '='],
]
const BODIES = ['', '\n', '\n{}', '\n{"node":"n"}', '\n{"retryable":true}', '\nnull', '\n[1', '\n\n']

describe('the strict parser', () => {
  it('makes a message or a breach of anything', () => {
    const text = fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes).toString())
    fc.assert(fc.property(text, fc.boolean(), (each, isBinary) => void read(each, isBinary)))
  })

  it('makes a message or a breach of what looks like a message', () => {
    const header = fc.tuple(fc.constantFrom(...VERBS), fc.array(fc.constantFrom(...WORDS), { maxLength: 5 }))
    const text = fc.tuple(header, fc.constantFrom(...BODIES)).map(([[verb, words], body]) => {
      return [verb, ...words].join(' ') + body
    })
    const isRead = fc.property(text, fc.boolean(), (each, isBinary) => void read(each, isBinary))
    fc.assert(isRead, { numRuns: 2_000 })
  })

  it('reads every message as it was written', () => {
    const payload = fc.string()
    const offset = fc.nat().map((number) => `e:${number.toString(36)}`)
    const isSame = fc.property(offset, payload, fc.boolean(), (position, body, isReplay) => {
      const header = `message a.b ${position}${isReplay ? ' replay' : ''}`
      expect(read(`${header}\n${body}`)).toEqual({ verb: 'message', key: 'a.b', position, isReplay, payload: body })
    })
    fc.assert(isSame)
  })

  it('reads every answer as it was written', () => {
    const isSame = fc.property(fc.boolean(), fc.boolean(), fc.nat(9_999), (isMore, isDuplicate, replayed) => {
      const flags = `${isMore ? ' more' : ''}${isDuplicate ? ' duplicate' : ''}`
      const answer = { position: 'e:1', isRecovered: false, gap: 'no-history', replayed, isMore }
      const text = `ok 7 position=e:1 gap=no-history replayed=${replayed}${flags}`
      expect(read(text)).toEqual({ verb: 'ok', id: '7', answer, isDuplicate })
    })
    fc.assert(isSame)
  })

  it.each([
    ['an unknown verb', 'hello 1'],
    ['an inherited name', 'constructor 1'],
    ['two spaces', 'ok  1'],
    ['a missing field', 'gap a.b'],
    ['a missing body', 'message a.b e:1'],
    ['a body that is too much', 'gap a.b limit\n'],
    ['an unknown option', 'ok 1 newer'],
    ['an option twice', 'ok 1 more more'],
    ['an option without its value', 'ok 1 position'],
    ['a flag with a value', 'ok 1 more=1'],
    ['a number that is none', 'ok 1 replayed=-1'],
    ['a code that is none', 'error 1 oops\n{"retryable":true}'],
    ['an error that does not say whether to try again', 'error 1 E_X\n{}'],
    ['a welcome that is no object', 'welcome\nnull'],
    ['a header that is too long', `gap ${'a'.repeat(3_000)} limit`],
  ])('refuses %s', (_, text) => {
    expect(read(text)).toBeInstanceOf(Breach)
  })

  it('refuses everything but a message in a binary frame', () => {
    expect(read('pong', true)).toBeInstanceOf(Breach)
    expect(read('message a - \n', true)).toBeInstanceOf(Breach)
    expect(read('message a -\nx', true)).toMatchObject({ verb: 'message', payload: 'x' })
  })
})

it('writes the options of a listen', () => {
  expect(selectionOptions({})).toBe('')
  expect(selectionOptions({ since: 'e:1', limit: 3 })).toBe(' since=e:1 limit=3')
  expect(selectionOptions({ rewindMs: 5, last: 2, isReverse: true })).toBe(' rewind=5 last=2 reverse')
})
