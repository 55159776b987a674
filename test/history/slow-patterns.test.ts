import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type ListenOptions, WebMQClient } from 'webmq-client'
import { createServer } from 'webmq-server'
import { WebSocket } from 'ws'
import { Relay } from './relay.js'

const COUNT = 4_000
const KEYS = 20
const TIMEOUT_MS = 60_000
/** Together far more than an outbox and the kernel hold. */
const FILLING = 'x'.repeat(4_000)

interface Price {
  readonly number: number
}

/** A listener behind a link that stands still while messages are published, and another one that reads. */
async function startSlow(overflow: readonly string[], options: ListenOptions = {}) {
  const server = createServer({
    port: 0,
    logLevel: 'silent',
    maxPayloadBytes: 8_000,
    maxOutboxBytes: 256 * 1_024,
    historyMaxBytes: 64 * 1_048_576,
    overflow,
  })
  const { url, port } = await server.start()
  onTestFinished(() => server.stop({ drainMs: 0 }))
  const relay = await Relay.start(() => port)
  onTestFinished(() => relay.stop())
  const listener = new WebMQClient({ url: relay.url, WebSocket, reconnect: { minMs: 5 } })
  const witness = new WebMQClient({ url, WebSocket })
  for (const client of [listener, witness]) onTestFinished(() => client.close({ flushMs: 0 }))
  /** Numbers of messages, and reasons of gaps, in the order in which they came. */
  const seen: (number | string)[] = []
  const seenByWitness: number[] = []
  listener.on('gap', ({ reason }) => seen.push(reason))
  await listener.listen('prices.#', (price) => seen.push((price as Price).number), options).ready
  await witness.listen('prices.#', (price) => seenByWitness.push((price as Price).number), { overflow: 'disconnect' })
    .ready
  const flood = async () => {
    relay.inflict('stall')
    for (let number = 0; number < COUNT; number++) {
      await server.publish(`prices.${number % KEYS}`, { number, filling: FILLING })
    }
    await vi.waitFor(() => expect(seenByWitness).toHaveLength(COUNT), { timeout: TIMEOUT_MS })
  }
  const untilLast = async () => await vi.waitFor(() => expect(seen.at(-1)).toBe(COUNT - 1), { timeout: TIMEOUT_MS })
  return { server, relay, listener, seen, flood, untilLast }
}

const newest = Array.from({ length: KEYS }, (_, index) => COUNT - KEYS + index)

/** A gap stands where numbers are missing, and nowhere else. What the kernel takes meanwhile decides how many there are. */
function expectGapsInPlace(seen: readonly (number | string)[], reason: string): void {
  expect(seen).toContain(reason)
  let next = 0
  let isTold = false
  for (const one of seen) {
    if (typeof one === 'number') {
      expect(isTold).toBe(one !== next)
      next = one + 1
      isTold = false
    } else {
      expect([one, isTold]).toEqual([reason, false])
      isTold = true
    }
  }
}

describe('readers that are slow', () => {
  it('get the newest message of each key, in order, and stay connected', async () => {
    const { server, relay, seen, flood, untilLast } = await startSlow(['other.#=disconnect', 'prices.#=latest'])
    await flood()
    relay.resume()
    await untilLast()
    expect(seen.slice(-KEYS)).toEqual(newest)
    expect(seen).toEqual((seen as number[]).toSorted((a, b) => a - b))
    const { conflatedCount, slowConsumerCount } = server.stats().transport
    expect([seen.length + conflatedCount, slowConsumerCount]).toEqual([COUNT, 0])
  })

  it('are told where messages are missing, if they ask', async () => {
    const { relay, seen, flood, untilLast } = await startSlow(['#=latest'], { overflow: 'latest-told' })
    await flood()
    relay.resume()
    await untilLast()
    expectGapsInPlace(seen, 'conflated')
  })

  it('get the newest messages behind a gap that is told in its place, if their listen asks for it', async () => {
    const { relay, server, seen, flood, untilLast } = await startSlow(['prices.#=latest'], { overflow: 'drop-oldest' })
    await flood()
    relay.resume()
    await untilLast()
    expectGapsInPlace(seen, 'slow-consumer')
    const count = seen.filter((one) => typeof one === 'number').length
    expect(server.stats().transport).toMatchObject({ slowConsumerCount: 0, droppedCount: COUNT - count })
  })

  it('go on after a break with everything that came since, and with no gap', async () => {
    const { relay, seen, flood, untilLast, listener } = await startSlow(['#=latest'])
    await flood()
    relay.resume()
    relay.inflict('cut')
    await untilLast()
    expect(listener.status.state).toBe('connected')
    expect(seen.slice(-KEYS)).toEqual(newest)
    expect(seen).toEqual((seen as number[]).toSorted((a, b) => a - b))
  })

  it('are closed with 4008 if no rule contains their pattern, or if they ask for it', async () => {
    for (const [rule, options] of [
      ['prices.1=latest', {}],
      ['#=latest', { overflow: 'disconnect' }],
    ] as const) {
      const { relay, server, seen, flood, untilLast } = await startSlow([rule], options)
      await flood()
      await vi.waitFor(() => expect(server.stats().transport.slowConsumerCount).toBe(1), { timeout: TIMEOUT_MS })
      relay.resume()
      await untilLast()
      expect(seen).toEqual(Array.from({ length: COUNT }, (_, number) => number))
    }
  })
})
