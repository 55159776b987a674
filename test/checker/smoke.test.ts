import { expect, it } from 'vitest'
import { freePort } from 'webmq-services'
import { Listener } from '../../packages/check/src/actors/listener.js'
import { Member } from '../../packages/check/src/actors/member.js'
import { Publisher } from '../../packages/check/src/actors/publisher.js'
import { Reader } from '../../packages/check/src/actors/reader.js'
import { judge } from '../../packages/check/src/judging/judge.js'
import { createRunRecord } from '../../packages/check/src/judging/record.js'
import type { Rules } from '../../packages/check/src/judging/rules.js'
import { startServerProcess } from '../server-process.js'

/** Cuts, stalls and moves until the run is over. */
const LEAST_TURNS = 16
const CUT_EVERY_MS = 150

/** A memory broker that logs half of the keys. */
const RULES: Rules = {
  logged: ['a.#'],
  log: 'per-node',
  isDurable: false,
  keeps: { messageCount: 100_000, ageMs: 600_000 },
  dedupe: { windowMs: 120_000, maxIds: 100_000, coversUnlogged: true, isExact: true },
  answerWithinMs: 10_000,
  liveWithinMs: 10_000,
  deliverWithinMs: 3_000,
  settleMs: 1_000,
  leaseMs: 10_000,
}

it('finds nothing wrong with a memory broker whose clients are cut, stall and read history', async () => {
  const port = await freePort()
  const flags = ['--history', 'a.#=100000', '--history-max-messages', '100000', '--history-max-bytes', '256MiB']
  const server = await startServerProcess(port, flags)
  const record = createRunRecord()
  const beganAtMs = performance.now()
  const nowMs = () => performance.now() - beganAtMs
  const node = { name: 'node', url: `ws://127.0.0.1:${port}/ws` }
  const shared = { record, nowMs, random: Math.random, chooseNode: () => node }
  const publishers = [0, 1, 2].map(
    (number) =>
      new Publisher({
        ...shared,
        name: `p${number}`,
        keys: ['a.x', `a.${number}`, 'b.x', `b.${number}.z`],
        burstCount: 4,
        noechoShare: 0.3,
        twinShare: 0.05,
        againShare: 0.05,
      }),
  )
  const listeners = [
    ['a.#', 'a.x'],
    ['#', 'a.*', 'b.x'],
    ['a.x', 'a.1', 'a.2', 'b.#'],
  ].map(
    (patterns, number) =>
      new Listener({
        ...shared,
        name: `l${number}`,
        listens: patterns.map((pattern, at) => ({ pattern, start: at === 1 ? { last: 10 } : 'now' })),
      }),
  )
  const reader = new Reader({ ...shared, name: 'r', keys: ['a.x', 'a.0'], everyMs: 50 })
  const members = [0, 1].map((number) => new Member({ ...shared, name: `m${number}`, group: 'g', pattern: '#' }))
  const actors = [...publishers, ...listeners, reader, ...members]
  try {
    for (const actor of actors) actor.start()
    let turn = 0
    const cuts = setInterval(() => {
      const victims = [...listeners, ...publishers]
      const victim = victims[turn++ % victims.length]
      if (turn % 5 === 0) victim?.stall(200)
      else victim?.cut()
      const listener = listeners[turn % listeners.length]
      if (turn % 4 === 0) listener?.moveDuringReplay(2)
      if (turn % 3 === 0) listener?.relisten()
    }, CUT_EVERY_MS)
    // A least number of each: however long a slow machine takes.
    await expect.poll(() => turn).toBeGreaterThanOrEqual(LEAST_TURNS)
    await expect.poll(() => record.publishers.flatMap(({ messages }) => messages).length).toBeGreaterThan(500)
    await expect
      .poll(() => record.listeners.flatMap(({ events }) => events).filter(({ what }) => what === 'message').length)
      .toBeGreaterThan(1_000)
    await expect.poll(() => record.reads.filter(({ verb }) => verb === 'listen').length).toBeGreaterThan(0)
    clearInterval(cuts)
    for (const publisher of publishers) publisher.pause()
    await expect.poll(() => publishers.every(({ isSettled }) => isSettled)).toBe(true)
    await expect.poll(() => listeners.every(({ isLive }) => isLive)).toBe(true)
    await new Promise((resolve) => setTimeout(resolve, RULES.deliverWithinMs + 500))
    record.endedAtMs = nowMs()
  } finally {
    for (const actor of actors) await actor.stop()
    await server.kill('SIGKILL')
  }
  expect(judge(record, RULES)).toEqual([])
  expect(record.members.every(({ tasks }) => tasks.length > 0)).toBe(true)
  // Without `noecho` they come back.
  expect(record.publishers.every(({ echoes }) => echoes.length > 0)).toBe(true)
})
