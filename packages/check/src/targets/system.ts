import type { Agent } from 'node:http'
import { WebSocket } from 'ws'
import type { NodeProgram } from '../playing/node.js'
import type { HeardEvent, Published } from './record.js'

export interface NodeOptions {
  readonly port: number
  /** What the nodes share; absent: there is one node, which keeps everything in its memory. */
  readonly redisUrl?: string | undefined
  /** For a system with {@link System.needsPostgres}. */
  readonly postgresUrl?: string | undefined
  /** Nodes with different ones know nothing of each other. */
  readonly namespace: string
  /** For files of the node; it exists. */
  readonly folder: string
}

/** A system to be judged: how its nodes are started, how a back end publishes, and how its client listens. */
export interface System {
  /** With versions. */
  readonly title: string
  /** The settings that its documents name against loss. */
  readonly settings: string
  /** Its nodes share a PostgreSQL, too. */
  readonly needsPostgres?: boolean
  /** Missing where nodes run already, at {@link addresses}. */
  nodeProgram?(options: NodeOptions): NodeProgram
  /** URLs of two nodes, or twice that of one. */
  readonly addresses?: readonly string[]
  /** Publishes once, by HTTP where nothing else is said. */
  publish(origin: string, message: Omit<Published, 'outcome'>): Promise<Published['outcome']>
  /** Ends what publishes. */
  stop?(): void
  /**
   * Resolves when it is live. Reconnects by itself, as its client does.
   * @param agent Makes the client's connections; not every system takes one.
   */
  listen(
    port: number,
    channels: readonly string[],
    heard: (event: HeardEvent) => void,
    agent?: Agent,
  ): Promise<{ close(): void }>
}

/** An answer that takes longer is unknown. */
const ANSWER_TIMEOUT_MS = 3_000
const NOT_SENT = new Set(['ECONNREFUSED'])

/** One POST of JSON, on a connection of its own. */
export async function post(
  url: string,
  body: unknown,
  isAccepted: (answer: unknown) => boolean,
): Promise<Published['outcome']> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    })
    const answer: unknown = await response.json()
    if (response.status >= 500) return 'unknown'
    return response.ok && isAccepted(answer) ? 'acked' : 'refused'
  } catch (error) {
    const cause = error instanceof Error ? (error.cause as { readonly code?: string } | undefined) : undefined
    return NOT_SENT.has(cause?.code ?? '') ? 'refused' : 'unknown'
  }
}

/** A payload of ours. */
export function numberIn(payload: unknown): number {
  const { number } = payload as { readonly number?: unknown }
  if (typeof number !== 'number') throw new Error(`not a payload of this run: ${JSON.stringify(payload)}`)
  return number
}

/** A WebSocket whose connections this agent makes, without an offer to compress; without an agent the plain one. */
export function webSocketThrough(
  agent: Agent | undefined,
): new (
  address: string | URL,
  protocols?: string | string[],
) => WebSocket {
  if (agent === undefined) return WebSocket
  return class extends WebSocket {
    constructor(address: string | URL, protocols?: string | string[]) {
      super(address, protocols, { agent, perMessageDeflate: false })
    }
  }
}
