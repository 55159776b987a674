import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { type HistoryResult, history } from 'webmq-client/parts'
import {
  freePort,
  type LoadBalancer,
  obtainBalancer,
  sharedService,
  startLoadBalancer,
  startRedis,
  startRedisCluster,
} from 'webmq-services'
import { builtCommit, hasCommit } from '../../scripts/lib/built-commit.mjs'
import { type Fault, playGroups } from '../group-play.js'
import { startClient } from '../live.js'
import { type ServerProcess, startServerProcess } from '../server-process.js'
import { OLDER_COMMIT } from './older.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const BUILD_TIMEOUT_MS = 600_000
const NODE_COUNT = 3
const LISTENER_COUNT = 4
const PUBLISH_EVERY_MS = 5
/** Time of nodes of two versions beside each other, between two steps. */
const STEP_MS = 300
const KEY = 'skew.1'
const WAIT = { timeout: 30_000, interval: 50 }

/** Longer than two checks of the balancer, as docs/operations.md asks for. */
const FLAGS = ['--history', 'skew.#=100000', '--log-level', 'warn', '--threads', '1', '--insecure']
const DRAIN = ['--drain-delay', '600ms', '--drain-timeout', '1s', '--drain-per-second', '1000']

interface Place {
  /** Flags of each node. */
  readonly flags: readonly (readonly string[])[]
  /** A position is good on every node. */
  readonly isLogShared: boolean
  stop?(): Promise<void>
}

const same = (...flags: string[]) => Array.from({ length: NODE_COUNT }, () => flags)

const PLACES: Readonly<Record<string, () => Promise<Place>>> = {
  async mesh() {
    const ports = await Promise.all(same().map(() => freePort()))
    const hosts = ports.map((port) => `127.0.0.1:${port}`)
    const broker = `mesh://${hosts.join(',')}`
    return { flags: hosts.map((host) => ['--broker', broker, '--mesh-listen', host]), isLogShared: false }
  },
  redis: async () => ({ flags: same('--broker', (await sharedService('redis')).url), isLogShared: true }),
  async 'redis-cluster'() {
    const cluster = await startRedisCluster()
    const url = `redis+cluster://${cluster.urls.map((one) => new URL(one).host).join(',')}`
    return { flags: same('--broker', url), isLogShared: true, stop: () => cluster.stop() }
  },
  nats: async () => ({ flags: same('--broker', (await sharedService('nats')).url), isLogShared: true }),
  rabbitmq: async () => ({ flags: same('--broker', (await sharedService('rabbitmq')).url), isLogShared: true }),
}

const hasOlder = await hasCommit(OLDER_COMMIT)
if (!hasOlder) {
  console.log(`No node of an older version was played beside this one: this clone has no commit ${OLDER_COMMIT}.`)
}

describe.skipIf(!hasOlder)('nodes of an older state beside nodes of this one', () => {
  const programs = { older: '', newer: programOf(ROOT) }
  let olderRoot = ''

  beforeAll(async () => {
    ;[olderRoot] = await Promise.all([builtCommit(OLDER_COMMIT, 'skew'), obtainBalancer('haproxy')])
    programs.older = programOf(olderRoot)
  }, BUILD_TIMEOUT_MS)

  it('write what was recorded of them', () => {
    const program = path.join(ROOT, 'test/skew/record-formats.mjs')
    const recorded = readFileSync(path.join(ROOT, 'test/skew/formats.json'), 'utf8')
    expect(execFileSync(process.execPath, [program, olderRoot], { encoding: 'utf8' })).toBe(recorded)
  })

  it.each(Object.keys(PLACES))('lose nothing while all are upgraded and taken back, over %s', async (name) => {
    const place = await PLACES[name]?.()
    if (place === undefined) throw new TypeError(name)
    const fleet = new Fleet(place)
    // Its clients are closed before.
    onTestFinished(() => fleet.stop())
    await fleet.start(programs.older)
    const play = await Play.start(fleet.url)
    for (const program of [programs.newer, programs.older]) {
      for (let node = 0; node < NODE_COUNT; node++) {
        await sleep(STEP_MS)
        await fleet.replace(node, program)
      }
      // The log was written by both, and is read by nodes of one.
      if (place.isLogShared) await play.readsAll(fleet.url)
    }
    await play.end()
    console.info(`${name}: ${play.judge(place.isLogShared)}`)
    if (place.isLogShared) await play.readsAll(fleet.url)
  })

  it.each(['older', 'newer'] as const)(
    'hand over messages of queue groups once, with members at an %s node',
    async (members) => {
      const isOlder = members === 'older'
      const broker = await startRedis({ isPrivate: true })
      onTestFinished(() => broker.stop())
      // A node of this version waits for one that stands still, and the older one knows what it was sent.
      const fault: Fault = async ({ members: { process } }) => {
        if (isOlder) process.kill('SIGSTOP')
        await sleep(3_000)
        process.kill('SIGCONT')
      }
      const outcome = await playGroups(broker, fault, onTestFinished, {
        members: programs[members],
        publishers: isOlder ? programs.newer : programs.older,
      })
      expect(outcome).toMatchObject({ lost: [], counts: { taken: [1], asked: [1] }, final: [] })
    },
    120_000,
  )
})

