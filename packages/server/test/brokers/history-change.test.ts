import { setTimeout } from 'node:timers/promises'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { matches } from 'webmq-client/protocol'
import { freePort, type RedisCluster, type ServiceKind, sharedService, startRedisCluster } from 'webmq-services'
import type { ServerOptions } from '../../src/options/server-options.js'
import { ApiServer } from '../api-server.js'
import { ProtocolClient } from '../protocol-client.js'

const RULE = ['t.#=1000']
/** Each row is one change of all nodes, one after the other: before and after. */
const CHANGES = {
  'is switched on': [[], RULE],
  'gets another rule': [RULE, ['t.#=1000', 'u.#=1000']],
  'has its rule replaced': [RULE, ['u.#=1000']],
  'is switched off': [RULE, []],
} as const
const NAMES = ['a', 'b', 'c']
const KEYS = ['t.1', 'u.1', 'x.1']
const PUBLISH_EVERY_MS = 10
/** Time between two steps, in which the nodes log different keys. */
const STEP_MS = 150
/** On a busy machine messages are under way for long. */
const TOLD = { timeout: 30_000, interval: 50 }

/** A message that its broker has accepted, and how much each listener had been told by then. */
interface Acked {
  readonly key: string
  readonly text: string
  readonly told: ReadonlyMap<ProtocolClient, number>
}

/** Three nodes, of which each may be replaced, and a publisher that goes on through those that run. */
class Fleet {
  readonly acked: Acked[] = []
  /** With their patterns. */
  readonly #listeners = new Map<ProtocolClient, string>()
  readonly #options: Readonly<Record<string, ServerOptions>>
  readonly #nodes = new Map<string, ApiServer>()
  #count = 0
  readonly #ends: (() => unknown)[] = []
  #isOver = false

  /** @param options By the names of the nodes. */
  constructor(options: Readonly<Record<string, ServerOptions>>) {
    this.#options = options
  }

  node(name: string): ApiServer {
    const node = this.#nodes.get(name)
    if (node === undefined) throw new Error(`no node ${name}`)
    return node
  }

