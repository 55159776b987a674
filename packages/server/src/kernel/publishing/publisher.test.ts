import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import { memoryOptions } from '../../../test/memory-options.js'
import { SlowBroker } from '../../../test/slow-broker.js'
import { MemoryBroker } from '../../adapters/brokers/memory/broker.js'
import { PublishTimings } from '../../features/observing/measuring/publish-timings.js'
import { deferred } from '../base/deferred.js'
import { clientOverHttp, operatorAt, PROCESS } from '../identity/actor.js'
import { ANONYMOUS } from '../identity/index.js'
import type { Broker } from '../ports/broker.js'
import { KeyRules } from '../ports/key-rules.js'
import { type AuthorLimits, type PendingByClient, requestAuthor, trustedLimits } from './author.js'
import type { BatchDraft } from './draft.js'
import { PublishRates } from './publish-rates.js'
import { Publisher, type PublisherContext } from './publisher.js'
import { RateGate } from './rate-gate.js'
import type { TakenRequest } from './requests.js'
import { Stamps } from './stamps.js'
import { WaitingRoom } from './waiting-room.js'

const LIMITS: AuthorLimits = {
  maxWords: 32,
  maxPayloadBytes: 1_000,
  maxPendingPublishBytes: 1_000,
  publishing: undefined,
}

async function started(broker: Broker = new MemoryBroker(memoryOptions()), parts: Partial<PublisherContext> = {}) {
  await broker.start({ deliver: () => true, gap: () => undefined, refused: () => undefined, status: () => undefined })
  const pending = new Map() satisfies PendingByClient
  const publisher = new Publisher({
    broker,
    // Nobody asks.
    responders: { ask: () => expect.unreachable(), assertSupported: () => undefined },
    router: { stepCount: 0 },
    transport: {},
    hooks: undefined,
    waitingRoom: new WaitingRoom({ room: broker.room, maxBytes: 1_000_000, warn: () => undefined }),
    rates: new PublishRates(),
    stamps: new Stamps(new KeyRules([]), Date.now),
    timings: new PublishTimings({ hasListeners: () => false }),
    tracer: undefined,
    observer: undefined,
    ...parts,
  })
  const caller = (address: string, limits: Partial<AuthorLimits> = {}) =>
    requestAuthor(clientOverHttp(ANONYMOUS, address), { ...LIMITS, ...limits }, pending)
  return { publisher, pending, caller }
}

const PROCESS_AUTHOR = requestAuthor(PROCESS, trustedLimits(LIMITS), new Map())

const draft = (key: string, bytes = 1): BatchDraft => ({ key, payload: new Uint8Array(bytes), isBinary: true })
const batch = (count: number, bytes?: number) => [count, () => draft('k', bytes)] as const

