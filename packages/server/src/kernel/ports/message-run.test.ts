import { expect, it } from 'vitest'
import { MessageRun } from './message-run.js'

function messagesOf(run: MessageRun): [string, boolean][] {
  const messages: [string, boolean][] = []
  while (run.next()) messages.push([Buffer.from(run.bytes.subarray(run.start, run.end)).toString(), run.isBinary])
  return messages
}

/** `ab` as text, an empty one, and `c` as bytes, behind other bytes. */
const packed = () => Uint8Array.from([9, 9, 4, 0, 0, 0, 97, 98, 0, 0, 0, 0, 3, 0, 0, 0, 99])

it('goes through its messages in order', () => {
  const run = new MessageRun(packed(), 2, 17, 1)
  expect(run.byteCount).toBe(15)
  expect(messagesOf(run)).toEqual([
    ['ab', false],
    ['', false],
    ['c', true],
  ])
  expect([run.byteCount, run.next()]).toEqual([0, false])
})

it('copies what is still to come when its memory cannot be held', () => {
  const bytes = packed()
  const run = new MessageRun(bytes, 2, 17, 1, { hold: () => false, release: () => expect.unreachable() })
  run.next()
  run.keep()
  bytes.fill(7)
  expect(messagesOf(run)).toEqual([
    ['', false],
    ['c', true],
  ])
  run.release()
})

it('is one message, copied', () => {
  const data = Buffer.from('a'.repeat(100_000))
  const run = MessageRun.of(data, true)
  data.fill('b')
  expect(messagesOf(run)).toEqual([['a'.repeat(100_000), true]])
})
