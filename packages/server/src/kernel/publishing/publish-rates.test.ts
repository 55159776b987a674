import { expect, it } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import { PublishRates } from './publish-rates.js'
import { RateGate, type RateLimit } from './rate-gate.js'

const UNLIMITED: RateLimit = { perSecond: undefined, bytesPerSecond: undefined, burstMs: 1_000 }
const MESSAGES: RateLimit = { ...UNLIMITED, perSecond: 10 }
const BYTES: RateLimit = { ...UNLIMITED, bytesPerSecond: 1_000 }

/** Messages that pass at once. */
function burst(gate: RateGate, limit: RateLimit, nowMs: number, byteCount = 1): number {
  let count = 0
  while (count < 1_000 && gate.closedMs(limit, nowMs) === 0) {
    gate.pass(byteCount)
    count++
  }
  return count
}

it('lets a burst pass, then the rate', () => {
  const gate = new RateGate()
  expect(burst(gate, MESSAGES, 0)).toBe(10)
  expect(gate.closedMs(MESSAGES, 0)).toBe(250)
  expect(gate.closedMs(MESSAGES, 249)).toBe(1)
  let count = 0
  for (let nowMs = 0; nowMs < 60_000; nowMs += 10) count += burst(gate, MESSAGES, nowMs)
  expect(count).toBeGreaterThan(590)
  expect(count).toBeLessThanOrEqual(600)
  expect(burst(gate, MESSAGES, 1_000_000)).toBe(10)
})

it('never lets more pass in any time than burst and rate', () => {
  const gate = new RateGate()
  const passedAtMs: number[] = []
  for (let nowMs = 0; nowMs < 20_000; nowMs += 1 + ((nowMs * 7) % 301)) {
    for (let count = burst(gate, MESSAGES, nowMs); count > 0; count--) passedAtMs.push(nowMs)
  }
  for (const [index, fromMs] of passedAtMs.entries()) {
    for (const [offset, untilMs] of passedAtMs.slice(index).entries()) {
      expect(offset + 1).toBeLessThanOrEqual(11 + ((untilMs - fromMs) * 10) / 1_000)
    }
  }
})

it('stays closed until what was on its way has been refused', () => {
  const gate = new RateGate()
  const fast = { ...MESSAGES, perSecond: 1_000 }
  burst(gate, fast, 0)
  for (let nowMs = 0; nowMs < 250; nowMs += 10) expect(gate.closedMs(fast, nowMs)).toBe(250 - nowMs)
  expect(gate.closedMs(fast, 250)).toBe(0)
})

// Symptom: with a broker that was too slow, 38,579 of 2.4M deliveries were out of order. Cause: a client whose event loop was late
// by more than the gate was closed had sent on before it read the refusal, and only then sent the refused messages again.
it('lets the message pass first that a slow broker was too slow for, however late it comes', () => {
  let nowMs = 0
  const rates = new PublishRates(() => nowMs)
  const gate = new RateGate()
  const limits = { ofConnection: UNLIMITED, ofUser: UNLIMITED }
  const publish = (id: string) => () => rates.pass(gate, undefined, limits, 1, 1, id)
  const refused = (id: string) => rates.refusedByBroker(gate, id, 1_000)
  const refusal = (retryAfterMs: number) => expect.objectContaining({ code: 'E_RATE_LIMIT', retryAfterMs })
  expect(refused('1')).toEqual(refusal(1_000))
  expect(publish('2')).toThrow(refusal(1_000))
  nowMs = 3_000
  expect(publish('3')).toThrow(refusal(250))
  expect(rates.isPausing).toBe(true)
  publish('1')()
  expect(refused('1')).toEqual(refusal(1_000))
  nowMs = 4_000
  expect(publish('2')).toThrow(refusal(250))
  for (const id of ['1', '2', '3']) publish(id)()
  expect(refused('4')).toEqual(refusal(1_000))
  nowMs = 9_999
  expect(publish('5')).toThrow(refusal(250))
  nowMs = 10_000
  publish('5')()
  expect(rates.isPausing).toBe(false)
})