describe('Publisher', () => {
  it('makes no promise while the broker answers at once', async () => {
    const { publisher, caller } = await started()
    expect(publisher.publish(caller('::1'), draft('k'), true)).toMatchObject({ isDuplicate: false })
    expect(publisher.publishAll(caller('::1'), ...batch(2))).toMatchObject([{}, {}])
  })

  it('bounds the requests of one caller that wait for the node of a responder', async () => {
    const { promise, resolve } = deferred<TakenRequest>()
    const { publisher, caller, pending } = await started(undefined, {
      responders: { ask: () => promise, assertSupported: () => undefined },
    })
    const ask = () => publisher.request(caller('203.0.113.7'), draft('k', 500), true, 1_000)
    const [first, other] = [ask(), publisher.request(caller('203.0.113.8'), draft('k', 500), true, 1_000)]
    expect(ask).toThrow(expect.objectContaining({ code: 'E_BROKER_UNAVAILABLE', retryable: true }))
    resolve({ reply: new Promise(() => undefined) })
    await Promise.all([first, other])
    expect(pending.size).toBe(0)
    await ask()
  })

  it('bounds what one caller has waiting for the broker, over all its requests, and no other caller', async () => {
    const broker = new SlowBroker(new MemoryBroker(memoryOptions()))
    const { publisher, caller, pending } = await started(broker)
    const first = publisher.publish(caller('203.0.113.7'), draft('k', 500), true)
    expect(() => publisher.publish(caller('203.0.113.7'), draft('k', 500), true)).toThrow(
      expect.objectContaining({ code: 'E_BROKER_UNAVAILABLE', retryable: true }),
    )
    expect(() => publisher.publishAll(caller('203.0.113.7'), ...batch(2, 200))).toThrow('of this caller wait')
    const others = [
      publisher.publish(caller('203.0.113.8'), draft('k', 500), true),
      publisher.publishAll(caller('203.0.113.9'), ...batch(10)),
    ]
    await expect.poll(() => broker.waitingCount).toBe(12)
    for (let count = 0; count < 12; count++) broker.release()
    await Promise.all([first, ...others])
    expect(pending.get('address 203.0.113.7')).toBeUndefined()
    const again = publisher.publish(caller('203.0.113.7'), draft('k', 500), true)
    await expect.poll(() => broker.waitingCount).toBe(1)
    broker.release()
    await again
  })

  it('lets requests wait in turn for a broker that is too slow, batches too, and refuses them after a second', async () => {
    const broker = new SlowBroker(new MemoryBroker(memoryOptions()))
    const { publisher, caller, pending } = await started(broker)
    broker.room.isFull = true
    const sent = [
      publisher.publish(caller('203.0.113.7'), draft('k'), true),
      publisher.publishAll(caller('203.0.113.8'), ...batch(2)),
      publisher.publish(PROCESS_AUTHOR, draft('k'), true),
    ]
    // The application itself does not wait.
    await expect.poll(() => broker.published.length).toBe(1)
    expect(pending.get('address 203.0.113.8')).toBe(2 * 257)
    broker.room.isFull = false
    broker.room.onRoom?.()
    await expect.poll(() => broker.waitingCount).toBe(4)
    while (broker.waitingCount > 0) broker.release()
    await Promise.all(sent)
    expect([...pending.values()]).toEqual([])
    broker.room.isFull = true
    await expect(publisher.publish(caller('203.0.113.7'), draft('k'), true)).rejects.toMatchObject({
      code: 'E_RATE_LIMIT',
      retryable: true,
      retryAfterMs: expect.any(Number),
    })
    expect([...pending.values()]).toEqual([])
  })

  // Symptom: after a stall of the broker for 2 s, the chat of a connection that also publishes cursors was refused for 10 s more.
  it.each([
    ['that asks for no acknowledgement is waited for by nobody', {}, undefined],
    ['that comes again goes first', { id: '1' }, 'E_RATE_LIMIT'],
  ])('a refused message %s', async (_, request, code) => {
    const broker = new SlowBroker(new MemoryBroker(memoryOptions()))
    const { publisher, caller } = await started(broker)
    const gate = new RateGate()
    const author = Object.assign(caller('203.0.113.7'), { publishGateOf: () => gate })
    broker.room.isFull = true
    const refused = publisher.publish(author, { ...draft('k'), messageId: 'm1', ...request }, true)
    const { retryAfterMs } = await (refused as Promise<never>).catch((error: { retryAfterMs: number }) => error)
    broker.room.isFull = false
    await sleep(retryAfterMs + 10)
    const publish = async () => publisher.publish(author, { ...draft('k'), id: '2', messageId: 'm2' }, true)
    const published = publish().catch((error: WebMQError) => error.code)
    if (code === undefined) {
      await expect.poll(() => broker.waitingCount).toBe(1)
      broker.release()
      expect(await published).toMatchObject({ isDuplicate: false })
    } else expect(await published).toBe(code)
  })

  // Symptom: a broker that stood still for 6 s failed all that it had been given. Cause: `E_TIMEOUT` named no time to come again.
  it('says when what the broker has not answered may come again, and lets nothing of its connection go before', async () => {
    const broker = new SlowBroker(new MemoryBroker(memoryOptions()))
    const { publisher, caller } = await started(broker)
    const gate = new RateGate()
    const author = Object.assign(caller('203.0.113.7'), { publishGateOf: () => gate })
    const publish = async (messageId: string, request = { id: messageId }) =>
      publisher.publish(author, { ...draft('k'), ...request, messageId }, true)
    const unanswered = (published: () => Promise<unknown>) => {
      broker.failure = new WebMQError('E_TIMEOUT')
      return published().catch((error: unknown) => error)
    }
    const refusals = [unanswered(() => publish('m0', {} as { id: string })), unanswered(() => publish('m1'))]
    await expect.poll(() => broker.waitingCount).toBe(2)
    broker.room.isFull = true
    const behind = publish('m2').catch((error: unknown) => error)
    broker.release()
    broker.release()
    const [ofNobody, refused] = await Promise.all(refusals)
    expect(refused).toMatchObject({ code: 'E_TIMEOUT', retryAfterMs: expect.any(Number) })
    expect(ofNobody).toMatchObject({ code: 'E_TIMEOUT' })
    expect(ofNobody).not.toHaveProperty('retryAfterMs')
    broker.room.isFull = false
    broker.room.onRoom?.()
    expect(await behind).toMatchObject({ code: 'E_RATE_LIMIT', retryAfterMs: expect.any(Number) })
    await sleep((refused as { retryAfterMs: number }).retryAfterMs + 10)
    await expect(publish('m2')).rejects.toMatchObject({ code: 'E_RATE_LIMIT' })
    const again = [publish('m1'), publish('m2')]
    await expect.poll(() => broker.waitingCount).toBe(2)
    broker.release()
    broker.release()
    expect(await Promise.all(again)).toHaveLength(2)
  })

  it('counts what waits for hooks too', async () => {
    const decision = deferred<undefined>()
    const hooks = { publish: () => decision.promise }
    const { publisher, caller } = await started(undefined, { hooks })
    const first = publisher.publish(caller('203.0.113.7'), draft('k', 500), true)
    expect(() => publisher.publish(caller('203.0.113.7'), draft('k', 500), true)).toThrow('of this caller wait')
    decision.resolve(undefined)
    expect(await first).toMatchObject({ isDuplicate: false })
  })

  it('counts nothing that was refused against a rate', async () => {
    const rate = { perSecond: 1, bytesPerSecond: undefined, burstMs: 1_000 }
    const { publisher, pending } = await started()
    const identity = { userId: 'ann', grants: [{ keys: ['open'], allow: ['publish'] as const }] }
    const limits = { ...LIMITS, publishing: { ofConnection: rate, ofUser: rate } }
    const ann = requestAuthor(clientOverHttp(identity, '::1'), limits, pending)
    for (let count = 0; count < 3; count++)
      expect(() => publisher.publish(ann, draft('closed'), true)).toThrow(
        expect.objectContaining({ code: 'E_FORBIDDEN' }),
      )
    expect(publisher.publish(ann, draft('open'), true)).toMatchObject({ isDuplicate: false })
    expect(() => publisher.publish(ann, draft('open'), true)).toThrow(expect.objectContaining({ code: 'E_RATE_LIMIT' }))
  })

  it('asks no hook about the application itself, and lets it publish everywhere but to keys of the servers', async () => {
    const hooks = {
      publish: () => {
        throw new Error('it is not asked')
      },
    }
    const { publisher, pending } = await started(undefined, { hooks })
    for (const actor of [PROCESS, operatorAt('203.0.113.7')]) {
      const author = requestAuthor(actor, trustedLimits(LIMITS), pending)
      expect(publisher.publish(author, draft('any'), true)).toMatchObject({ isDuplicate: false })
      expect(() => publisher.publish(author, draft('$any'), true)).toThrow(
        expect.objectContaining({ code: 'E_KEY_INVALID' }),
      )
      expect(() => publisher.publish(author, draft('k', 1_001), true)).toThrow(
        expect.objectContaining({ code: 'E_PAYLOAD_TOO_LARGE' }),
      )
    }
  })

  it('has a stack where a program publishes what it must not', async () => {
    const { publisher, pending } = await started()
    const author = requestAuthor(PROCESS, trustedLimits(LIMITS), pending)
    let stack: string | undefined
    try {
      void publisher.publish(author, draft('$any'), true)
    } catch (error) {
      stack = (error as Error).stack
    }
    expect(stack).toContain('publisher.test')
  })
})