  async start(name: string, history: readonly string[]): Promise<void> {
    const node = await ApiServer.start({ ...this.#options[name], apiKeys: [], history: [...history] })
    this.#ends.push(() => node.server.stop({ drainMs: 0 }))
    this.#nodes.set(name, node)
  }

  async replace(name: string, history: readonly string[]): Promise<void> {
    const { server } = this.node(name)
    this.#nodes.delete(name)
    await server.stop({ drainMs: 0 })
    await this.start(name, history)
  }

  async listen(name: string, pattern = '#'): Promise<ProtocolClient> {
    const { client } = await this.#resume(name, pattern)
    this.#listeners.set(client, pattern)
    return client
  }

  /** A listener that comes back with a position, and what it is answered. */
  async #resume(name: string, pattern: string, since?: string) {
    const client = await ProtocolClient.open(this.node(name).webSocketUrl)
    this.#ends.push(() => client.close())
    const answer = await client.request((id) => ({ verb: 'listen', id, pattern, ...(since && { since }) }))
    return { client, answer }
  }

  async publishOn(): Promise<void> {
    while (!this.#isOver) {
      for (const node of this.#nodes.values()) void this.#publish(node)
      await setTimeout(PUBLISH_EVERY_MS)
    }
  }

  endPublishing(): void {
    this.#isOver = true
  }

  async end(): Promise<void> {
    this.endPublishing()
    await Promise.all(this.#ends.map((end) => end()))
  }

  async #publish({ server }: ApiServer): Promise<void> {
    const text = `${this.#count++}`
    const key = KEYS[this.#count % KEYS.length] ?? ''
    // To a listen that is answered while it is under way, it is not owed.
    const listeners = [...this.#listeners]
    // A node that stops refuses it: nothing is owed.
    const isAccepted = await server.publish(key, text).then(
      () => true,
      () => false,
    )
    if (!isAccepted) return
    const told = new Map<ProtocolClient, number>()
    for (const [listener, pattern] of listeners) if (matches(pattern, key)) told.set(listener, listener.messages.length)
    this.acked.push({ key, text, told })
  }

  /** Messages that a listener neither got nor was told a gap for, at their place or later. */
  silentlyLost(listener: ProtocolClient, acked: readonly Acked[] = this.acked): readonly string[] {
    const got = textsOf(listener)
    const lastGap = listener.messages.findLastIndex(({ verb }) => verb === 'gap')
    return acked
      .filter(({ text, told }) => !got.has(text) && lastGap < (told.get(listener) ?? -1))
      .map(({ text }) => text)
  }

  /** The same of one that was away and comes back with its last position; without one, its client tells it a gap. */
  async silentlyLostBy(listener: ProtocolClient, name: string): Promise<readonly string[]> {
    const position = listener.received('message').findLast((message) => message.position !== undefined)?.position
    if (position === undefined) return []
    const { client, answer } = await this.#resume(name, this.#listeners.get(listener) ?? '', position)
    if (answer.verb === 'ok' && answer.gap !== undefined) return []
    await client.settled()
    const got = textsOf(client)
    return this.silentlyLost(listener).filter((text) => !got.has(text))
  }
}

function textsOf(listener: ProtocolClient): ReadonlySet<unknown> {
  return new Set(listener.received('message').map(({ payload }) => JSON.parse(`${payload}`) as unknown))
}

type Kind = ServiceKind | 'redis cluster' | 'mesh'

let cluster: Promise<RedisCluster> | undefined
afterAll(async () => {
  await (await cluster)?.stop()
}, 30_000)

async function addressOf(kind: Exclude<Kind, 'mesh'>): Promise<string> {
  if (kind !== 'redis cluster') return (await sharedService(kind)).url
  cluster ??= startRedisCluster()
  return `redis+cluster://${(await cluster).urls.map((url) => new URL(url).host).join()}`
}

/** Options of nodes that meet at a broker. */
async function meet(kind: Kind, namespace: string): Promise<Readonly<Record<string, ServerOptions>>> {
  if (kind !== 'mesh') {
    const url = await addressOf(kind)
    return Object.fromEntries(NAMES.map((name) => [name, { broker: url, brokerNamespace: namespace }]))
  }
  const places = await Promise.all(NAMES.map(async () => `127.0.0.1:${await freePort()}`))
  const broker = `mesh://${places.join()}`
  return Object.fromEntries(NAMES.map((name, index) => [name, { broker, mesh: { listen: places[index] ?? '' } }]))
}

describe.each<Kind>(['redis', 'redis cluster', 'nats', 'rabbitmq', 'mesh'])(
  'over %s, who stays misses nothing, and nobody anything in silence, while',
  (kind) => {
    it.concurrent.for(Object.entries(CHANGES))(
      'the history of nodes that restart in turn %s',
      async ([name, [from, to]], { onTestFinished }) => {
        const fleet = new Fleet(await meet(kind, `change-${process.pid}-${Object.keys(CHANGES).indexOf(name)}`))
        onTestFinished(() => fleet.end())
        await Promise.all(NAMES.map((each) => fleet.start(each, from)))
        const stays = await fleet.listen('c')
        void fleet.publishOn()
        await setTimeout(STEP_MS)
        await fleet.replace('a', to)
        const staysAfter = await fleet.listen('a')
        const leaves = await fleet.listen('a', 't.#')
        await setTimeout(STEP_MS)
        leaves.close()
        const early = [...fleet.acked]
        await fleet.replace('b', to)
        await setTimeout(STEP_MS)
        await vi.waitFor(() => expect(fleet.silentlyLost(stays, early)).toEqual([]), TOLD)
        if (kind !== 'mesh') expect(stays.received('gap')).toEqual([])
        const otherLogPeers = kind === 'mesh' ? undefined : 2
        const { status, json } = await fleet.node('c').ask('/ready', { bearer: undefined })
        expect([status, json.status, json.otherLogPeers]).toEqual([200, 'ready', otherLogPeers])
        await fleet.replace('c', to)
        await setTimeout(STEP_MS)
        fleet.endPublishing()
        await setTimeout(STEP_MS)
        await vi.waitFor(() => expect(fleet.silentlyLost(staysAfter)).toEqual([]), TOLD)
        if (kind !== 'mesh') expect(staysAfter.received('gap')).toEqual([])
        for (const each of [stays, staysAfter]) {
          const texts = each.received('message').map(({ payload }) => payload)
          expect(texts).toHaveLength(new Set(texts).size)
        }
        for (const each of NAMES) expect(fleet.node(each).server.stats().cluster.otherLogCount).toBe(0)
        // They come back to a node that never saw one with other rules.
        for (const listener of [stays, leaves])
          await vi.waitFor(async () => expect(await fleet.silentlyLostBy(listener, 'c')).toEqual([]), TOLD)
      },
    )
  },
)
