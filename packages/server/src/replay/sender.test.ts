import { describe, expect, it } from 'vitest'
import type { Position } from '../ports/broker.js'
import type { ConnectionId } from '../ports/transport.js'
import { ReplaySender } from './sender.js'

const MESSAGE_BYTES = 1_000
const CONNECTION = 1 as ConnectionId
const OTHER = 2 as ConnectionId

/** A sender that may send a connection one message and a half at once; what it sends, and what it waits for. */
function createSender() {
  const sent: string[] = []
  const waits: (() => void)[] = []
  const sender = new ReplaySender({
    transport: {
      send: (connection, data) => void sent.push(`${connection} ${Buffer.from(data as Uint8Array).toString()}`),
    },
    deadlines: { set: (atMs, fire) => ({ atMs, fire, index: waits.push(fire) }) },
    maxReplayBytes: MESSAGE_BYTES * 1.5,
    now: () => 0,
  })
  return { sender, sent, waits }
}

function replayOf(count: number) {
  const position = (offset: number): Position => ({ epoch: 'e', offset })
  const messages = Array.from({ length: count }, (_, index) => ({
    key: 'k',
    payload: new Uint8Array(MESSAGE_BYTES - 128).fill(0x30 + index),
    isBinary: false,
    position: position(index + 1),
  }))
  return { messages, position: position(count), hasMore: false }
}

describe('ReplaySender', () => {
  it('sends the answer, then as many messages as the connection may get, and says that there are more', () => {
    const { sender, sent } = createSender()
    expect(sender.send(CONNECTION, { id: 'a', pattern: 'k', last: 2 }, replayOf(2))).toBe(false)
    expect(sent.length).toBe(2)
    expect(sent[0]).toBe('1 ok a position=e:1 replayed=1 more')
    expect(sent[1]).toContain('000')
  })

  it('gives the allowance back when the next page of the same pattern is asked for', async () => {
    const { sender, waits } = createSender()
    const request = { id: 'a', pattern: 'k', last: 3 }
    sender.send(CONNECTION, request, replayOf(3))
    expect(sender.send(CONNECTION, { ...request, pattern: 'other' }, replayOf(3))).toBe(false)
    expect(sender.turn(CONNECTION, { pattern: 'none', since: 'e:1' })).toBeInstanceOf(Promise)
    expect(waits.length).toBe(1)
    expect(sender.turn(CONNECTION, { pattern: 'k', since: 'e:1' })).toBeUndefined()
  })

  it('makes no connection wait for another, nor for one that had its id before', () => {
    const { sender } = createSender()
    sender.send(CONNECTION, { id: 'a', pattern: 'k', last: 3 }, replayOf(3))
    sender.send(CONNECTION, { id: 'b', pattern: 'k', last: 3 }, replayOf(3))
    expect(sender.turn(CONNECTION, { pattern: 'k' })).toBeInstanceOf(Promise)
    expect(sender.turn(OTHER, { pattern: 'k' })).toBeUndefined()
    sender.release(CONNECTION)
    expect(sender.turn(CONNECTION, { pattern: 'k' })).toBeUndefined()
  })
})
