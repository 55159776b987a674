import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { recordingLogger } from '../../../test/fake-server.js'
import type { Accepted, OutboundMessage } from '../../kernel/ports/broker.js'
import { NODE_FORMAT } from './node-message.js'
import { Nodes } from './nodes.js'
import { SharedTable } from './shared-table.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const TTL_MS = 3_000
/** For a lease, an answer and a copy, each of which may have to be asked for again. */
const SETTLE_MS = 6 * TTL_MS

/** How messages between two nodes travel: after each of these times a copy arrives. None: it is lost. */
type Travel = (message: OutboundMessage) => readonly number[]

/** Carries messages between nodes, as badly as it is told. */
class Wire {
  travel: Travel = () => [0]
  readonly nodes = new Set<TableNode>()

  carry(from: TableNode, message: OutboundMessage): void {
    const copy = { ...message, payload: new Uint8Array(message.payload) }
    for (const to of this.nodes) {
      for (const delayMs of this.travel(copy)) {
        setTimeout(() => {
          if (!from.isCut && !to.isCut && to.bound.has(copy.key)) to.take(copy)
        }, delayMs)
      }
    }
  }
}

/** A node with one table, whose entries are numbers. */
class TableNode {
  readonly name: string
  readonly nodes: Nodes
  readonly table: SharedTable<{ readonly id: string; readonly node: string; readonly value: number }>
  readonly bound = new Set<string>()
  readonly own = new Map<string, number>()
  readonly others = new Map<string, Map<string, number>>()
  readonly log
  isCut = false
  /** The process stands still: messages wait. */
  isFrozen = false
  #waiting: OutboundMessage[] = []

  constructor(name: string, wire: Wire, { version = '1', format = NODE_FORMAT } = {}) {
    this.name = name
    const { logger, lines } = recordingLogger()
    this.log = lines
    const publish = async (message: OutboundMessage): Promise<Accepted> => {
      if (this.isCut) throw new Error('cut')
      const payload = Uint8Array.from(message.payload)
      payload[0] = format
      wire.carry(this, { ...message, payload })
      return { isDuplicate: false }
    }
    const bind = async (pattern: string) => void this.bound.add(pattern)
    const capabilities = { manyNodes: true } as never
    const broker = { capabilities, bind, publish }
    this.nodes = new Nodes({
      node: name,
      version,
      fingerprint: '',
      broker,
      maxPayloadBytes: 512,
      ttlMs: TTL_MS,
      logger,
      now: Date.now,
    })
    this.table = new SharedTable(
      this.nodes,
      {
        ids: () => this.own.keys(),
        entryText: (id) => (this.own.has(id) ? JSON.stringify([id, this.own.get(id)]) : undefined),
        removalText: (id) => JSON.stringify([id, null]),
        decode: (item, node) => {
          const [id, value] = item as [string, number | null]
          return { id, node, value: value ?? Number.NaN }
        },
        apply: ({ id, node, value }) => {
          const entries = this.others.get(node) ?? new Map<string, number>()
          this.others.set(node, entries)
          if (Number.isNaN(value)) entries.delete(id)
          else entries.set(id, value)
        },
        idsOf: (node) => this.others.get(node)?.keys() ?? [],
        remove: (node, id) => this.others.get(node)?.delete(id),
        removeNode: (node) => this.others.delete(node),
      },
      { name: 'numbers', maxMessageBytes: 400, batchMs: 10, isConfirmed: true },
    )
    wire.nodes.add(this)
    this.nodes.status('up')
    void this.table.open()
    void this.nodes.begin()
  }

  set(id: string, value: number | undefined): void {
    if (value === undefined) this.own.delete(id)
    else this.own.set(id, value)
    this.table.changed(id)
  }

  take(message: OutboundMessage): void {
    if (this.isFrozen) this.#waiting.push(message)
    else this.nodes.channel.receive({ key: message.key, payload: Buffer.from(message.payload) })
  }

  thaw(): void {
    this.isFrozen = false
    for (const message of this.#waiting.splice(0)) this.take(message)
  }

  cut(): void {
    this.isCut = true
    this.nodes.status('down')
  }

  mend(): void {
    if (!this.isCut) return
    this.isCut = false
    this.nodes.gap()
    this.nodes.status('up')
  }

  /** What it holds of the others, without those that have nothing. */
  view(): object {
    const filled = [...this.others].filter(([, entries]) => entries.size > 0)
    return Object.fromEntries(filled.map(([node, entries]) => [node, Object.fromEntries([...entries].sort())]))
  }
}

function expectAgreement(nodes: readonly TableNode[]): void {
  for (const node of nodes) {
    const others = nodes.filter((other) => other !== node && other.own.size > 0)
    const expected = Object.fromEntries(others.map(({ name, own }) => [name, Object.fromEntries([...own].sort())]))
    expect(node.view()).toEqual(expected)
  }
}

const STEPS = ['set', 'remove', 'crowd', 'cut', 'mend', 'freeze', 'thaw', 'crash', 'leave'] as const
const step = fc.record({
  what: fc.constantFrom(...STEPS),
  node: fc.nat(2),
  entry: fc.nat(5),
  pauseMs: fc.nat(2 * TTL_MS),
})

it('is the same on all nodes in the end, whatever is lost, late, doubled, overtaken, cut off, frozen or ended', async () => {
  const faults = fc.infiniteStream(fc.nat(99))
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), faults, async (steps, chances) => {
      const wire = new Wire()
      const chance = () => chances.next().value as number
      wire.travel = () => {
        const which = chance()
        if (which < 10) return []
        if (which < 20) return [which, chance() * 20]
        return [which < 50 ? 0 : chance() * 10]
      }
      let count = 0
      const start = () => new TableNode(`n${count++}`, wire)
      const nodes = [start(), start(), start()]
      await vi.advanceTimersByTimeAsync(500)
      let value = 0
      for (const { what, node: index, entry, pauseMs } of steps) {
        const node = nodes[index] as TableNode
        if (what === 'set') node.set(`e${entry}`, ++value)
        else if (what === 'remove') node.set(`e${entry}`, undefined)
        else if (what === 'crowd') for (let more = 0; more < 60; more++) node.set(`c${more}`, ++value)
        else if (what === 'cut') node.cut()
        else if (what === 'mend') node.mend()
        else if (what === 'freeze') node.isFrozen = true
        else if (what === 'thaw') node.thaw()
        else {
          if (what === 'leave') node.nodes.stop()
          node.isCut = true
          wire.nodes.delete(node)
          node.nodes.stop()
          nodes[index] = start()
        }
        await vi.advanceTimersByTimeAsync(pauseMs)
      }
      wire.travel = () => [5]
      for (const node of nodes) {
        node.thaw()
        node.mend()
      }
      await vi.advanceTimersByTimeAsync(SETTLE_MS)
      expectAgreement(nodes)
      for (const node of nodes) {
        expect(node.nodes.stats().peerCount).toBe(2)
        expect(node.table.isComplete).toBe(true)
        node.nodes.stop()
      }
      vi.clearAllTimers()
    }),
    { numRuns: 60 },
  )
})