// Symptom: on a busy machine, message 45 of a burst overtook message 42. Cause: the server read the end of the burst when the
// gate, which had refused 42, was open again.
it.each([
  ['its connection', { ofConnection: MESSAGES, ofUser: UNLIMITED }],
  ['its user', { ofConnection: UNLIMITED, ofUser: MESSAGES }],
])('lets the message pass first that came too fast for %s, however late the rest of its burst is read', (_, limits) => {
  let nowMs = 0
  const rates = new PublishRates(() => nowMs)
  const gate = new RateGate()
  const publish = (id?: string) => () => rates.pass(gate, 'ann', limits, 1, 1, id)
  const refusal = (retryAfterMs: number) =>
    expect.objectContaining({ retryAfterMs, message: expect.stringContaining('publishes too fast') })
  for (let id = 0; id < 10; id++) publish(`${id}`)()
  expect(publish()).toThrow(refusal(250))
  expect(publish('10')).toThrow(refusal(250))
  nowMs = 3_000
  expect(publish('11')).toThrow(refusal(250))
  expect(publish()).toThrow(refusal(250))
  for (const id of ['10', '11', '12']) publish(id)()
  expect(rates.refusedCounts.broker).toBe(0)
})

it('lets what has passed go before what was refused after it', () => {
  let nowMs = 0
  const rates = new PublishRates(() => nowMs)
  const gate = new RateGate()
  const limits = { ofConnection: MESSAGES, ofUser: UNLIMITED }
  const pass = (id: string) => rates.pass(gate, undefined, limits, 1, 1, id)
  for (let id = 0; id < 10; id++) pass(`${id}`)
  expect(() => pass('10')).toThrow()
  // It waits for the broker.
  rates.assertFirst(gate, '9')
  rates.refusedByBroker(gate, '9', 1_000)
  nowMs = 1_000
  expect(() => pass('10')).toThrow()
  for (const id of ['9', '10']) pass(id)
})

it('knows how often the next messages of a connection were refused, and forgets who does not come again', () => {
  let nowMs = 0
  const rates = new PublishRates(() => nowMs)
  const gate = new RateGate()
  const limits = { ofConnection: UNLIMITED, ofUser: UNLIMITED }
  const pass = (id?: string) => rates.pass(gate, undefined, limits, 1, 1, id)
  const ids = Array.from({ length: 40 }, (_, index) => `${index}`)
  const refuseAll = (refusedCount: number) => {
    rates.refusedByBroker(gate, '0', 1_000, refusedCount)
    for (const id of ids.slice(1)) expect(() => pass(id)).toThrow()
  }
  refuseAll(0)
  nowMs = 1_000
  expect(pass('0')).toBe(1)
  refuseAll(1)
  nowMs = 2_000
  // No more than 32 are remembered.
  expect(ids.map((id) => pass(id))).toEqual(ids.map((_, index) => (index < 32 ? 2 : 0)))
  expect([pass('0'), pass()]).toEqual([0, 0])
  refuseAll(0)
  nowMs = 60_000
  rates.refusedByBroker(gate, 'x', 1_000)
  nowMs = 61_000
  expect([pass('x'), pass('1')]).toEqual([1, 0])
})

it('waits anew for a message that is refused once more', () => {
  const gate = new RateGate()
  gate.close('broker', 1_000, 0, '1')
  gate.close('broker', 6_000, 5_000, '1')
  gate.close('broker', 6_000, 5_000, '2')
  expect(gate.closedMs(UNLIMITED, 10_999, '2')).toBe(250)
  expect(gate.closedMs(UNLIMITED, 10_999, '1')).toBe(0)
})

