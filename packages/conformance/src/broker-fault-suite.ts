import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Broker } from 'webmq-server/ports'
import { examine, FAULT_KEYS, FaultNode, QUIET_KEY, QUIET_TEXT } from './broker/fault-load.js'
import { eventually } from './transport/eventually.js'

/** A fault between nodes and their broker, or of the broker. */
export interface BrokerFault {
  /** In words: `killed and restarted`, `one node half-open`. */
  readonly name: string
  /** Starts the fault. */
  inject(): Promise<void>
  /** Ends the fault; nodes then recover by themselves. */
  end(): Promise<void>
  /** Time between start and end; default random, 100 to 700. */
  readonly holdMs?: number
}

/** Nodes on one broker, and their faults. */
export interface BrokerFaultSystem {
  /** Makes a node that notices the loss of its broker within a second. It gets at least 5 s for a publish. */
  createNode(index: number): Broker | Promise<Broker>
  /** Used in order, then again from the first. */
  readonly faults: readonly BrokerFault[]
  end(): void | Promise<void>
}

/** Size of a {@link brokerFaultSuite}. */
export interface BrokerFaultOptions {
  /** Faults, one after the other; default 20. */
  readonly faultCount?: number
  /** Instead of `faultCount`: every kind of fault this often. */
  readonly rounds?: number
  /** Default 3. */
  readonly nodeCount?: number
  /** Time for all nodes to recover after a fault; default 30,000. */
  readonly recoveryTimeoutMs?: number
  /** All keys are logged and no fault harms the log: no message may be missed, and no gap reported. Default `false`. */
  readonly isLogKept?: boolean
}

const SHORTEST_HOLD_MS = 100
const LONGEST_HOLD_MS = 700
const SETTLE_TIMEOUT_MS = 30_000

/**
 * Breaks a broker repeatedly while every node publishes and listens. Each message whose publish resolved must reach
 * every node, or a gap must stand in its place. None may come twice, and those of a publisher and key must come in
 * order. Every publish must be answered, and afterwards everything must work as before. If all keys are retained, every
 * node, also one that starts at the end, must have the last message of each key. For vitest.
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
        // The same keys by one pattern, by several, and by overlapping ones.
        const patterns = [['load.*'], FAULT_KEYS, ['#', 'load.#', 'load.1']][index % 3] ?? []
        for (const pattern of patterns) await node.bind(pattern)
      }
      const allAreUp = () =>
        eventually(() => expect(nodes.map(({ status }) => status)).toEqual(nodes.map(() => 'up')), recoveryTimeoutMs)
      const allHear = (timeoutMs: number) => allHearEachOther(nodes, timeoutMs)

      await allHear(SETTLE_TIMEOUT_MS)
      const [{ broker: anyBroker } = { broker: undefined }] = nodes
      const isRetained = anyBroker?.capabilities.retained === true
      const quiet = { key: QUIET_KEY, payload: new TextEncoder().encode(QUIET_TEXT), isBinary: false }
      if (isRetained) await anyBroker.publish(quiet)
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
      // One more message on every key, so that a loss at the end shows before a later message.
      for (const _ of FAULT_KEYS) await allHear(SETTLE_TIMEOUT_MS)

      if (isRetained) await haveTheState(nodes, await system.createNode(nodeCount))

      const { violations, ...counts } = examine(nodes)
      const faults = [...injected].map(([fault, count]) => `${count} x ${fault}`).join(', ')
      process.stdout.write(`broker ${name}: ${faults}: ${JSON.stringify(counts)}\n`)
      expect(violations).toEqual([])
      // An unnoticed fault would prove nothing.
      expect(nodes.reduce((sum, { broker }) => sum + broker.stats().lostCount, 0)).toBeGreaterThan(0)
      if (isLogKept) expect(counts).toMatchObject({ missedCount: 0, gapCount: 0 })
      else expect(counts.gapCount).toBeGreaterThan(0)
      expect(counts.acceptedCount).toBeGreaterThan(20 * roundCount)
    })
  })
}

/** @param late Has not been started: it knows what the broker kept, and nothing else. */
async function haveTheState(nodes: readonly FaultNode[], late: Broker): Promise<void> {
  const lateNode = new FaultNode(late, nodes.length)
  onTestFinished(() => late.stop())
  await late.start(lateNode.sink)
  for (const node of nodes) {
    const state = { ...node.lastDelivered(), [QUIET_KEY]: QUIET_TEXT }
    expect([await node.state(), await lateNode.state()]).toEqual([state, state])
  }
}

/** Every node publishes until one publish is accepted and reaches all. */
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
