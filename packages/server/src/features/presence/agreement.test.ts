import fc from 'fast-check'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { BrokerHub } from '../../../test/broker-hub.js'
import { clientOf, LINGER_MS, PresenceNode, TTL_MS, type Watcher } from '../../../test/presence-nodes.js'
import type { ConnectionPresence } from './connection.js'

const KEY = 'room'
const NODES = 3
const CLIENTS = 5
const RUNS = 300
const MAX_DELAY_MS = 400
/** In which a node that was cut off has asked for everything and has got it, a part at a time. */
const CATCH_UP_MS = 20 * MAX_DELAY_MS
/** So small that everything a node holds is sent in many parts, with changes in between. */
const ONE_MEMBER_BYTES = 400

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** What happens, and the time after it. */
type Step =
  | {
      readonly what: 'connect' | 'roam' | 'enter' | 'leave' | 'close' | 'lose'
      readonly client: number
      readonly node: number
    }
  | { readonly what: 'cut' | 'mend' | 'crash'; readonly node: number; readonly client: number }

const step: fc.Arbitrary<readonly [Step, number]> = fc.tuple(
  fc.record({
    what: fc.oneof(
      { weight: 10, arbitrary: fc.constantFrom('roam' as const, 'enter' as const) },
      { weight: 2, arbitrary: fc.constant('connect' as const) },
      { weight: 5, arbitrary: fc.constantFrom('leave' as const, 'close' as const, 'lose' as const) },
      { weight: 4, arbitrary: fc.constantFrom('cut' as const, 'mend' as const) },
      { weight: 1, arbitrary: fc.constant('crash' as const) },
    ),
    client: fc.nat(CLIENTS - 1),
    node: fc.nat(NODES - 1),
  }),
  fc.oneof(
    { weight: 4, arbitrary: fc.constant(0) },
    { weight: 4, arbitrary: fc.nat(100) },
    { weight: 1, arbitrary: fc.nat(2_000) },
    { weight: 1, arbitrary: fc.nat(TTL_MS) },
  ),
)

/** Someone who goes from node to node with one name; what is left of former connections is found out later. */
class RoamingClient {
  readonly name: string
  readonly #abandoned: { readonly connection: ConnectionPresence; readonly node: number }[] = []
  #connection: ConnectionPresence | undefined
  node = 0
  /** What it says; `undefined` when it is not present. */
  data: number | undefined

  constructor(name: string) {
    this.name = name
  }

  connect(connection: ConnectionPresence, node: number): void {
    if (this.#connection !== undefined) this.#abandoned.push({ connection: this.#connection, node: this.node })
    this.#connection = connection
    this.node = node
    this.data = undefined
  }

  enter(data: number): void {
    if (this.#connection === undefined) return
    this.#connection.enter(KEY, clientOf('user'), this.name, String(data))
    this.data = data
  }

  leave(): void {
    this.#connection?.leave(KEY)
    if (this.#connection !== undefined) this.data = undefined
  }

  close(isWanted: boolean): void {
    this.#connection?.close(isWanted)
    this.gone()
  }

  /** Its node is gone, and with it the connection. */
  gone(): void {
    this.#connection = undefined
    this.data = undefined
  }

  /** All former connections are found to be lost. */
  settle(): void {
    for (const { connection } of this.#abandoned) connection.close(false)
  }
}

async function play(steps: readonly (readonly [Step, number])[], seed: number): Promise<void> {
  const random = fc.sample(fc.nat(MAX_DELAY_MS), { seed, numRuns: 64 })
  let messages = 0
  const hub = new BrokerHub(() => random[messages++ % random.length] ?? 0)
  let nodeCount = 0
  const start = () => new PresenceNode(`node-${nodeCount++}`, hub, { maxPayloadBytes: ONE_MEMBER_BYTES })
  const nodes = Array.from({ length: NODES }, start)
  const watchers: Watcher[] = []
  for (const node of nodes) node.presence.begin()
  await vi.advanceTimersByTimeAsync(2_000)
  for (const node of nodes) watchers.push(await node.watch(KEY))
  const clients = Array.from({ length: CLIENTS }, (_, index) => new RoamingClient(`client-${index}`))
  let data = 0
  for (const [{ what, client: clientIndex, node: nodeIndex }, pauseMs] of steps) {
    const client = clients[clientIndex] as RoamingClient
    const node = nodes[nodeIndex] as PresenceNode
    switch (what) {
      case 'connect':
      case 'roam':
        client.connect(node.connect(), nodeIndex)
        if (what === 'roam') client.enter(++data)
        break
      case 'enter':
        client.enter(++data)
        break
      case 'leave':
        client.leave()
        break
      case 'close':
      case 'lose':
        client.close(what === 'close')
        break
      case 'cut':
        node.broker.cut()
        break
      case 'mend':
        node.broker.mend()
        break
      case 'crash': {
        node.broker.crash()
        node.stop()
        for (const other of clients) if (other.node === nodeIndex) other.gone()
        const replacement = start()
        nodes[nodeIndex] = replacement
        const watching = replacement.watch(KEY)
        await vi.advanceTimersByTimeAsync(1_100)
        watchers[nodeIndex] = await watching
      }
    }
    await vi.advanceTimersByTimeAsync(pauseMs)
  }
  for (const { broker } of nodes) broker.mend()
  await vi.advanceTimersByTimeAsync(CATCH_UP_MS)
  // What was said last counts at once, while former connections are still taken for alive.
  for (const client of clients) if (client.data !== undefined) client.enter(++data)
  await vi.advanceTimersByTimeAsync(CATCH_UP_MS)
  for (const node of nodes) {
    const said = new Set(node.dataOf(KEY))
    for (const client of clients) if (client.data !== undefined) expect(said).toContain(client.data)
  }
  for (const client of clients) client.settle()
  await vi.advanceTimersByTimeAsync(LINGER_MS + TTL_MS + CATCH_UP_MS)
  const present = clients.flatMap((client) => (client.data === undefined ? [] : [client.data])).sort()
  for (const [index, node] of nodes.entries()) {
    expect(node.dataOf(KEY)).toEqual(present)
    // Whoever has only followed what was told knows the same.
    const told = [...(watchers[index] as Watcher).members.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
    expect(told).toEqual(node.membersOf(KEY))
  }
  for (const node of nodes) node.stop()
  vi.clearAllTimers()
}

it('is the same on all nodes in the end, and is what clients want, whatever happens in between', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.nat(), (steps, seed) => play(steps, seed)),
    { numRuns: RUNS },
  )
})
