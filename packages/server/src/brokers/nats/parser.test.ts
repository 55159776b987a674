import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NatsParser } from './parser.js'

interface FoundMessage {
  readonly id: number
  readonly subject: string
  readonly replyTo: string
  readonly headers: string
  readonly payload: string
}

type Found = string | FoundMessage

function parse(chunks: readonly Buffer[]): Found[] {
  const found: Found[] = []
  const parser = new NatsParser({
    message: (bytes, bounds) =>
      found.push({
        id: bounds.subscription,
        subject: bytes.toString('latin1', bounds.subjectAt, bounds.subjectEnd),
        replyTo: bytes.toString('latin1', bounds.replyAt, bounds.replyEnd),
        headers: bytes.toString('latin1', bounds.headersAt, bounds.payloadAt),
        payload: bytes.toString('latin1', bounds.payloadAt, bounds.payloadEnd),
      }),
    line: (text) => found.push(text),
  })
  for (const chunk of chunks) parser.push(chunk)
  return found
}

const subject = fc.stringMatching(/^[!-~]{1,40}$/)
const item: fc.Arbitrary<{ readonly bytes: string; readonly found: Found }> = fc.oneof(
  fc
    .record({
      subject,
      id: fc.nat(),
      replyTo: fc.option(fc.oneof(subject, fc.constant(''), fc.stringMatching(/^[0-9]{1,9}$/))),
      headers: fc.option(fc.stringMatching(/^[ -~\r\n]{0,60}$/)),
      payload: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
    })
    .map(({ subject, id, replyTo, headers, payload }) => {
      const head = `${subject} ${id}${replyTo === null ? '' : ` ${replyTo}`}`
      const bytes =
        headers === null
          ? `MSG ${head} ${payload.length}\r\n${payload}\r\n`
          : `HMSG ${head} ${headers.length} ${headers.length + payload.length}\r\n${headers}${payload}\r\n`
      return { bytes, found: { id, subject, replyTo: replyTo ?? '', headers: headers ?? '', payload } }
    }),
  fc.constantFrom('PING', 'PONG', '+OK', "-ERR 'Stale Connection'", 'INFO {"max_payload":1}').map((text) => ({
    bytes: `${text}\r\n`,
    found: text,
  })),
)

describe('NatsParser', () => {
  it('finds the same wherever the bytes are cut', () => {
    fc.assert(
      fc.property(fc.array(item, { maxLength: 12 }), fc.array(fc.nat(), { maxLength: 30 }), (items, cuts) => {
        const bytes = Buffer.from(items.map((each) => each.bytes).join(''), 'latin1')
        const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
        const chunks = places.slice(1).map((end, index) => bytes.subarray(places[index], end))
        expect(parse(chunks)).toEqual(items.map(({ found }) => found))
      }),
      { numRuns: 1_000 },
    )
  })

  it('puts a large message together from many chunks', () => {
    const payload = 'x'.repeat(1_000_000)
    const bytes = Buffer.from(`MSG a 1 ${payload.length}\r\n${payload}\r\nPONG\r\n`)
    const chunks = Array.from({ length: Math.ceil(bytes.length / 999) }, (_, at) =>
      bytes.subarray(at * 999, (at + 1) * 999),
    )
    expect(parse(chunks)).toEqual([{ id: 1, subject: 'a', replyTo: '', headers: '', payload }, 'PONG'])
  })

  it.each([
    'MSG a 1 x\r\n',
    'MSG a x 1\r\nx\r\n',
    'MSG a 1\r\nx\r\n',
    'MSG a 1 r 1 1\r\nx\r\n',
    'MSG a 1 1\r\nxyz',
    'MSG a 1 99999999999\r\n',
    'MSGa 1 1\r\nx\r\n',
    'HMSG a 1 1\r\nx\r\n',
    'HMSG a 1 2 1\r\nx\r\n',
    'HMSG a 1 x 1\r\nx\r\n',
    'HMSG a 1 r 1 1 1\r\nx\r\n',
  ])('refuses %j', (text) => {
    expect(() => parse([Buffer.from(text)])).toThrow('this is not NATS')
  })

  it('refuses a line without an end', () => {
    const chunk = Buffer.alloc(40_000, 'x')
    expect(() => parse([chunk, chunk])).toThrow('too long')
  })
})