function programOf(root: string): string {
  return path.join(root, 'packages/server/bin/webmq-server.js')
}

/** Nodes behind HAProxy, each of which may be replaced by one of another version. */
class Fleet {
  readonly #place: Place
  readonly #namespace = `skew-${randomBytes(6).toString('hex')}`
  readonly #nodes: ServerProcess[] = []
  #ports: readonly number[] = []
  #balancer: LoadBalancer | undefined

  constructor(place: Place) {
    this.#place = place
  }

  get url(): string {
    return `ws://127.0.0.1:${this.#balancer?.port}/ws`
  }

  async start(program: string): Promise<void> {
    this.#ports = await Promise.all(this.#place.flags.map(() => freePort()))
    await Promise.all(this.#ports.map((_, node) => this.#run(node, program)))
    this.#balancer = await startLoadBalancer({ ports: this.#ports })
  }

  async replace(node: number, program: string): Promise<void> {
    expect(await this.#nodes[node]?.kill('SIGTERM'), this.#nodes[node]?.output()).toBe(0)
    await this.#run(node, program)
  }

  async stop(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.kill('SIGKILL')))
    await this.#balancer?.stop()
    await this.#place.stop?.()
  }

  async #run(node: number, program: string): Promise<void> {
    const flags = [...FLAGS, ...DRAIN, ...(this.#place.flags[node] ?? []), '--broker-namespace', this.#namespace]
    this.#nodes[node] = await startServerProcess(this.#ports[node] ?? 0, flags, { program })
  }
}

interface Listener {
  readonly got: number[]
  gapCount: number
}

/** A publisher that numbers its messages, and who listens to them. */
class Play {
  readonly #listeners: Listener[] = []
  readonly #acked = new Set<number>()
  readonly #refused: unknown[] = []
  #count = 0
  #isOver = false
  #publishing: Promise<void> = Promise.resolve()

  static async start(url: string): Promise<Play> {
    const play = new Play()
    for (let index = 0; index < LISTENER_COUNT; index++) await play.#listen(url)
    const { client } = startClient(url, { random: Math.random })
    await client.connect()
    play.#publishing = play.#publish((n) => client.publish(KEY, n))
    onTestFinished(() => {
      play.#isOver = true
    })
    return play
  }

  /** Goes on until all listeners are back: over a mesh, one that was told a gap gets only what comes later. */
  async end(): Promise<void> {
    const from = this.#count
    await this.#reach((last) => last > from)
    this.#isOver = true
    await this.#publishing
  }

  /** Every listener got every message once and in order, or was told a gap. @returns figures */
  judge(isLogShared: boolean): string {
    expect(this.#refused).toEqual([])
    expect(this.#acked.size).toBeGreaterThan(100)
    for (const { got, gapCount } of this.#listeners) {
      expect(got.filter((n, index) => n <= (got[index - 1] ?? 0))).toEqual([])
      if (isLogShared) expect(gapCount).toBe(0)
      const seen = new Set(got)
      if (gapCount === 0) expect([...this.#acked].filter((n) => !seen.has(n))).toEqual([])
    }
    const gaps = this.#listeners.map(({ gapCount }) => gapCount)
    return `${this.#acked.size} messages acknowledged, gaps of ${LISTENER_COUNT} listeners: ${gaps.join(', ')}`
  }

  /** The log has every message that was accepted so far. */
  async readsAll(url: string): Promise<void> {
    const acked = [...this.#acked]
    const { client } = startClient(url, { random: Math.random })
    const read = new Set<unknown>()
    let since: string | undefined
    for (let more = true; more; ) {
      const from = since === undefined ? { rewind: '1h' as const } : { since }
      const page: HistoryResult<unknown> = await history(KEY, { client, ...from, limit: 1_000 })
      for (const { payload } of page.messages) read.add(payload)
      ;({ position: since, more } = page)
    }
    await client.close({ flushMs: 0 })
    expect(acked.filter((n) => !read.has(n))).toEqual([])
  }

  async #listen(url: string): Promise<void> {
    const listener: Listener = { got: [], gapCount: 0 }
    const { client } = startClient(url, { random: Math.random })
    client.on('gap', () => listener.gapCount++)
    await client.listen('skew.#', (payload) => listener.got.push(payload as number)).ready
    this.#listeners.push(listener)
  }

  async #publish(publish: (n: number) => Promise<unknown>): Promise<void> {
    const sent: Promise<unknown>[] = []
    while (!this.#isOver) {
      const n = ++this.#count
      const answered = publish(n).then(
        () => this.#acked.add(n),
        (error: unknown) => this.#refused.push(error),
      )
      sent.push(answered)
      await sleep(PUBLISH_EVERY_MS)
    }
    await Promise.all(sent)
    const last = this.#count
    await this.#reach((newest) => newest === last)
  }

  async #reach(isThere: (newest: number) => boolean): Promise<void> {
    const waiting = () => this.#listeners.map(({ got }) => got.at(-1) ?? 0).filter((newest) => !isThere(newest))
    await vi.waitFor(() => expect(waiting()).toEqual([]), WAIT)
  }
}