it('a node that starts learns of all others, and only a few name them', async () => {
  const wire = new Wire()
  const nodes = Array.from({ length: 12 }, (_, index) => new TableNode(`n${index + 10}`, wire))
  await vi.advanceTimersByTimeAsync(500)
  const answers: number[] = []
  wire.travel = (message) => {
    const text = Buffer.from(message.payload).toString('latin1')
    const names = /"peers":\[(.*?)\]/.exec(text)?.[1]
    if (names !== undefined) answers.push(names === '' ? 0 : names.split(',').length)
    return [0]
  }
  const [frozen] = nodes
  if (frozen !== undefined) frozen.isFrozen = true
  const late = new TableNode('n99', wire)
  await vi.advanceTimersByTimeAsync(200)
  expect(late.nodes.peers().toSorted()).toEqual(nodes.map(({ name }) => name))
  // The wire carries each to every node.
  expect(new Set(answers)).toEqual(new Set([0, 12]))
  expect(answers.filter((count) => count > 0).length / wire.nodes.size).toBeLessThanOrEqual(8)
  for (const node of [...nodes, late]) node.nodes.stop()
  vi.clearAllTimers()
})

describe('a change', () => {
  it('is known to all nodes when it is said to be', async () => {
    const wire = new Wire()
    const [a, b] = [new TableNode('a', wire), new TableNode('b', wire)]
    await vi.advanceTimersByTimeAsync(500)
    wire.travel = () => [40]
    a.set('x', 1)
    const known = a.table.whenKnown()
    let isKnown = false
    void known.then(() => {
      isKnown = true
    })
    await vi.advanceTimersByTimeAsync(60)
    expect([isKnown, b.view()]).toEqual([false, { a: { x: 1 } }])
    await vi.advanceTimersByTimeAsync(60)
    expect(isKnown).toBe(true)
  })

  it('does not wait for a node that is gone longer than the limit, and not a second time', async () => {
    const wire = new Wire()
    const [a, b] = [new TableNode('a', wire), new TableNode('b', wire)]
    await vi.advanceTimersByTimeAsync(500)
    b.isFrozen = true
    const waited = async () => {
      const startMs = Date.now()
      a.set('x', startMs)
      const known = a.table.whenKnown()
      await vi.advanceTimersByTimeAsync(1_100)
      let atMs = 0
      void known.then(() => {
        atMs = Date.now()
      })
      await vi.advanceTimersByTimeAsync(0)
      return atMs > 0 && atMs - startMs
    }
    expect(await waited()).toBe(1_100)
    a.set('y', 1)
    let isKnown = false
    void a.table.whenKnown().then(() => {
      isKnown = true
    })
    await vi.advanceTimersByTimeAsync(30)
    expect(isKnown).toBe(true)
    b.thaw()
    await vi.advanceTimersByTimeAsync(SETTLE_MS)
    expectAgreement([a, b])
  })
})

describe('nodes', () => {
  it('of two versions share their tables, and each tells its operator once', async () => {
    const wire = new Wire()
    const nodes = [new TableNode('a', wire), new TableNode('b', wire, { version: '2' })]
    for (const node of nodes) node.set('x', 1)
    await vi.advanceTimersByTimeAsync(SETTLE_MS)
    expectAgreement(nodes)
    for (const { log, nodes: own } of nodes) {
      expect(log.filter(({ level }) => level === 'warn')).toHaveLength(1)
      expect(own.stats()).toMatchObject({ peerCount: 1, differentCount: 1, droppedCount: 0 })
    }
  })

  it('of another format are counted, and not misread', async () => {
    const wire = new Wire()
    const [a, b] = [new TableNode('a', wire), new TableNode('b', wire, { format: NODE_FORMAT + 1 })]
    a.set('x', 1)
    b.set('x', 2)
    await vi.advanceTimersByTimeAsync(TTL_MS)
    expect(a.view()).toEqual({})
    expect(a.nodes.stats().peerCount).toBe(0)
    expect(a.nodes.stats().droppedCount).toBeGreaterThan(0)
  })
})
