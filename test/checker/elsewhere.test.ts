import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Service, startRedis } from 'webmq-services'
import { count } from '../../packages/check/src/targets/count.js'
import { playOn } from '../../packages/check/src/targets/play.js'
import { drawSchedule } from '../../packages/check/src/targets/schedule.js'
import { socketIo } from '../../packages/check/src/targets/socket-io.js'
import { webmq } from '../../packages/check/src/targets/webmq.js'

/** Start, faults, the return of the clients, and a machine that does other things. */
const timeout = 120_000
let redis: Service
let folder: string

beforeAll(async () => {
  redis = await startRedis({ isPrivate: true })
  folder = mkdtempSync(path.join(tmpdir(), 'webmq-judge-'))
})
afterAll(async () => {
  await redis.stop()
  rmSync(folder, { recursive: true, force: true })
})

const playMove = (system: typeof webmq, namespace: string) =>
  playOn(system, drawSchedule('move', 1, 2_000), { redisUrl: redis.url, folder, namespace })

describe('a play of a system', () => {
  it('of WebMQ ends with nothing lost', { timeout }, async () => {
    const counts = count(await playMove(webmq, 'webmq'))
    expect(counts).toMatchObject({ toldLost: 0, silentlyLost: 0, doubled: 0, inverted: 0, falselyRecovered: 0 })
    expect(counts.acked).toBeGreaterThan(0)
    expect(counts.recovered).toBeGreaterThan(0)
  })

  // How much it loses is chance, and not ours to promise.
  it('of Socket.IO has its recoveries in the record', { timeout }, async () => {
    const played = await playMove(socketIo, 'socket-io')
    expect(played.listeners.every(({ events }) => events.some(({ what }) => what === 'message'))).toBe(true)
    expect(count(played).recovered + count(played).toldGaps).toBeGreaterThan(0)
  })
})
