import { type FaultProxies, type FaultProxy, freePort, type Service, startFaultProxies } from 'webmq-services'
import { BROKERS, type BrokerRow, type BrokerService } from './brokers.js'
import { Node } from './node.js'
import type { NodeAddress } from './record.js'
import { type BrokerName, LOGGED_PATTERNS, type Logged, type Schedule } from './schedule.js'

/** Nodes have so long to close their connections when they are stopped. */
export const DRAIN_TIMEOUT_MS = 1_000
/** Messages of one rule: more than a run publishes. */
const RULE = '=100000'
const HOST = '127.0.0.1'

/**
 * What schedules of one broker are played on, one after another: its programs, and a fault proxy for every link. The
 * nodes belong to the schedules.
 */
export class Stage {
  readonly broker: BrokerName
  readonly row: BrokerRow
  readonly #service: BrokerService | undefined
  readonly #ports: Ports
  readonly #proxies: FaultProxies
  /** One per node. */
  readonly clientLinks: readonly FaultProxy[]
  /** One per node; none where the nodes are all there is, or find the broker's servers by themselves. */
  readonly brokerLinks: readonly FaultProxy[]
  /** One per pair of nodes of a mesh: 0 and 1, 0 and 2, 1 and 2. */
  readonly peerLinks: readonly FaultProxy[]

  private constructor(broker: BrokerName, service: BrokerService | undefined, ports: Ports, proxies: FaultProxies) {
    this.broker = broker
    this.row = BROKERS[broker]
    this.#service = service
    this.#ports = ports
    this.#proxies = proxies
    const all = [...proxies.proxies]
    this.clientLinks = all.splice(0, ports.nodes.length)
    this.brokerLinks = all.splice(0, service?.hasLinks === true ? ports.nodes.length : 0)
    this.peerLinks = all
  }

  /** @throws {Error} when the broker or the proxies cannot be started. */
  static async start(broker: BrokerName): Promise<Stage> {
    const row = BROKERS[broker]
    const ports = {
      nodes: await freePorts(row.nodeCount),
      peers: await freePorts(broker === 'mesh' ? row.nodeCount : 0),
    }
    const service = await row.startService?.()
    try {
      const { url = '', hasLinks = false } = service ?? {}
      const upstreams = [
        ...ports.nodes.map((port) => `ws://${HOST}:${port}/ws`),
        ...(hasLinks ? ports.nodes.map(() => url) : []),
        ...pairsOf(ports.peers).map(([answers]) => `mesh://${HOST}:${ports.peers[answers]}`),
      ]
      return new Stage(broker, service, ports, await startFaultProxies(upstreams.map((url) => ({ url }))))
    } catch (error) {
      await service?.stop()
      throw error
    }
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
      ...['--ping-interval', '2s', '--ping-timeout', '2s'],
      ...this.#historyFlags(logged, server.historyMaxMessages),
      ...(server.maxPayloadBytes === undefined ? [] : ['--max-payload', String(server.maxPayloadBytes)]),
      ...(server.maxOutboxBytes === undefined ? [] : ['--max-outbox', String(server.maxOutboxBytes)]),
    ]
    return this.#ports.nodes.map(
      (port, index) => new Node(`node-${index}`, port, [...shared, ...this.#brokerFlags(index)]),
    )
  }

  /** Where clients reach a node, through its proxy. */
  addressOf(node: number): NodeAddress {
    const url = this.clientLinks[node]?.url
    if (url === undefined) throw new Error(`there is no node ${node}`)
    return { name: `node-${node}`, url }
  }

  /** Ends every fault of a link. */
  async heal(): Promise<void> {
    await Promise.all(this.#proxies.proxies.map((proxy) => proxy.heal()))
  }

  async stop(): Promise<void> {
    await this.#proxies.stop()
    await this.#service?.stop()
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
    const broker = this.brokerLinks[node]?.url ?? this.#service?.url
    return broker === undefined ? [] : ['--broker', broker]
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
