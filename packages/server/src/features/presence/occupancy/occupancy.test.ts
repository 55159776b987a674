import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { BrokerHub } from '../../../../test/broker-hub.js'
import { GRACE_MS, OccupancyBackend, OccupancyNode, TTL_MS } from '../../../../test/occupancy-nodes.js'
import { ownerOf } from './owner.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** For greetings, a lease and a request. */
const SOON_MS = TTL_MS + 2_000
const soon = () => vi.advanceTimersByTimeAsync(SOON_MS)

async function fleet(count: number) {
  const hub = new BrokerHub(() => 5)
  const backend = new OccupancyBackend()
  const start = (name: string, options = {}) => new OccupancyNode(name, hub, backend, options)
  const nodes = Array.from({ length: count }, (_, index) => start(`n${index}`))
  await soon()
  expect(backend.taken).toEqual(['*'])
  backend.taken.length = 0
  return { hub, backend, nodes: nodes as [OccupancyNode, OccupancyNode, OccupancyNode], start }
}

const patternOf = (owner: number, count = 3) => {
  const names = Array.from({ length: count }, (_, index) => `n${index}`)
  const found = Array.from({ length: 100 }, (_, index) => `chat.${index}`).find(
    (pattern) => ownerOf(pattern, names) === names[owner],
  )
  if (found === undefined) throw new Error('no pattern')
  return found
}

/** What was said of a pattern twice in a row. */
function repeatsIn(taken: readonly string[]): string[] {
  const occupied = new Set<string>()
  return taken.filter((said) => {
    const pattern = said.slice(1)
    if (said === '*') occupied.clear()
    const isRepeat = said !== '*' && occupied.has(pattern) === said.startsWith('+')
    if (said.startsWith('+')) occupied.add(pattern)
    else occupied.delete(pattern)
    return isRepeat
  })
}

