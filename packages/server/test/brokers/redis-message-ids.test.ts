import { beforeAll, describe, expect, it, vi } from 'vitest'
import { historyOf } from 'webmq-conformance'
import { sharedService } from 'webmq-services'
import { freshNamespace, startNode, text } from './redis-node.js'

/*
 * Symptom: a message id above 255 bytes made its message, and those sent with it, unreadable to other nodes.
 * Cause: the envelope has one byte for the length of an id, and a longer length wrapped.
 */

const IDS = ['消息編號', 'josé', 'line\r\nbreak', 'x'.repeat(300), '編'.repeat(200), 'x'.repeat(255), 'x'.repeat(256)]

let url = ''
beforeAll(async () => {
  url = (await sharedService('redis')).url
})

describe.each([
  ['without a log', historyOf()],
  ['with a log', historyOf('#=1000')],
])('message ids over redis, %s', (_, history) => {
  it('may be of any letters and any length', async () => {
    const options = { ...history, broker: url, brokerNamespace: freshNamespace() }
    const [a, b] = [await startNode(options), await startNode(options)]
    for (const { broker } of [a, b]) await broker.bind('#')
    await Promise.all(
      IDS.flatMap((messageId, index) => [
        a.broker.publish(text('with', `${index}`, { messageId })),
        a.broker.publish(text('without', `${index}`)),
      ]),
    )
    for (const { sink, broker } of [a, b]) {
      await vi.waitFor(() => expect(sink.messages).toHaveLength(2 * IDS.length))
      for (const key of ['with', 'without'])
        expect(sink.messages.filter((each) => each.key === key).map(({ text }) => text)).toEqual(
          IDS.map((_, index) => `${index}`),
        )
      expect(broker.stats().malformedCount).toBe(0)
    }
  })

  it('count once over all nodes', async () => {
    const options = { ...history, broker: url, brokerNamespace: freshNamespace() }
    const [a, b] = [await startNode(options), await startNode(options)]
    for (const { broker } of [a, b]) await broker.bind('#')
    for (const messageId of IDS) {
      await a.broker.publish(text('a', messageId, { messageId }))
      await b.broker.publish(text('a', messageId, { messageId }))
    }
    await b.broker.publish(text('a', 'end'))
    for (const { sink } of [a, b]) {
      await vi.waitFor(() => expect(sink.messages.at(-1)?.text).toBe('end'))
      expect(sink.messages.map(({ text }) => text)).toEqual([...IDS, 'end'])
    }
  })
})
