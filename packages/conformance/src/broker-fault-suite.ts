import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Broker } from 'webmq-server/ports'
import { examine, FAULT_KEYS, FaultNode } from './broker/fault-load.js'
import { eventually } from './transport/eventually.js'

/** Something that goes wrong between nodes and their broker, or at the broker. */
export interface BrokerFault {
  /** In words: `killed and restarted`, `one node half-open`. */
  readonly name: string
  /** Begins. */
  inject(): Promise<void>
  /** Ends; nodes come back by themselves from then on. */
  end(): Promise<void>
  /** Time between; default 100 to 700, by chance. */
  readonly holdMs?: number
}

/** Nodes on one broker, and what can go wrong between them. */
export interface BrokerFaultSystem {
  /** Makes a node that has lost its broker no later than a second after that; it is given at least 5 s for a publish. */
  createNode(index: number): Broker | Promise<Broker>
  /** One after the other, and again from the first. */
  readonly faults: readonly BrokerFault[]
  end(): void | Promise<void>
}

/** How much a {@link brokerFaultSuite} does. */
export interface BrokerFaultOptions {
  /** Faults, one after the other; default 20. */
  readonly faultCount?: number
  /** Instead of `faultCount`: every kind of fault this often. */
  readonly rounds?: number
  /** Default 3. */
  readonly nodeCount?: number
  /** Time for all nodes to come back after a fault; default 30,000. */
  readonly recoveryTimeoutMs?: number
  /** All keys are logged and no fault harms the log: nothing may be missed, and no gap told. Default `false`. */
  readonly isLogKept?: boolean
}

const SHORTEST_HOLD_MS = 100
const LONGEST_HOLD_MS = 700
const SETTLE_TIMEOUT_MS = 30_000

/**
 * Breaks a broker again and again while every node publishes and listens, and counts: each message whose publish resolved has
 * reached every node, or a gap was told in its place; none comes twice; those of a publisher and key come in their order; publishes
 * all are answered; and afterwards everything works as before. For vitest.
 *
 * @param name Names the broker in the report.
 */
export function brokerFaultSuite(
  name: string,
  createSystem: () => BrokerFaultSystem | Promise<BrokerFaultSystem>,
  { faultCount = 20, rounds, nodeCount = 3, recoveryTimeoutMs = 30_000, isLogKept = false }: BrokerFaultOptions = {},
): void {
  const timeoutMs = faultCount * (recoveryTimeoutMs + 2_000) + 2 * SETTLE_TIMEOUT_MS
  describe(`broker ${name}, lost and found`, () => {
    const title = rounds === undefined ? `${faultCount} faults` : `${rounds} of every kind of fault`
    it(`loses nothing in silence over ${title}`, { timeout: timeoutMs }, async () => {
      const system = await createSystem()
      const roundCount = rounds === undefined ? faultCount : rounds * system.faults.length
      const nodes: FaultNode[] = []
      onTestFinished(async () => {
        await Promise.all(nodes.map((node) => node.broker.stop()))
        await system.end()
      }, timeoutMs)
      for (let index = 0; index < nodeCount; index++) {
        const node = new FaultNode(await system.createNode(index), index)
        nodes.push(node)
        await node.broker.start(node.sink)
        // The same by one pattern, by several, and by some that overlap.
        const patterns = [['load.*'], FAULT_KEYS, ['#', 'load.#', 'load.1']][index % 3] ?? []
        for (const pattern of patterns) await node.bind(pattern)
      }
      const allAreUp = () =>
        eventually(() => expect(nodes.map(({ status }) => status)).toEqual(nodes.map(() => 'up')), recoveryTimeoutMs)
      const allHear = (timeoutMs: number) => allHearEachOther(nodes, timeoutMs)

      await allHear(SETTLE_TIMEOUT_MS)
      for (const node of nodes) node.begin()
      const injected = new Map<string, number>()
      for (let round = 0; round < roundCount; round++) {
        const fault = system.faults[round % system.faults.length]
        if (fault === undefined) throw new Error('no faults')
        await fault.inject()
        await sleep(fault.holdMs ?? SHORTEST_HOLD_MS + Math.random() * (LONGEST_HOLD_MS - SHORTEST_HOLD_MS))
        await fault.end()
        await allAreUp()
        await allHear(recoveryTimeoutMs)
        injected.set(fault.name, (injected.get(fault.name) ?? 0) + 1)
      }
      for (const node of nodes) node.pause()
      await eventually(
        () => expect(nodes.flatMap(({ outcomes }) => outcomes)).not.toContain('pending'),
        SETTLE_TIMEOUT_MS,
      )
      // One more on every key, so that what is missing at the end is missing before something.
      for (const _ of FAULT_KEYS) await allHear(SETTLE_TIMEOUT_MS)

      const { violations, ...counts } = examine(nodes)
      const faults = [...injected].map(([fault, count]) => `${count} x ${fault}`).join(', ')
      process.stdout.write(`broker ${name}: ${faults}: ${JSON.stringify(counts)}\n`)
      expect(violations).toEqual([])
      // A fault that nobody noticed would prove nothing.
      expect(nodes.reduce((sum, { broker }) => sum + broker.stats().lostCount, 0)).toBeGreaterThan(0)
      if (isLogKept) expect(counts).toMatchObject({ missedCount: 0, gapCount: 0 })
      else expect(counts.gapCount).toBeGreaterThan(0)
      expect(counts.acceptedCount).toBeGreaterThan(100 * roundCount)
    })
  })
}

/** Every node publishes until a publish was accepted and has come to all. */
async function allHearEachOther(nodes: readonly FaultNode[], timeoutMs: number): Promise<void> {
  await Promise.all(
    nodes.map((node, publisher) =>
      eventually(async () => {
        const number = await node.publish()
        expect(node.outcomes[number]).toBe('accepted')
        await eventually(() => expect(nodes.every((listener) => listener.has(publisher, number))).toBe(true), 1_000)
      }, timeoutMs),
    ),
  )
}