describe('Occupancy', () => {
  it('tells of the first listener and the last one, over all nodes', async () => {
    const { backend, nodes } = await fleet(3)
    nodes[0].listen('chat.1')
    nodes[0].listen('chat.1')
    await soon()
    expect(backend.taken).toEqual(['+chat.1'])
    nodes[1].listen('chat.1')
    nodes[0].unlisten('chat.1')
    nodes[0].unlisten('chat.1')
    await vi.advanceTimersByTimeAsync(GRACE_MS + SOON_MS)
    expect(backend.taken).toEqual(['+chat.1'])
    nodes[1].unlisten('chat.1')
    await vi.advanceTimersByTimeAsync(GRACE_MS - 200)
    expect(backend.taken).toEqual(['+chat.1'])
    await soon()
    expect(backend.taken).toEqual(['+chat.1', '-chat.1'])
    expect(backend.received).toHaveLength(3)
  })

  it('tells of patterns alone that are contained in one of its own', async () => {
    const { backend, nodes } = await fleet(2)
    for (const pattern of ['chat.1', 'chat.*', 'chat.#', '#', 'orders.1']) nodes[0].listen(pattern)
    await soon()
    expect(backend.occupied).toEqual(['chat.*', 'chat.1'])
    expect(nodes[1].occupancy.stats()).toEqual({ occupiedCount: 2, waitingCount: 0, droppedCount: 0 })
  })

  it('takes a listener who comes back within the grace for one who stayed', async () => {
    const { backend, nodes } = await fleet(2)
    nodes[0].listen('chat.1')
    await soon()
    nodes[0].unlisten('chat.1')
    await vi.advanceTimersByTimeAsync(GRACE_MS - 1_000)
    nodes[1].listen('chat.1')
    await vi.advanceTimersByTimeAsync(4 * GRACE_MS)
    expect(backend.taken).toEqual(['+chat.1'])
  })

  it('tells with growing generations, also long after', async () => {
    const { backend, nodes } = await fleet(2)
    for (let turn = 0; turn < 3; turn++) {
      nodes[turn % 2]?.listen('chat.1')
      await vi.advanceTimersByTimeAsync(100_000)
      nodes[turn % 2]?.unlisten('chat.1')
      await vi.advanceTimersByTimeAsync(100_000)
    }
    expect(backend.taken).toEqual(['+chat.1', '-chat.1', '+chat.1', '-chat.1', '+chat.1', '-chat.1'])
  })

  it.each([0, 1, 2])('tells once when nodes are killed: the pattern is of node %i', async (owner) => {
    const { backend, nodes } = await fleet(3)
    const pattern = patternOf(owner)
    nodes[0].listen(pattern)
    nodes[1].listen(pattern)
    await soon()
    nodes[0].kill()
    await vi.advanceTimersByTimeAsync(TTL_MS + GRACE_MS + SOON_MS)
    expect(backend.taken).toEqual([`+${pattern}`])
    nodes[1].kill()
    await vi.advanceTimersByTimeAsync(TTL_MS + GRACE_MS + SOON_MS)
    expect(backend.taken).toEqual([`+${pattern}`, `-${pattern}`])
  })

  it('repeats at most the last fact, with its generation, when its owner is killed before it knows that it was taken', async () => {
    const { backend, nodes } = await fleet(3)
    const pattern = patternOf(0)
    backend.isMute = true
    nodes[1].listen(pattern)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(backend.taken).toEqual([`+${pattern}`])
    nodes[0].kill()
    backend.isMute = false
    await vi.advanceTimersByTimeAsync(TTL_MS + SOON_MS)
    expect(backend.taken).toEqual([`+${pattern}`])
    const generations = backend.received
      .filter((event) => event.pattern === pattern)
      .map(({ generation }) => generation)
    expect(generations.length).toBeGreaterThan(1)
    expect(new Set(generations).size).toBe(1)
  })

  it('is quiet in a rolling deploy', async () => {
    const { backend, nodes, start } = await fleet(3)
    const patterns = Array.from({ length: 50 }, (_, index) => `chat.${index}`)
    for (const pattern of patterns) nodes[0].listen(pattern)
    await soon()
    expect(backend.occupied).toHaveLength(50)
    const before = backend.received.length
    let current: readonly OccupancyNode[] = nodes
    for (let turn = 0; turn < 3; turn++) {
      const next = start(`m${turn}`)
      await vi.advanceTimersByTimeAsync(2_000)
      for (const pattern of patterns) (turn === 0 ? nodes[0] : current.at(-1))?.unlisten(pattern)
      current[0]?.stop()
      current = [...current.slice(1), next]
      await vi.advanceTimersByTimeAsync(1_500)
      for (const pattern of patterns) next.listen(pattern)
      await vi.advanceTimersByTimeAsync(3 * GRACE_MS)
    }
    expect(backend.received).toHaveLength(before)
    for (const pattern of patterns) current.at(-1)?.unlisten(pattern)
    await vi.advanceTimersByTimeAsync(GRACE_MS + SOON_MS)
    expect(backend.occupied).toEqual([])
  })

  it('tells that everything is vacated when no node was left', async () => {
    const { backend, nodes, start } = await fleet(2)
    nodes[0].listen('chat.1')
    nodes[0].listen('chat.2')
    await soon()
    for (const node of nodes) node.kill()
    await vi.advanceTimersByTimeAsync(60_000)
    start('later').listen('chat.2')
    await soon()
    expect(backend.taken.slice(2)).toEqual(['*', '+chat.2'])
    expect(backend.occupied).toEqual(['chat.2'])
  })

  it('tells a backend that was away the newest of each pattern, in bounded requests', async () => {
    const { backend, nodes } = await fleet(2)
    backend.isDown = true
    for (let index = 0; index < 300; index++) nodes[0].listen(`chat.${index}`)
    await vi.advanceTimersByTimeAsync(60_000)
    for (let index = 0; index < 100; index++) nodes[0].unlisten(`chat.${index}`)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(backend.received).toHaveLength(1)
    for (const node of nodes.slice(0, 2)) {
      expect(node.warningCount).toBeGreaterThan(0)
      expect(node.warningCount).toBeLessThan(20)
    }
    backend.isDown = false
    await vi.advanceTimersByTimeAsync(20_000)
    expect(backend.occupied).toHaveLength(200)
    expect(nodes.slice(0, 2).map((node) => node.occupancy.stats().waitingCount)).toEqual([0, 0])
  })

  it('is silent while it is cut off, and agrees again afterwards', async () => {
    const { backend, nodes } = await fleet(3)
    nodes[0].listen('chat.1')
    nodes[1].listen('chat.1')
    await soon()
    nodes[0].broker.cut()
    nodes[0].listen('chat.2')
    await vi.advanceTimersByTimeAsync(TTL_MS + 3 * GRACE_MS)
    expect(backend.taken).toEqual(['+chat.1'])
    nodes[1].unlisten('chat.1')
    nodes[0].broker.mend()
    await soon()
    await vi.advanceTimersByTimeAsync(2 * GRACE_MS)
    expect(backend.taken).toEqual(['+chat.1', '+chat.2'])
  })

  it.each(['frozen', 'cut off'])(
    'tells again what is occupied at a node that was %s while another one began',
    async (how) => {
      const { backend, nodes, start } = await fleet(1)
      nodes[0].listen('chat.1')
      await soon()
      expect(backend.taken).toEqual(['+chat.1'])
      if (how === 'frozen') nodes[0].broker.freeze()
      else nodes[0].broker.cut()
      start('n1')
      await vi.advanceTimersByTimeAsync(3 * TTL_MS)
      expect(backend.taken).toEqual(['+chat.1', '*'])
      if (how === 'frozen') nodes[0].broker.thaw()
      else nodes[0].broker.mend()
      await vi.advanceTimersByTimeAsync(3 * TTL_MS)
      expect(backend.taken).toEqual(['+chat.1', '*', '+chat.1'])
    },
  )

  it('counts what it has no room for', async () => {
    const hub = new BrokerHub()
    const backend = new OccupancyBackend()
    const node = new OccupancyNode('n', hub, backend, { maxPatterns: 10 })
    for (let index = 0; index < 15; index++) node.listen(`chat.${index}`)
    await soon()
    expect(node.occupancy.stats()).toMatchObject({ occupiedCount: 10, droppedCount: 5 })
    for (let index = 0; index < 15; index++) node.unlisten(`chat.${index}`)
    await vi.advanceTimersByTimeAsync(GRACE_MS + SOON_MS)
    expect(backend.occupied).toEqual([])
  })

  it('does not take the end of a listen without room for the end of another one', async () => {
    const hub = new BrokerHub()
    const backend = new OccupancyBackend()
    const node = new OccupancyNode('n', hub, backend, { maxPatterns: 1 })
    node.listen('chat.1')
    node.listen('chat.2')
    node.unlisten('chat.1')
    node.listen('chat.2')
    await vi.advanceTimersByTimeAsync(GRACE_MS + SOON_MS)
    node.unlisten('chat.2')
    await vi.advanceTimersByTimeAsync(GRACE_MS + SOON_MS)
    expect(backend.occupied).toEqual(['chat.2'])
    node.unlisten('chat.2')
    await vi.advanceTimersByTimeAsync(GRACE_MS + SOON_MS)
    expect(backend.occupied).toEqual([])
  })

  it('agrees with the listens, whatever comes and goes', async () => {
    const PATTERNS = ['chat.a', 'chat.b', 'chat.c', 'chat.d']
    const step = fc.tuple(
      fc.oneof(
        { weight: 6, arbitrary: fc.constantFrom('listen' as const, 'unlisten' as const) },
        { weight: 2, arbitrary: fc.constantFrom('cut' as const, 'mend' as const, 'down' as const, 'up' as const) },
        { weight: 1, arbitrary: fc.constantFrom('kill' as const, 'stop' as const, 'start' as const) },
      ),
      fc.nat(2),
      fc.constantFrom(...PATTERNS),
      fc.oneof(fc.nat(50), fc.nat(2_000), fc.nat(TTL_MS + GRACE_MS)),
    )
    const runs = fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.nat(200), async (steps, delayMs) => {
      const hub = new BrokerHub(() => delayMs)
      const backend = new OccupancyBackend()
      let count = 0
      const start = () => ({ node: new OccupancyNode(`n${count++}`, hub, backend), held: [] as string[] })
      const places = [start(), start(), start()]
      for (const [what, place, pattern, ms] of steps) {
        const { node, held } = places[place] as (typeof places)[number]
        const at = held.indexOf(pattern)
        if (what === 'listen') {
          node.listen(pattern)
          held.push(pattern)
        } else if (what === 'unlisten' && at >= 0) {
          node.unlisten(pattern)
          held.splice(at, 1)
        } else if (what === 'cut') node.broker.cut()
        else if (what === 'mend') node.broker.mend()
        else if (what === 'down' || what === 'up') backend.isDown = what === 'down'
        else if (what === 'kill' || what === 'stop') {
          node[what]()
          places[place] = start()
        }
        await vi.advanceTimersByTimeAsync(ms)
      }
      backend.isDown = false
      for (const { node } of places) node.broker.mend()
      await vi.advanceTimersByTimeAsync(10 * (TTL_MS + GRACE_MS))
      expect(backend.occupied).toEqual([...new Set(places.flatMap(({ held }) => held))].sort())
      expect(backend.received.filter(({ pattern }) => pattern !== undefined && !PATTERNS.includes(pattern))).toEqual([])
      // Also when nodes were killed.
      if (steps.every(([what]) => what !== 'cut' && what !== 'down')) expect(repeatsIn(backend.taken)).toEqual([])
      for (const { node } of places) {
        expect(node.occupancy.stats().waitingCount).toBe(0)
        node.kill()
      }
      vi.clearAllTimers()
    })
    await fc.assert(runs, { numRuns: 60 })
  })
})

describe('ownerOf', () => {
  it('gives each node its share, and moves those alone of a node that goes', () => {
    const nodes = ['a', 'b', 'c', 'd']
    const patterns = Array.from({ length: 2_000 }, (_, index) => `chat.${index}`)
    for (const node of nodes) {
      const share = patterns.filter((pattern) => ownerOf(pattern, nodes) === node).length
      expect(share).toBeGreaterThan(350)
      expect(share).toBeLessThan(650)
    }
    const moved = patterns.filter((pattern) => ownerOf(pattern, nodes) !== ownerOf(pattern, ['a', 'b', 'c']))
    expect(moved.every((pattern) => ownerOf(pattern, nodes) === 'd')).toBe(true)
    expect(ownerOf('chat.1', ['b', 'a', 'd', 'c'])).toBe(ownerOf('chat.1', nodes))
  })
})
