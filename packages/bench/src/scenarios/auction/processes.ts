import type { LoadBalancer, Service } from 'webmq-services'
import { BACKEND_LIMITS, type BackendSample, Backends } from '../../backends.js'
import { type RunningBroker, startBroker } from '../../brokers/running-broker.js'
import { nowUs } from '../../measure/clock.js'
import { CpuBudgets } from '../../measure/cpu-budget.js'
import { type Parts, startBalancer, startService } from '../../parts.js'
import type { TlsFiles } from '../../targets/messages.js'
import { GatewayProcess } from './gateway-process.js'
import type { AuctionConfig } from './options.js'

/** Resources that the processes of an auction have used up to one moment; `null`: not known. */
export interface AuctionMark {
  /** Of the machine's clock. */
  readonly atUs: number
  readonly nodes: readonly BackendSample[]
  readonly brokerCpuSeconds: number | null
  readonly redisCpuSeconds: number | null
  readonly gatewayCpuSeconds: number | null
  /** `null` also without a balancer. */
  readonly balancerCpuSeconds: number | null
  /** Of this process, which bids. */
  readonly bidderCpuSeconds: number
}

/** What differs between two runs of a configuration. */
export interface AuctionCase {
  readonly connections: number
  readonly nodes: number
  /** Cores' worth of CPU time of each node; absent: no limit. */
  readonly cpus?: number
}

/** The rule of the example: each item keeps the bids that a client may have missed. All nodes must have the same. */
const HISTORY_RULE = 'auction.#=1000'

/** Everything of an auction but its clients: Redis, the broker, the nodes, the gateway, and the balancer if there is one. */
export class AuctionProcesses {
  readonly nodes: Backends
  readonly gateway: GatewayProcess
  readonly #broker: RunningBroker
  readonly #redis: Service
  readonly #balancer: LoadBalancer | undefined

  private constructor(
    nodes: Backends,
    gateway: GatewayProcess,
    broker: RunningBroker,
    redis: Service,
    balancer: LoadBalancer | undefined,
  ) {
    this.nodes = nodes
    this.gateway = gateway
    this.#broker = broker
    this.#redis = redis
    this.#balancer = balancer
  }

  /** @param program The gateway's. @throws {RunError} when one does not start. */
  static async start(
    { broker: choice, transport, hasCompression, isBalanced }: AuctionConfig,
    { nodes: nodeCount, cpus }: AuctionCase,
    program: string,
    tls: TlsFiles | undefined,
    parts: Parts,
  ): Promise<AuctionProcesses> {
    const [broker, redis] = await Promise.all([
      // The gateway is a node too.
      parts.add(() => startBroker(choice, nodeCount + 1, { hasLog: true })),
      parts.add(() => startService('redis', ({ startRedis }) => startRedis({ isPrivate: true }))),
    ])
    const settingsOf = (index: number) => ({
      ...BACKEND_LIMITS,
      ...broker.nodeOptions(index),
      history: [HISTORY_RULE],
      ...(tls === undefined ? {} : { tls }),
      // An event is short: with the default threshold no frame would be compressed.
      ...(hasCompression ? { compression: true, compressionThresholdBytes: 0 } : {}),
    })
    const budgets = cpus === undefined ? undefined : await parts.add(() => CpuBudgets.open())
    const nodes = await parts.add(() => new Backends(nodeCount, transport, settingsOf))
    const ofGateway = broker.nodeOptions(nodeCount)
    const gateway = await parts.add(() =>
      GatewayProcess.start(program, {
        redisUrl: redis.url,
        broker: ofGateway.broker,
        namespace: ofGateway.brokerNamespace,
      }),
    )
    await Promise.all([nodes.ready(), gateway.ready()])
    if (cpus !== undefined) for (const pid of nodes.pids) budgets?.limit(pid, cpus)
    const balancer = isBalanced ? await parts.add(() => startBalancer(nodes.ports)) : undefined
    return new AuctionProcesses(nodes, gateway, broker, redis, balancer)
  }

  get ports(): readonly number[] {
    return this.#balancer === undefined ? this.nodes.ports : [this.#balancer.port]
  }

  async mark(): Promise<AuctionMark> {
    const nodes = await this.nodes.sample()
    const { user, system } = process.cpuUsage()
    return {
      atUs: nowUs(),
      nodes,
      brokerCpuSeconds: this.#broker.cpuSeconds(),
      redisCpuSeconds: this.#redis.cpuSeconds() ?? null,
      gatewayCpuSeconds: this.gateway.cpuSeconds(),
      balancerCpuSeconds: this.#balancer?.cpuSeconds() ?? null,
      bidderCpuSeconds: (user + system) / 1_000_000,
    }
  }
}
