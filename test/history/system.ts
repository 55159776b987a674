import type { TestNode } from './node.js'

/** Something that goes wrong at the broker, or between it and the nodes. */
export interface BrokerFault {
  readonly name: string
  inject(): Promise<void>
  /** Ends it; nodes come back by themselves from then on. */
  end(): Promise<void>
  readonly holdMs: number
}

/** Nodes that share a broker. */
export interface TestSystem {
  readonly nodes: readonly TestNode[]
  /** May be none. */
  readonly faults: readonly BrokerFault[]
  stop(): Promise<void>
}

/** Stops nodes, and what they share after them. */
export async function stopAll(nodes: readonly TestNode[], end: () => Promise<unknown>): Promise<void> {
  await Promise.all(nodes.map((node) => node.stop()))
  await end()
}
