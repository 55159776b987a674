import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { WebMQClient } from 'webmq-client'
import { WebSocket } from 'ws'
import { ProtocolClient } from '../../packages/server/test/protocol-client.js'
import type { BrokerRow } from './brokers.js'
import { type Drop, Flood } from './flood.js'
import { type JoinFaults, JoinJudge, type Progress } from './join-judge.js'
import { runCount } from './run-count.js'

/** What a listen asks for. `since` is where an earlier one has ended. */
type Range = { readonly last: number } | { readonly rewindMs: number } | { readonly since: string }

interface Join {
  readonly url: string
  readonly pattern: string
  readonly range: Range
  readonly judge: JoinJudge
}

const USUAL_COUNT = 100
const TIMEOUT_MS_PER_JOIN = 500
/** Live messages that a listener waits for. */
const LIVE_COUNT = 20
const WAIT_MS = 20_000
const POLL_MS = 2
/** Before the first listen, so that there is a history. */
const WARM_UP_COUNT = 500
const RANGES: readonly Range[] = [{ last: 10 }, { last: 200 }, { rewindMs: 50 }]
const PATTERNS = ['flood.*', '#', 'flood.#']

/**
 * Listens with history, again and again, while every node publishes to the same keys at full speed: what is replayed and what is live
 * must join. Every second listen goes on where the one before has ended; on another node, where its position is good there.
 */
export function joinsUnderFlood(row: BrokerRow): void {
  describe(`${row.name}: a listen with history while its keys are flooded`, () => {
    for (const [name, join] of [
      ['by the bare protocol', joinByProtocol],
      ['by webmq-client', joinByClient],
    ] as const) {
      const count = runCount(USUAL_COUNT)
      it(`joins replay and live, ${name}`, { timeout: 60_000 + count * TIMEOUT_MS_PER_JOIN }, async () => {
        const system = await row.start('in-process')
        onTestFinished(() => system.stop())
        const flood = new Flood(system.nodes)
        const faults: JoinFaults = { inversions: 0, duplicates: 0, misses: 0, disorders: 0 }
        let [replayedCount, liveCount] = [0, 0]
        let previous: { readonly since: string; readonly progress: Progress } | undefined
        try {
          await vi.waitFor(() => expect(flood.acceptedCount).toBeGreaterThan(WARM_UP_COUNT), { timeout: WAIT_MS })
          for (let index = 0; index < count; index++) {
            const isOn = previous !== undefined && index % 2 === 1
            const { port } = system.nodes[(row.movesTellGap ? index >> 1 : index) % system.nodes.length] ?? {}
            const range = (isOn ? { since: previous?.since } : RANGES[(index >> 1) % RANGES.length]) as Range
            // All of them match all keys, for one that goes on must have had them before.
            const pattern = PATTERNS[index % PATTERNS.length]
            const judge = new JoinJudge(faults, isOn ? previous?.progress : undefined)
            await join({ url: `ws://127.0.0.1:${port}/ws`, pattern: pattern ?? '#', range, judge })
            if (judge.position !== undefined) previous = { since: judge.position, progress: judge.progress }
            replayedCount += judge.replayedCount
            liveCount += judge.liveCount
          }
        } finally {
          await flood.stop()
        }
        const counts = { joins: count, published: flood.acceptedCount, replayedCount, liveCount, ...faults }
        process.stdout.write(`${row.name}, ${name}: ${JSON.stringify(counts)}\n`)
        expect(faults).toEqual({ inversions: 0, duplicates: 0, misses: 0, disorders: 0 })
        expect(replayedCount).toBeGreaterThan(count)
      })
    }
  })
}

async function joinByProtocol({ url, pattern, range, judge }: Join): Promise<void> {
  const client = await ProtocolClient.open(url)
  let promisedCount = 0
  let takenCount = 0
  const take = () => {
    const messages = client.received('message')
    for (const { key, payload, position, replayed } of messages.slice(takenCount)) {
      judge.take(key, JSON.parse(String(payload)) as Drop, position, replayed)
    }
    takenCount = messages.length
  }
  for (let page: Range | undefined = range; page !== undefined; ) {
    const asked: Range = page
    const answer = await client.request((id) => ({ verb: 'listen', id, pattern, ...asked }))
    if (answer.verb === 'error') throw new Error(`listen was answered with ${answer.code}`)
    expect(answer.gap).toBeUndefined()
    promisedCount += answer.replayed ?? 0
    const { more, position } = answer
    page = more && position !== undefined ? { since: position } : undefined
    if (page) await client.until(() => client.received('message').length >= promisedCount)
  }
  await client.until(() => client.received('message').length >= promisedCount + LIVE_COUNT)
  take()
  judge.replayed(promisedCount)
  client.close()
}

async function joinByClient({ url, pattern, range, judge }: Join): Promise<void> {
  const client = new WebMQClient({ url, WebSocket })
  const gaps: unknown[] = []
  client.on('gap', (gap) => gaps.push(gap))
  const { rewindMs, ...others } = { rewindMs: undefined, ...range }
  client.listen<string>(
    pattern,
    (payload, { key, position, replayed }) => judge.take(key, payload as Drop, position, replayed),
    rewindMs === undefined ? others : { rewind: rewindMs },
  )
  await vi.waitFor(() => expect(judge.liveCount).toBeGreaterThanOrEqual(LIVE_COUNT), {
    timeout: WAIT_MS,
    interval: POLL_MS,
  })
  expect(gaps).toEqual([])
  await client.close({ flushMs: 0 })
}
