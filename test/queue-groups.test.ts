import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { startNats, startRabbitmq, startRedis } from 'webmq-services'
import { type Fault, playGroups } from './group-play.js'
import { inTurn } from './in-turn.js'

// Symptom: publishes were answered `ok`, and no member got them, though all stayed connected to a healthy node. Cause: a node
// that did not answer in time counted as one without members.

const START = { redis: startRedis, nats: () => startNats({ hasJetStream: true }), rabbitmq: startRabbitmq } as const
const FAULT_MS = 3_500

const CUT: Fault = async ({ link }) => {
  await link.cut()
  await sleep(FAULT_MS)
  await link.heal()
}
const STOP: Fault = async ({ members }) => {
  members.process.kill('SIGSTOP')
  await sleep(FAULT_MS)
  members.process.kill('SIGCONT')
}
const restart =
  (awayMs: number): Fault =>
  async ({ broker }) => {
    await broker.kill()
    await sleep(awayMs)
    await broker.restart()
  }

const CASES: readonly [keyof typeof START, string, Fault][] = [
  ['redis', 'is cut off from its broker', CUT],
  ['nats', 'is cut off from its broker', CUT],
  ['redis', 'stands still', STOP],
  ['nats', 'stands still', STOP],
  ['rabbitmq', 'stands still', STOP],
  ['nats', 'and all others lose their broker for 0.3 s', restart(300)],
  ['nats', 'and all others lose their broker for 1 s', restart(1_000)],
  ['nats', 'and all others lose their broker for 3 s', restart(3_000)],
]
/** They mostly wait. */
const SIDE_BY_SIDE = { concurrent: true }
const PLAYED = inTurn(CASES, 4)

describe.each(PLAYED)(
  'over %s, a queue group whose members are on one node that %s',
  SIDE_BY_SIDE,
  (kind, _, fault) => {
    it('gets each message whose publish has resolved, once, and each request at most once', async ({
      onTestFinished,
    }) => {
      const broker = await START[kind]()
      onTestFinished(() => broker.stop())
      const { acknowledgedCount, ...outcome } = await playGroups(broker, fault, onTestFinished)
      expect(outcome).toEqual({ lost: [], counts: { taken: [1], asked: [1] }, final: [] })
      expect(acknowledgedCount).toBeGreaterThan(100)
    })
  },
)
