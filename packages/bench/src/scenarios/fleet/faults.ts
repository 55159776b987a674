import type { ServerNode } from '../../server-node.js'
import type { DurableBroker } from './durable-broker.js'

/** The parts that a fault breaks, and how it waits. */
export interface FaultContext {
  readonly nodes: readonly ServerNode[]
  /** The node that a fault of one node breaks. */
  readonly victim: ServerNode
  readonly broker: DurableBroker
  /** Aborted when the run ends. */
  readonly signal: AbortSignal
  /** Time until a killed node or broker is started again. */
  readonly downMs: number
  sleep(ms: number): Promise<void>
  /** Resolves when no client is connected with the node any more. @throws {RunError} when that takes too long. */
  deserted(node: ServerNode): Promise<void>
  /** Resolves when all clients are connected. @throws {RunError} when that takes too long. */
  connected(): Promise<void>
}

/** What a fault breaks. It decides what counts as recovery. */
export type Broken = 'all-nodes' | 'one-node' | 'broker'

export interface Fault {
  readonly breaks: Broken
  /** For `--help`. */
  readonly summary: string
  /** Breaks something and repairs it; resolves when it is repaired. */
  play(context: FaultContext): Promise<void>
}

const REST_BETWEEN_NODES_MS = 500
/** A node stands still for so long at least; then until its clients have left it. */
const NODE_STOPPED_MS = 3_000
const SLOW_MS = 4_000
/** In each direction. */
const SLOW_DELAY_MS = 200
const CUT_MS = 3_000

/** By name, in the order in which they are played. */
export const FAULTS = {
  rolling: {
    breaks: 'all-nodes',
    summary: 'each node in turn is told to end (SIGTERM), drains, and is started again',
    async play({ nodes, signal, sleep, connected }) {
      for (const [index, node] of nodes.entries()) {
        if (index > 0) await sleep(REST_BETWEEN_NODES_MS)
        await node.drain(signal)
        await node.start(signal)
        await connected()
      }
    },
  },
  kill: {
    breaks: 'one-node',
    summary: 'a node is killed (SIGKILL), and started again',
    async play({ victim, signal, downMs, sleep }) {
      await victim.kill()
      await sleep(downMs)
      await victim.start(signal)
    },
  },
  stop: {
    breaks: 'one-node',
    summary: 'a node stands still (SIGSTOP) until its clients have left it, and goes on (SIGCONT)',
    async play({ victim, sleep, deserted }) {
      try {
        await victim.freeze()
        await Promise.all([sleep(NODE_STOPPED_MS), deserted(victim)])
      } finally {
        victim.thaw()
      }
    },
  },
  broker: {
    breaks: 'broker',
    summary: 'the broker is killed (SIGKILL), and started again with its data',
    async play({ broker, downMs, sleep }) {
      await broker.service.kill()
      await sleep(downMs)
      await broker.service.restart()
    },
  },
  slow: {
    breaks: 'broker',
    summary: 'the network between nodes and broker delays everything by 200 ms in each direction, for 4 s',
    async play({ broker, sleep }) {
      await broker.network.latency(SLOW_DELAY_MS)
      await sleep(SLOW_MS)
      await broker.network.heal()
    },
  },
  cut: {
    breaks: 'broker',
    summary: 'the network between nodes and broker is cut for 3 s',
    async play({ broker, sleep }) {
      await broker.network.cut()
      await sleep(CUT_MS)
      await broker.network.heal()
    },
  },
} as const satisfies Readonly<Record<FaultName, Fault>>

export type FaultName = 'rolling' | 'kill' | 'stop' | 'broker' | 'slow' | 'cut'

export const FAULT_NAMES = Object.keys(FAULTS) as readonly FaultName[]