it('waits for the oldest of those that the broker was given, before all that it was not', () => {
  let nowMs = 0
  const rates = new PublishRates(() => nowMs)
  const gate = new RateGate()
  const limits = { ofConnection: UNLIMITED, ofUser: UNLIMITED }
  const unanswered = (id: string, retryAfterMs: number) =>
    rates.unanswered(gate, id, new WebMQError('E_TIMEOUT'), () => retryAfterMs)
  rates.refusedByBroker(gate, '3', 1_000)
  nowMs = 4_000
  expect(unanswered('1', 800)).toMatchObject({ code: 'E_TIMEOUT', retryAfterMs: 800 })
  // All of a connection come again at the same time.
  expect(unanswered('2', 1_500)).toMatchObject({ retryAfterMs: 800 })
  expect(() => rates.assertFirst(gate, '3')).toThrow(expect.objectContaining({ retryAfterMs: 800 }))
  nowMs = 4_800
  for (const id of ['2', '3']) expect(() => rates.pass(gate, undefined, limits, 1, 1, id)).toThrow()
  for (const id of ['1', '2', '3']) rates.pass(gate, undefined, limits, 1, 1, id)
  rates.refusedByBroker(gate, '4', 1_000)
  unanswered('3', 800)
  nowMs = 5_800
  expect(() => rates.pass(gate, undefined, limits, 1, 1, '4')).toThrow()
  rates.pass(gate, undefined, limits, 1, 1, '3')
})

it('waits for no message that nobody sends again', () => {
  const gate = new RateGate()
  gate.close('broker', 1_000, 0, undefined)
  expect(gate.closedMs(UNLIMITED, 999, '2')).toBe(1)
  expect(gate.closedMs(UNLIMITED, 1_000, '2')).toBe(0)
  gate.close('broker', 3_000, 2_000, undefined)
  for (const id of [undefined, '3', '4']) expect(gate.closedMs(UNLIMITED, 2_500, id)).toBe(500)
  expect(gate.closedMs(UNLIMITED, 3_000, '5')).toBe(250)
  for (const id of ['3', '4', '5']) expect(gate.closedMs(UNLIMITED, 3_000, id)).toBe(0)
})

// Symptom: a chat message beside typing that asks for an acknowledgement, and is dropped when it is refused, came 5 s later.
it('waits for no message once a later one comes again, which its client would have sent behind it', () => {
  let nowMs = 0
  const rates = new PublishRates(() => nowMs)
  const gate = new RateGate()
  const limits = { ofConnection: UNLIMITED, ofUser: UNLIMITED }
  const pass = (id: string) => rates.pass(gate, undefined, limits, 1, 1, id)
  rates.refusedByBroker(gate, 'typing-1', 1_000)
  for (const id of ['chat', 'typing-2']) expect(() => pass(id)).toThrow()
  nowMs = 1_000
  expect(() => pass('typing-3')).toThrow(expect.objectContaining({ retryAfterMs: 250 }))
  expect(pass('chat')).toBe(1)
  expect(pass('typing-4')).toBe(0)
  // However many there are.
  rates.refusedByBroker(gate, 'cursor', 1_000)
  for (let count = 0; count < 100; count++) expect(() => pass(`cursor-${count}`)).toThrow()
  nowMs = 2_000
  expect(() => pass('chat-2')).toThrow(expect.objectContaining({ retryAfterMs: 250 }))
  nowMs = 2_250
  pass('chat-2')
})

it('lets a message pass that is larger than a burst of bytes, and pays it off', () => {
  const gate = new RateGate()
  expect(burst(gate, BYTES, 0, 10_000)).toBe(1)
  expect(gate.closedMs(BYTES, 0)).toBe(9_001)
  expect(gate.closedMs(BYTES, 9_000)).toBe(1)
  expect(gate.closedMs(BYTES, 9_001)).toBe(0)
})

