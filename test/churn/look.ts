import type { TrafficNode } from '../traffic/node.js'
import type { ChurnBroker } from './brokers.js'
import type { BrokerName } from './options.js'

const MIB = 1_048_576
/** Gauges that are what they were when nothing goes on. */
const GAUGES =
  /^webmq_(connections|users|listens|patterns|pattern_bytes|streams|stream_bytes|presence_(?:members|own_members|watched_keys)|queue_groups|queue_group_(?:members|pending)|requests_pending|broker_pending_messages|broker_pending_bytes|publish_waiting_messages) (\S+)$/gm
const MAX_HEAP_GROWTH = 1.15
/** Caches of a limited number of names may not be full after the warm-up; the largest has 65,536. */
const HEAP_MARGIN_BYTES = 8 * MIB
const MAX_RSS_GROWTH = 1.35
const RSS_MARGIN_BYTES = 24 * MIB

export interface Look {
  /** Of the nodes, and of the broker. */
  readonly counts: Readonly<Record<string, number>>
  readonly heapBytes: readonly number[]
  readonly rssBytes: readonly number[]
}

/** What nodes and broker hold, after the nodes have freed what nothing holds. */
export async function look(broker: ChurnBroker, nodes: readonly TrafficNode[]): Promise<Look> {
  const counts: Record<string, number> = { ...(await broker.counts()) }
  const memory = await Promise.all(nodes.map((node) => node.memory()))
  for (const node of nodes) {
    const { status, body } = await node.http('GET', '/metrics')
    if (status !== 200) throw new Error(`${node.name} answers /metrics with ${status}`)
    for (const [, gauge = '', value] of body.toString().matchAll(GAUGES))
      counts[`node_${gauge}`] = (counts[`node_${gauge}`] ?? 0) + Number(value)
  }
  const heapBytes = memory.map(({ usedBytes }) => usedBytes)
  return { counts, heapBytes, rssBytes: memory.map(({ rssBytes }) => rssBytes) }
}

export function textOf({ counts, heapBytes, rssBytes }: Look): string {
  const mib = (bytes: readonly number[]) => bytes.map((each) => (each / MIB).toFixed(1)).join(' ')
  const shown = Object.entries(counts).map(([name, count]) => `${name} ${count}`)
  return `${shown.join(', ')}; heap MiB ${mib(heapBytes)}, RSS MiB ${mib(rssBytes)}`
}

/** What is left of what was not there before. */
export function differences(name: BrokerName, before: Look, after: Look): string[] {
  const left: string[] = []
  for (const [what, count] of Object.entries(after.counts))
    if (!(count <= (before.counts[what] ?? 0)))
      left.push(`${name}: ${what} ${count}, and ${before.counts[what]} before`)
  const compare = (what: 'heapBytes' | 'rssBytes', growth: number, margin: number) =>
    after[what].forEach((bytes, node) => {
      const was = before[what][node] ?? 0
      if (bytes > was * growth + margin) left.push(`${name} ${node + 1}: ${what} ${bytes}, and ${was} before`)
    })
  compare('heapBytes', MAX_HEAP_GROWTH, HEAP_MARGIN_BYTES)
  compare('rssBytes', MAX_RSS_GROWTH, RSS_MARGIN_BYTES)
  return left
}
