import { describe, expect, it } from 'vitest'
import { deferred } from '../base/deferred.js'
import type { Position } from '../ports/broker.js'
import { copyFrame } from '../ports/copy-frame.js'
import type { ConnectionId } from '../ports/transport.js'
import type { Replay } from './replay.js'
import { type ReplayRequest, ReplaySender } from './sender.js'

const MESSAGE_BYTES = 1_000
const CONNECTION = 1 as ConnectionId
const OTHER = 2 as ConnectionId

/** A sender that may send a connection two messages at once; what it sends, and which levels it waits for. */
function createSender(maxMessageBytes = 0) {
  const sent: string[] = []
  const awaited: string[] = []
  const waits = new Map<ConnectionId, () => void>()
  const sender = new ReplaySender({
    transport: {
      send: (connection, data) => void sent.push(`${connection} ${Buffer.from(copyFrame(data)).toString()}`),
    },
    drains: {
      await: (connection, level, drained) => {
        awaited.push(`${connection} ${level}`)
        waits.set(connection, drained)
      },
    },
    maxOutboxBytes: MESSAGE_BYTES * 4,
    maxMessageBytes,
  })
  const charged: number[] = []
  const to = (connection: ConnectionId) => ({
    connection,
    isClosed: false,
    meter: { charge: (units: number) => void charged.push(units) },
  })
  const answers = () => sent.filter((text) => text.includes(' ok ')).map((text) => text.split(' ok ')[1]?.split(' ')[0])
  const ask = (connection: ConnectionId, id: string, replay: Replay, request: Partial<ReplayRequest> = {}) =>
    sender.read(
      to(connection),
      () => replay,
      (page) => void sender.send(to(connection), { id, last: 9, ...request }, page, { becomesLive: true }),
    )
  const drained = (connection: ConnectionId) => waits.get(connection)?.()
  return { sender, sent, awaited, answers, ask, charged, to, drained }
}

function replayOf(count: number, messageBytes = MESSAGE_BYTES): Replay {
  const position = (offset: number): Position => ({ epoch: 'e', offset, fingerprint: 0 })
  const messages = Array.from({ length: count }, (_, index) => ({
    key: 'k',
    payload: new Uint8Array(messageBytes - 128).fill(0x30 + index),
    isBinary: false,
    position: position(index + 1),
  }))
  return { messages, position: position(count), hasMore: false }
}

