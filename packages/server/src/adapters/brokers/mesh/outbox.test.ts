import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FRAME, isCounted } from './frames.js'
import { Outbox } from './outbox.js'
import { FrameReader } from './wire.js'

const KEY = new TextEncoder().encode('a.key')

/** The other node: counts what comes, and writes down the counted frames. */
class Receiver {
  received = 0
  readonly bodies: string[] = []
  #reader = this.#newReader()

  /** What was not read to its end is gone with the link. */
  relink(): void {
    this.#reader = this.#newReader()
  }

  read(bytes: Uint8Array): void {
    this.#reader.push(Buffer.from(bytes))
  }

  #newReader(): FrameReader {
    return new FrameReader(10_000_000, (type, bytes, start, end) => {
      if (!isCounted(type)) return
      this.received++
      this.bodies.push(`${type} ${bytes.toString('latin1', start, end)}`)
    })
  }
}

type Step =
  | { readonly do: 'message'; readonly byteCount: number }
  | { readonly do: 'pattern' | 'ping' | 'ack' }
  | { readonly do: 'write'; readonly isWritten: boolean }
  | { readonly do: 'relink'; readonly lostBytes: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('message' as const), byteCount: fc.nat(40_000) }) },
  { weight: 1, arbitrary: fc.constant({ do: 'message' as const, byteCount: 200_000 }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('pattern' as const, 'ping', 'ack') }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('write' as const), isWritten: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('relink' as const), lostBytes: fc.nat(100_000) }) },
)

describe('Outbox', () => {
  it('brings every counted frame once and in order, over any number of broken links', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        const outbox = new Outbox()
        const receiver = new Receiver()
        const sent: string[] = []
        let lent: Buffer | undefined
        const deliver = (range: Buffer) => {
          receiver.read(range)
          outbox.wrote()
          lent = undefined
        }
        const write = (isWritten: boolean) => {
          lent ??= outbox.next()
          const range = lent
          if (range !== undefined && isWritten) deliver(range)
          return range !== undefined
        }
        const drain = () => {
          while (write(true));
        }
        for (const step of steps) {
          if (step.do === 'message') {
            const payload = new Uint8Array(step.byteCount).fill(0x61 + (sent.length % 26))
            outbox.addMessage(KEY, payload, false)
            sent.push(`${FRAME.text} ${String.fromCharCode(KEY.length)}a.key${Buffer.from(payload).toString('latin1')}`)
          } else if (step.do === 'pattern') {
            outbox.add(FRAME.add, Buffer.from(`p.${sent.length}`))
            sent.push(`${FRAME.add} p.${sent.length}`)
          } else if (step.do === 'ping') outbox.add(FRAME.ping, new Uint8Array(0))
          else if (step.do === 'ack') expect(outbox.acked(receiver.received)).toBe(true)
          else if (step.do === 'write') write(step.isWritten)
          else if (step.do === 'relink') {
            // A part of what was being written may have arrived.
            if (lent !== undefined) receiver.read(lent.subarray(0, step.lostBytes))
            lent = undefined
            receiver.relink()
            expect(outbox.acked(receiver.received)).toBe(true)
            outbox.rewind(receiver.received)
          }
        }
        drain()
        expect(receiver.bodies).toEqual(sent)
        expect(outbox.lastSequence).toBe(sent.length)
        expect(outbox.acked(receiver.received)).toBe(true)
        expect(outbox.keptBytes).toBe(0)
      }),
      { numRuns: 200 },
    )
  })

  it('keeps what is not acknowledged, however long ago it was written', () => {
    const outbox = new Outbox()
    for (let index = 0; index < 100; index++) {
      outbox.addMessage(KEY, new Uint8Array(10_000), true)
      while (outbox.next() !== undefined) outbox.wrote()
    }
    expect(outbox.keptBytes).toBeGreaterThanOrEqual(1_000_000)
    outbox.acked(50)
    expect(outbox.keptBytes).toBeLessThan(600_000)
    outbox.acked(100)
    expect(outbox.keptBytes).toBe(0)
  })

  it('does not believe an acknowledgement of what was not sent', () => {
    const outbox = new Outbox()
    outbox.addMessage(KEY, new Uint8Array(1), true)
    expect(outbox.acked(2)).toBe(false)
    expect(outbox.acked(1)).toBe(true)
  })
})