it('follows a new limit', () => {
  const gate = new RateGate()
  burst(gate, { ...MESSAGES, perSecond: 100 }, 0)
  expect(burst(gate, MESSAGES, 10_000)).toBe(10)
  expect(burst(gate, { ...MESSAGES, perSecond: 100 }, 20_000)).toBe(100)
  expect(burst(gate, UNLIMITED, 30_000)).toBe(1_000)
})

it('counts a user over its connections, and what one of them is refused for no other', () => {
  const rates = new PublishRates(() => 0)
  const limits = { ofConnection: { ...MESSAGES, perSecond: 6 }, ofUser: MESSAGES }
  const [one, other] = [new RateGate(), new RateGate()]
  for (let count = 0; count < 6; count++) rates.pass(one, 'ann', limits, 1)
  expect(() => rates.pass(one, 'ann', limits, 1)).toThrow(
    expect.objectContaining({ code: 'E_RATE_LIMIT', retryAfterMs: 250, retryable: true }),
  )
  for (let count = 0; count < 3; count++) rates.pass(other, 'ann', limits, 1)
  rates.pass(undefined, 'ann', limits, 1, 1)
  expect(() => rates.pass(other, 'ann', limits, 1)).toThrow(
    'this user publishes too fast, at most 10 messages per second',
  )
  expect(() => rates.pass(undefined, 'ann', limits, 1)).toThrow(expect.objectContaining({ code: 'E_RATE_LIMIT' }))
  rates.pass(new RateGate(), 'bob', limits, 1)
  rates.pass(new RateGate(), undefined, limits, 1)
  expect(rates.refusedCounts).toEqual({ connection: 1, user: 2, broker: 0 })
})

it('lets a batch pass as a whole, and waits until it is paid off', () => {
  const rates = new PublishRates(() => 0)
  const limits = { ofConnection: UNLIMITED, ofUser: MESSAGES }
  rates.pass(undefined, 'ann', limits, 1, 30)
  expect(() => rates.pass(undefined, 'ann', limits, 1)).toThrow(expect.objectContaining({ retryAfterMs: 2_100 }))
})

it('forgets users who rest', () => {
  let nowMs = 0
  const rates = new PublishRates(() => nowMs)
  const limits = { ofConnection: UNLIMITED, ofUser: { ...MESSAGES, perSecond: 1 } }
  for (let user = 0; user < 1_000; user++) rates.pass(undefined, `user-${user}`, limits, 1)
  for (let round = 0; round < 3; round++) {
    nowMs += 10_000
    rates.pass(undefined, `late-${round}`, limits, 1)
  }
  expect(rates.userCount).toBeLessThanOrEqual(3)
})

// Symptom: a refused publish took twice as long as an accepted one. Cause: each made an error of its own, and its JSON.
it('makes one error for all that is refused in the same way, and counts each', () => {
  let nowMs = 0
  const rates = new PublishRates(() => nowMs)
  const gates = [new RateGate(), new RateGate()] as const
  const refusal = (gate: RateGate, ofConnection: RateLimit): unknown => {
    try {
      return rates.pass(gate, undefined, { ofConnection, ofUser: UNLIMITED }, 1, 100)
    } catch (error) {
      return error
    }
  }
  for (const gate of gates) refusal(gate, MESSAGES)
  const first = refusal(gates[0], MESSAGES)
  expect(first).toMatchObject({ code: 'E_RATE_LIMIT', retryAfterMs: 9_100 })
  expect(refusal(gates[0], MESSAGES)).toBe(first)
  expect(refusal(gates[1], MESSAGES)).toBe(first)
  expect(refusal(gates[1], BYTES)).toMatchObject({ message: expect.stringContaining('1000 bytes per second') })
  nowMs = 1
  expect(refusal(gates[0], MESSAGES)).toMatchObject({ retryAfterMs: 9_099 })
  expect(rates.refusedCounts).toEqual({ connection: 5, user: 0, broker: 0 })
})