describe('ReplaySender', () => {
  it('sends the answer, then as many messages as the connection may get, and says that there are more', () => {
    const { sent, ask } = createSender()
    void ask(CONNECTION, 'a', replayOf(3))
    expect(sent.length).toBe(3)
    expect(sent[0]).toBe('1 ok a position=e:2.AAAAA replayed=2 more')
    expect(sent[1]).toContain('000')
  })

  // Symptom: a slow client came back every 6 s and was closed with 4008 each time. Cause: its listen went live behind a
  // replayed message that filled the outbox, and the next live message closed the connection before that was read.
  it('says that there is more while the outbox has no room for a live message', () => {
    const { answers, sent, ask, drained } = createSender(2 * MESSAGE_BYTES)
    void ask(CONNECTION, 'a', replayOf(1, 3 * MESSAGE_BYTES))
    expect(sent[0]).toBe('1 ok a position=e:1.AAAAA replayed=1 more')
    void ask(CONNECTION, 'b', { messages: [], position: { epoch: 'e', offset: 1, fingerprint: 0 }, hasMore: false })
    expect(answers()).toEqual(['a'])
    drained(CONNECTION)
    expect(sent.at(-1)).toBe('1 ok b position=e:1.AAAAA replayed=0')
    void ask(OTHER, 'c', replayOf(2))
    expect(sent.find((text) => text.includes(' ok c'))).toBe('2 ok c position=e:2.AAAAA replayed=2')
  })

  it('goes on when the outbox is low, in the order of the requests', () => {
    const { awaited, answers, ask, drained } = createSender()
    for (const id of ['a', 'b', 'c']) void ask(CONNECTION, id, replayOf(2))
    expect([answers(), awaited]).toEqual([['a'], ['1 low']])
    drained(CONNECTION)
    expect([answers(), awaited]).toEqual([
      ['a', 'b'],
      ['1 low', '1 low'],
    ])
    drained(CONNECTION)
    expect(answers()).toEqual(['a', 'b', 'c'])
  })

  it('sends a message that takes more than its share into an empty outbox', () => {
    const { sent, awaited, answers, ask, drained } = createSender()
    void ask(CONNECTION, 'a', replayOf(1))
    void ask(CONNECTION, 'b', replayOf(2, 3 * MESSAGE_BYTES))
    expect([answers(), awaited]).toEqual([['a'], ['1 empty']])
    drained(CONNECTION)
    expect(answers()).toEqual(['a', 'b'])
    expect(sent[2]).toBe('1 ok b position=e:1.AAAAA replayed=1 more')
  })

  it('makes no connection wait for another, nor for one that had its id before', () => {
    const { sender, answers, ask } = createSender()
    for (const id of ['a', 'b']) void ask(CONNECTION, id, replayOf(2))
    void ask(OTHER, 'c', replayOf(2))
    expect(answers()).toEqual(['a', 'c'])
    sender.release(CONNECTION)
    void ask(CONNECTION, 'd', replayOf(2))
    expect(answers()).toEqual(['a', 'c', 'b', 'd'])
  })

  it('reads nothing for requests that waited when their connection closed', async () => {
    const { sender, ask, to } = createSender()
    void ask(CONNECTION, 'a', replayOf(2))
    let readCount = 0
    const late = sender.read(
      to(CONNECTION),
      () => replayOf(++readCount),
      ({ messages }) => messages.length,
    )
    sender.release(CONNECTION)
    expect([await late, readCount]).toEqual([0, 0])
  })

  // Symptom: each client that left while its listen waited for the broker took memory for good. Cause: the listen went on to the log,
  // and its connection, which had been released, got an entry again.
  it('reads nothing for a request that comes when its connection has closed, and keeps nothing of it', async () => {
    const { sender, to } = createSender()
    let readCount = 0
    const late = sender.read(
      { ...to(CONNECTION), isClosed: true },
      () => replayOf(++readCount),
      ({ messages }) => messages.length,
    )
    expect([await late, readCount]).toEqual([0, 0])
  })

  it('holds nobody while the log is not there yet, and reads a page again that has to wait afterwards', async () => {
    const { sender, answers, ask, to, drained } = createSender()
    const arrival = deferred<Replay>()
    const reads: unknown[] = []
    const late = sender.read(
      to(CONNECTION),
      () => {
        reads.push(undefined)
        if (reads.length > 1) return replayOf(1)
        return arrival.promise
      },
      (page) => void sender.send(to(CONNECTION), { id: 'late', last: 1 }, page),
    )
    void ask(CONNECTION, 'b', replayOf(2))
    expect(answers()).toEqual(['b'])
    arrival.resolve(replayOf(1))
    await new Promise((resolve) => setImmediate(resolve))
    expect(answers()).toEqual(['b'])
    drained(CONNECTION)
    await late
    expect([answers(), reads.length]).toEqual([['b', 'late'], 2])
  })

  it('reads a page only once that is empty', async () => {
    const { sender, answers, ask, to, drained } = createSender()
    let readCount = 0
    const late = sender.read(
      to(CONNECTION),
      async () => {
        readCount++
        return await Promise.resolve(replayOf(0))
      },
      (page) => void sender.send(to(CONNECTION), { id: 'late', last: 1 }, page),
    )
    void ask(CONNECTION, 'b', replayOf(2))
    await new Promise((resolve) => setImmediate(resolve))
    drained(CONNECTION)
    await late
    expect([answers(), readCount]).toEqual([['b', 'late'], 1])
  })

  it('charges the receiver for the messages and bytes that it gets, not for those that wait', () => {
    const { ask, charged } = createSender()
    void ask(CONNECTION, 'a', replayOf(3))
    expect(charged).toEqual([2 * (1.5 + 0.872)])
  })
})
