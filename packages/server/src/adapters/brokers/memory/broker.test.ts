import { describe, expect, it } from 'vitest'
import { brokerOptions, brokerSuite, historyOf, messageIdOf } from 'webmq-conformance'
import type { BrokerCapabilities, BrokerSink, ReadResult } from '../../../kernel/ports/broker.js'
import { MemoryBroker, type MemoryBrokerOptions } from './broker.js'

const DEFAULTS: MemoryBrokerOptions = brokerOptions({
  ...historyOf('#=1000'),
  historyMaxMessages: 1_000,
  historyMaxBytes: 1_048_576,
})
const CAPABILITIES: BrokerCapabilities = {
  history: true,
  retained: false,
  ordered: true,
  sharedLog: true,
  confirms: true,
  queueGroups: true,
  durable: false,
  manyNodes: false,
}

brokerSuite('memory', () => ({ createNode: (history) => new MemoryBroker({ ...DEFAULTS, ...history }) }), CAPABILITIES)
brokerSuite(
  'memory without history',
  () => ({ createNode: () => new MemoryBroker({ ...DEFAULTS, historyMaxMessages: 0 }) }),
  { ...CAPABILITIES, history: false, sharedLog: false },
)

const quietSink: BrokerSink = {
  deliver: () => true,
  status: () => undefined,
  gap: () => undefined,
  refused: () => undefined,
}
const payload = new TextEncoder().encode('0123456789')
const nowhere = { epoch: 'nowhere', offset: 0, fingerprint: 0 }

async function started(options: Partial<MemoryBrokerOptions> = {}): Promise<MemoryBroker> {
  const broker = new MemoryBroker({ ...DEFAULTS, ...options })
  await broker.start(quietSink)
  return broker
}

describe('MemoryBroker', () => {
  it('answers at once, without a promise', async () => {
    const broker = await started()
    expect(broker.publish({ key: 'a', payload, isBinary: false })).toEqual({
      position: broker.position(),
      isDuplicate: false,
    })
    expect((broker.read({ last: 1 }, ['a']) as ReadResult).messages).toHaveLength(1)
  })

  it('delivers before publish returns, so that all listeners see the order of the calls', async () => {
    const broker = new MemoryBroker(DEFAULTS)
    const keys: string[] = []
    await broker.start({ ...quietSink, deliver: ({ key }) => keys.push(key) > 0 })
    broker.bind('#')
    broker.publish({ key: 'a', payload, isBinary: false })
    expect(keys).toEqual(['a'])
  })

  it.each([
    ['messages', { historyMaxMessages: 3 }],
    ['bytes', { historyMaxBytes: 30 }],
  ])('says gap from the first message that the limit of %s has taken', async (_limit, options) => {
    const broker = await started(options)
    const start = broker.position() ?? nowhere
    const positions = Array.from(
      { length: 5 },
      () => broker.publish({ key: 'a', payload, isBinary: false }).position ?? nowhere,
    )
    const gaps = [start, ...positions].map((since) => {
      const { gap, messages } = broker.read({ since }, ['#']) as ReadResult
      return [gap, messages.length]
    })
    expect(gaps).toEqual([
      ['history-expired', 3],
      ['history-expired', 3],
      [undefined, 3],
      [undefined, 2],
      [undefined, 1],
      [undefined, 0],
    ])
  })

  it('says gap after a message that is larger than its whole history', async () => {
    const broker = await started({ historyMaxBytes: 10 })
    const since = broker.publish({ key: 'a', payload, isBinary: false }).position ?? nowhere
    const large = broker.publish({ key: 'a', payload: new Uint8Array(11), isBinary: true }).position ?? nowhere
    expect(broker.read({ since }, ['#'])).toMatchObject({ messages: [], gap: 'history-expired', position: large })
    expect(broker.read({ since: large }, ['#'])).toEqual({ messages: [], isPartial: false, position: large })
  })

  it('never lends bytes of its history that change later', async () => {
    const broker = await started({ historyMaxMessages: 2 })
    broker.publish({ key: 'a', payload, isBinary: false })
    const [held] = (broker.read({ last: 1 }, ['a']) as ReadResult).messages
    for (let index = 0; index < 10_000; index++)
      broker.publish({ key: 'a', payload: new Uint8Array(10), isBinary: false })
    expect(held?.payload).toEqual(payload)
  })

  it('forgets a message id when its window has passed', async () => {
    let nowMs = 0
    const broker = await started({ dedupeWindowMs: 100, now: () => nowMs })
    const publish = () =>
      broker.publish({ key: 'a', payload, isBinary: false, messageId: messageIdOf('id') }).isDuplicate
    const answers = [0, 99, 100, 199].map((time) => {
      nowMs = time
      return publish()
    })
    expect(answers).toEqual([false, true, false, true])
  })

  it('forgets the oldest message id when there are too many', async () => {
    const broker = await started({ dedupeMaxIds: 2 })
    const publish = (name: string) =>
      broker.publish({ key: 'a', payload, isBinary: false, messageId: messageIdOf(name) }).isDuplicate
    expect(['1', '2', '3', '2', '3', '1', '2'].map(publish)).toEqual([false, false, false, true, true, false, false])
  })

  it.each([{ dedupeMaxIds: 0 }, { dedupeWindowMs: 0 }])('takes every message as new with %j', async (options) => {
    const broker = await started(options)
    const publish = () =>
      broker.publish({ key: 'a', payload, isBinary: false, messageId: messageIdOf('id') }).isDuplicate
    expect([publish(), publish()]).toEqual([false, false])
  })
})
