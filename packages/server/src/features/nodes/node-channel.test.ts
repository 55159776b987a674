import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Accepted, OutboundMessage } from '../../kernel/ports/broker.js'
import { NodeChannel } from './node-channel.js'
import type { NodeMessage } from './node-message.js'

/** A channel of node `a`, what it published, and a channel of node `b` with what that read. */
function channels(maxPayloadBytes = 300) {
  const published: OutboundMessage[] = []
  const read: { topic: string; fields: unknown; text: string }[] = []
  const create = (node: string) =>
    new NodeChannel({
      node,
      broker: {
        bind: () => Promise.resolve(),
        publish: (message): Accepted => {
          published.push(message)
          return { isDuplicate: false }
        },
      },
      maxPayloadBytes,
      onMessage: ({ topic, fields, payload }: NodeMessage) => read.push({ topic, fields, text: payload.toString() }),
      onEcho: () => undefined,
      onFormat: () => undefined,
      onError: (error) => {
        throw error
      },
    })
  const [a, b] = [create('a'), create('b')]
  const deliver = (messages: readonly OutboundMessage[]) => {
    for (const { key, payload } of messages) expect(b.receive({ key, payload })).toBe(true)
  }
  return { a, b, published, read, deliver }
}

describe('a message between nodes', () => {
  it.each(['\u2028', '\u2029', 'é\n"', ''])('carries any text in its fields: %j', async (text) => {
    const { a, published, read, deliver } = channels()
    await a.send('table', 'changes', JSON.stringify({ text }), 'b', Buffer.from('payload'))
    deliver(published)
    expect(read).toEqual([{ topic: 'table', fields: { text }, text: 'payload' }])
  })

  it('goes in parts, and never in more than it has bytes, however small a payload may be', async () => {
    for (const maxPayloadBytes of [1, 20, 300]) {
      const { a, published, read, deliver } = channels(maxPayloadBytes)
      await a.send('tasks', 'task', '{}', 'b', Buffer.alloc(2_000, 'x'))
      expect(published.length).toBeLessThan(10)
      deliver(published)
      expect(read).toEqual([{ topic: 'tasks', fields: {}, text: 'x'.repeat(2_000) }])
    }
  })

  it.each(['first', 'middle', 'last'])('is lost alone when its %s part is, and joined with no other', async (which) => {
    const { a, b, published, read, deliver } = channels()
    for (const letter of ['x', 'y', 'z']) await a.send('tasks', 'task', '{}', 'b', Buffer.alloc(700, letter))
    expect(published).toHaveLength(9)
    const missing = { first: 3, middle: 4, last: 5 }[which]
    deliver(published.filter((_, at) => at !== missing))
    expect(read.map(({ text }) => text)).toEqual(['x'.repeat(700), 'z'.repeat(700)])
    expect(b.malformedCount).toBeGreaterThan(0)
  })

  it('is refused as one when the broker takes some of its parts', async () => {
    let count = 0
    const a = new NodeChannel({
      node: 'a',
      broker: {
        bind: () => Promise.resolve(),
        publish: () => {
          if (++count > 1) throw new Error('full')
          return sleep(5).then(() => Promise.reject(new Error('the first part')))
        },
      },
      maxPayloadBytes: 300,
      onMessage: () => undefined,
      onEcho: () => undefined,
      onFormat: () => undefined,
      onError: () => undefined,
    })
    const unhandled: unknown[] = []
    const note = (error: unknown) => unhandled.push(error)
    process.on('unhandledRejection', note)
    onTestFinished(() => void process.off('unhandledRejection', note))
    await expect(a.send('tasks', 'task', '{}', 'b', Buffer.alloc(700))).rejects.toThrow('full')
    await sleep(20)
    expect([unhandled, count, a.pendingCount]).toEqual([[], 2, 0])
  })
})
