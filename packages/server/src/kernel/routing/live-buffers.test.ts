import { expect, it } from 'vitest'
import type { GroupId } from '../ports/transport.js'
import { LiveBuffers } from './live-buffers.js'

const GROUP = 1 as GroupId
const OTHER = 2 as GroupId

// A listen replayed the bytes of later messages. The native transport lends a Buffer, whose `slice` copies nothing.
it('keep what was delivered though it was lent as a Buffer', () => {
  const buffers = new LiveBuffers()
  const buffer = buffers.start({ pattern: 'a.*', group: GROUP }, 1_000)
  const lent = Buffer.from('first')
  buffers.deliver([OTHER, GROUP], { key: 'a.b', payload: lent, isBinary: false })
  buffers.deliver([OTHER], { key: 'other', payload: lent, isBinary: false })
  lent.fill(0)
  expect(buffer.messages).toEqual([{ key: 'a.b', payload: new TextEncoder().encode('first'), isBinary: false }])
})

// Symptom: a client with 128 long reads doubled the memory of each message 128 times. Cause: a copy per buffer.
it('share one copy of a message', () => {
  const buffers = new LiveBuffers()
  const [first, second] = [GROUP, OTHER].map((group) => buffers.start({ pattern: `${group}`, group }, 1_000))
  buffers.deliver([GROUP, OTHER], { key: 'a', payload: new Uint8Array(100), isBinary: true })
  expect(first?.messages[0]).toBe(second?.messages[0])
  if (first !== undefined) buffers.end(GROUP, first)
  buffers.deliver([GROUP, OTHER], { key: 'a', payload: new Uint8Array(100), isBinary: true })
  expect([first?.messages.length, second?.messages.length]).toEqual([1, 2])
})

// Symptom: a buffer of 1,000 bytes kept any number of messages without a payload. Cause: only payloads were counted.
it('count keys and objects, not only payloads, and drop the oldest', () => {
  const maxBytes = 100_000
  const buffer = new LiveBuffers().start({ pattern: '#', group: GROUP }, maxBytes)
  const key = 'k'.repeat(200)
  for (let count = 0; count < 10_000; count++) {
    buffer.push({
      key,
      payload: Uint8Array.of(count),
      isBinary: true,
      position: { epoch: 'e', offset: count, fingerprint: 1 },
    })
  }
  expect(buffer.hasOverflowed).toBe(true)
  expect(buffer.messages.length).toBeGreaterThan(0)
  expect(buffer.messages.length).toBeLessThanOrEqual(maxBytes / key.length)
  expect(buffer.messages.at(-1)?.position?.offset).toBe(9_999)
})
