import { freePort, type Service } from 'webmq-services'
import type { NodeAddress } from '../../packages/check/src/judging/record.js'
import { STREAM_LEASE_MS } from '../../packages/check/src/judging/rules.js'
import { DRAIN_TIMEOUT_MS } from '../../packages/check/src/playing/faults.js'
import { Link } from '../../packages/check/src/playing/link.js'
import { Node, webmqServer } from '../../packages/check/src/playing/node.js'
import {
  type BrokerName,
  LOGGED_PATTERNS,
  type Logged,
  type Schedule,
} from '../../packages/check/src/playing/schedule.js'
import { BROKERS, type BrokerRow, type BrokerService } from './brokers.js'

/** Messages of one rule: more than a run publishes. */
const RULE = '=100000'
const HOST = '127.0.0.1'

/**
 * What schedules of one broker are played on, one after another: its programs, and a {@link Link} in front of each. The
 * nodes belong to the schedules.
 */
export class Stage {
  readonly broker: BrokerName
  readonly row: BrokerRow
  readonly #service: BrokerService | undefined
  readonly #ports: Ports
  /** One per node. */
  readonly clientLinks: readonly Link[]
  /** One per node; none where the nodes are all there is, or find the broker's servers by themselves. */
  readonly brokerLinks: readonly Link[]
  /** One per pair of nodes of a mesh: 0 and 1, 0 and 2, 1 and 2. */
  readonly peerLinks: readonly Link[]

  private constructor(broker: BrokerName, service: BrokerService | undefined, ports: Ports, links: readonly Link[]) {
    this.broker = broker
    this.row = BROKERS[broker]
    this.#service = service
    this.#ports = ports
    const all = [...links]
    this.clientLinks = all.splice(0, ports.nodes.length)
    this.brokerLinks = all.splice(0, service?.hasLinks === true ? ports.nodes.length : 0)
    this.peerLinks = all
  }

  /** @throws {Error} when the broker cannot be started. */
  static async start(broker: BrokerName): Promise<Stage> {
    const row = BROKERS[broker]
    const nodes = await freePorts(row.nodeCount)
    const peers = await freePorts(broker === 'mesh' ? row.nodeCount : 0)
    const service = await row.startService?.()
    const brokerPort = service?.hasLinks === true ? [Number(new URL(service.url).port)] : []
    const targets = [
      ...nodes,
      ...nodes.flatMap(() => brokerPort),
      ...pairsOf(peers).flatMap(([answers]) => peers[answers] ?? []),
    ]
    const links = await Promise.all(targets.map((port) => Link.start(port)))
    return new Stage(broker, service, { nodes, peers }, links)
  }

  /** The programs of the broker; several for a cluster, none where the nodes are all there is. */
  get parts(): readonly Service[] {
    return this.#service?.parts ?? []
  }

  /** Patterns of the keys that a run logs. */
  loggedPatterns(logged: Logged): readonly string[] {
    return this.row.log === false ? [] : LOGGED_PATTERNS[logged]
  }

  /** Nodes for a run, not started yet. Runs with different namespaces know nothing of each other. */
  createNodes({ server, logged }: Pick<Schedule, 'server' | 'logged'>, namespace: string): Node[] {
    const shared = [
      ...['--threads', '1', '--log-level', 'warn', '--broker-namespace', namespace],
      ...['--broker-heartbeat', `${server.brokerHeartbeatMs}ms`, '--drain-timeout', `${DRAIN_TIMEOUT_MS}ms`],
      ...['--ping-interval', '2s', '--ping-timeout', '2s', '--stream-lease', `${STREAM_LEASE_MS}ms`],
      ...this.#historyFlags(logged, server.historyMaxMessages),
      ...(server.maxPayloadBytes === undefined ? [] : ['--max-payload', String(server.maxPayloadBytes)]),
      ...(server.maxOutboxBytes === undefined ? [] : ['--max-outbox', String(server.maxOutboxBytes)]),
    ]
    return this.#ports.nodes.map(
      (port, index) => new Node(`node-${index}`, port, webmqServer(port, [...shared, ...this.#brokerFlags(index)])),
    )
  }

  /** Where clients reach a node, through its link. */
  addressOf(node: number): NodeAddress {
    const port = this.clientLinks[node]?.port
    if (port === undefined) throw new Error(`there is no node ${node}`)
    return { name: `node-${node}`, url: `ws://${HOST}:${port}/ws` }
  }

  /** Ends every fault of a link. */
  heal(): void {
    for (const link of this.#links) link.heal()
  }

  async stop(): Promise<void> {
    for (const link of this.#links) link.stop()
    await this.#service?.stop()
  }

  get #links(): readonly Link[] {
    return [...this.clientLinks, ...this.brokerLinks, ...this.peerLinks]
  }

  #historyFlags(logged: Logged, maxMessages: number): string[] {
    const patterns = this.loggedPatterns(logged)
    const max = ['--history-max-messages', String(patterns.length > 0 ? maxMessages : 0)]
    return [...max, ...patterns.flatMap((pattern) => ['--history', `${pattern}${RULE}`])]
  }

  #brokerFlags(node: number): string[] {
    const { peers } = this.#ports
    const listen = `${HOST}:${peers[node]}`
    if (this.broker === 'mesh') {
      const links = pairsOf(peers).flatMap(([, dials], pair) => (dials === node ? [this.peerLinks[pair]] : []))
      const addresses = [listen, ...links.map((link) => `${HOST}:${link?.port}`)]
      return ['--broker', `mesh://${addresses.join(',')}`, '--mesh-listen', listen]
    }
    const url = this.#service?.url
    if (url === undefined) return []
    const link = this.brokerLinks[node]
    return ['--broker', link === undefined ? url : url.replace(new URL(url).host, `${HOST}:${link.port}`)]
  }
}

interface Ports {
  readonly nodes: readonly number[]
  /** At which the nodes of a mesh listen. */
  readonly peers: readonly number[]
}

async function freePorts(count: number): Promise<number[]> {
  return await Promise.all(Array.from({ length: count }, () => freePort()))
}

/** Of each pair one node answers, the first, and the other dials: so one proxy carries their link. */
function pairsOf(nodes: readonly unknown[]): [answers: number, dials: number][] {
  return nodes.flatMap((_, dials) => nodes.slice(0, dials).map((_, answers): [number, number] => [answers, dials]))
}
