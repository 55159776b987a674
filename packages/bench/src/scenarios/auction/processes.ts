import { BackendPool } from '../../backends/backend-pool.js'
import type { BackendOptions, BackendSample } from '../../backends/messages.js'
import { type RunningBroker, startBroker } from '../../brokers/running-broker.js'
import { RunError } from '../../exit-codes.js'
import { nowUs } from '../../measure/clock.js'
import { importBeside } from '../../missing-package.js'
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
}

interface Service {
  readonly url: string
  cpuSeconds(): number | undefined
  stop(): Promise<void>
}

interface Balancer {
  readonly port: number
  cpuSeconds(): number | undefined
  stop(): Promise<void>
}

/** The rule of the example: each item keeps the bids that a client may have missed. All nodes must have the same. */
const HISTORY_RULE = 'auction.#=1000'
const SERVER_MAX_LISTENS = 128
const SERVER_MAX_PAYLOAD_BYTES = 256 * 1_024

/** Everything of an auction but its clients: Redis, the broker, the nodes and the gateway. */
export class AuctionProcesses {
  readonly nodes: BackendPool
  readonly #config: AuctionConfig
  readonly #case: AuctionCase
  readonly #starting: { broker?: Promise<RunningBroker>; redis?: Promise<Service>; balancer?: Promise<Balancer> } = {}
  #gateway: GatewayProcess | undefined
  #fail: (error: unknown) => void = () => undefined
  /** Rejects when one of the processes ends unasked; never resolves. */
  readonly failed: Promise<never>

  constructor(config: AuctionConfig, testCase: AuctionCase) {
    this.#config = config
    this.#case = testCase
    this.nodes = new BackendPool(testCase.nodes)
    const gatewayFailed = new Promise<never>((_, reject) => {
      this.#fail = reject
    })
    this.failed = Promise.race([this.nodes.failed, gatewayFailed])
    this.failed.catch(() => undefined) // Whoever waits for something races against it; between two waits nobody does.
  }

  /** @param program The gateway's. @throws {RunError} when one does not start. */
  async start(program: string, tls: TlsFiles | undefined): Promise<void> {
    const { broker: choice, transport, hasCompression, isBalanced } = this.#config
    // The gateway is a node too.
    this.#starting.broker = startBroker(choice, this.#case.nodes + 1, { hasLog: true })
    this.#starting.redis = startPrivateRedis()
    const [broker, redis] = await Promise.all([this.#starting.broker, this.#starting.redis])
    const options: Omit<BackendOptions, 'broker' | 'brokerNamespace'> = {
      transport,
      history: [HISTORY_RULE],
      maxListensPerConnection: SERVER_MAX_LISTENS,
      maxPayloadBytes: SERVER_MAX_PAYLOAD_BYTES,
      ...(tls === undefined ? {} : { tls }),
      // An event is short: with the default threshold no frame would be compressed.
      ...(hasCompression ? { compression: true, compressionThresholdBytes: 0 } : {}),
    }
    const ofGateway = broker.nodeOptions(this.#case.nodes)
    this.#gateway = await GatewayProcess.start(program, {
      redisUrl: redis.url,
      broker: ofGateway.broker,
      namespace: ofGateway.brokerNamespace,
    })
    this.#gateway.failed.catch(this.#fail)
    await Promise.all([
      this.nodes.start((index) => ({ ...options, ...broker.nodeOptions(index) })),
      this.#gateway.ready(),
    ])
    if (isBalanced) {
      this.#starting.balancer = startBalancer(this.nodes.backends.map(({ port }) => port))
      await this.#starting.balancer
    }
  }

  get gateway(): GatewayProcess {
    if (this.#gateway === undefined) throw new RunError('the gateway has not been started')
    return this.#gateway
  }

  /** Where connections go. */
  async ports(): Promise<readonly number[]> {
    const balancer = await this.#starting.balancer
    return balancer === undefined ? this.nodes.backends.map(({ port }) => port) : [balancer.port]
  }

  /** @param drained The last samples of nodes that are gone, by their place. */
  async mark(drained: ReadonlyMap<number, BackendSample> = new Map()): Promise<AuctionMark> {
    const { broker, redis, balancer } = this.#starting
    const nodes = await Promise.all(
      this.nodes.backends.map(async (node, index) => drained.get(index) ?? (await node.sample())),
    )
    const { user, system } = process.cpuUsage()
    return {
      atUs: nowUs(),
      nodes,
      brokerCpuSeconds: (await broker)?.cpuSeconds() ?? null,
      redisCpuSeconds: (await redis)?.cpuSeconds() ?? null,
      gatewayCpuSeconds: this.gateway.cpuSeconds(),
      balancerCpuSeconds: (await balancer)?.cpuSeconds() ?? null,
      bidderCpuSeconds: (user + system) / 1_000_000,
    }
  }

  /** Ends all of them; resolves when they are gone. Idempotent. */
  async stop(): Promise<void> {
    await Promise.all([this.#gateway?.stop(), this.nodes.stop()])
    const { broker, redis, balancer } = this.#starting
    // A process that did not start left nothing behind, and the run has failed because of it.
    const started = await Promise.allSettled([broker, redis, balancer])
    await Promise.all(started.map(async (one) => (one.status === 'fulfilled' ? await one.value?.stop() : undefined)))
  }
}

/** @throws {RunError} when Redis is not available. */
async function startPrivateRedis(): Promise<Service> {
  const { startRedis } = await importBeside(() => import('webmq-services'), 'the auction')
  return await startRedis({ isPrivate: true }).catch((cause: unknown) => {
    throw new RunError(`redis could not be started: ${reasonOf(cause)}`, { cause })
  })
}

/** @throws {RunError} when HAProxy is not available, or does not start. */
async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const { startLoadBalancer } = await importBeside(() => import('webmq-services'), '--balancer')
  return await startLoadBalancer({ ports }).catch((cause: unknown) => {
    throw new RunError(`the load balancer could not be started: ${reasonOf(cause)}`, { cause })
  })
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}
