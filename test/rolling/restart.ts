import { WebMQClient } from 'webmq-client'
import { createServer, type ServerOptions, type WebMQServer } from 'webmq-server'
import { freePort, startLoadBalancer } from 'webmq-services'
import { WebSocket } from 'ws'

/** How nodes are restarted one after the other, and under which load. */
export interface RollingOptions {
  readonly nodeCount: number
  readonly clientCount: number
  readonly publishesPerSecond: number
  /** Time before, between and after the restarts. */
  readonly restMs: number
  /** Of every node: broker, drain, limits. */
  readonly server: ServerOptions
  /** Called ten times per second, when given. */
  readonly sampled?: (sample: Sample) => void
}

/** The system at one moment. */
export interface Sample {
  readonly atMs: number
  /** By node; 0 while it does not run. */
  readonly connections: readonly number[]
  /** Connections that were opened so far, the first ones included. */
  readonly openedCount: number
}

/** What the clients saw. */
export interface RollingResult {
  readonly publishedCount: number
  readonly failedPublishCount: number
  /** Messages that listeners should have got, over all of them. */
  readonly expectedCount: number
  readonly lostCount: number
  /** Messages that came twice or late. */
  readonly misplacedCount: number
  readonly gapCount: number
  readonly reconnectCount: number
  /** Most connections that were opened within one second after the start. */
  readonly mostReconnectsPerSecond: number
}

const SAMPLE_MS = 100
const SETTLE_MS = 20_000

/**
 * Restarts nodes behind HAProxy one after the other, while one client publishes numbers and the others listen. All clients
 * come through the balancer.
 */
export async function rollingRestart(options: RollingOptions): Promise<RollingResult> {
  const ports = await Promise.all(Array.from({ length: options.nodeCount }, () => freePort()))
  const nodes = await Promise.all(ports.map((port) => startNode(port, options.server)))
  await using balancer = await startLoadBalancer({ ports })
  const url = `ws://${balancer.host}:${balancer.port}/ws`
  const listeners = Array.from({ length: options.clientCount }, () => new Listener(url))
  const publisher = new Publisher(url)
  const openedAtMs = () => [...listeners, publisher].flatMap((client) => client.openedAtMs)
  const startedMs = performance.now()
  const sampler = setInterval(() => {
    const connections = nodes.map(connectionCountOf)
    options.sampled?.({ atMs: performance.now() - startedMs, connections, openedCount: openedAtMs().length })
  }, SAMPLE_MS)
  try {
    await Promise.all([...listeners.map(({ ready }) => ready), publisher.connect()])
    const firstMs = performance.now()
    publisher.start(options.publishesPerSecond)
    await wait(options.restMs)
    for (const [index, port] of ports.entries()) {
      await nodes[index]?.stop()
      nodes[index] = await startNode(port, options.server)
      await wait(options.restMs)
    }
    const { publishedCount, failedCount } = await publisher.stop()
    const deadlineMs = performance.now() + SETTLE_MS
    while (listeners.some(({ numbers }) => numbers.length < publishedCount) && performance.now() < deadlineMs) {
      await wait(SAMPLE_MS)
    }
    const reconnects = openedAtMs().filter((atMs) => atMs > firstMs)
    return {
      publishedCount,
      failedPublishCount: failedCount,
      expectedCount: publishedCount * listeners.length,
      lostCount: sum(listeners.map(({ numbers }) => publishedCount - new Set(numbers).size)),
      misplacedCount: sum(listeners.map(({ numbers }) => misplacedIn(numbers))),
      gapCount: sum(listeners.map(({ gapCount }) => gapCount)),
      reconnectCount: reconnects.length,
      mostReconnectsPerSecond: mostWithin(reconnects, 1_000),
    }
  } finally {
    clearInterval(sampler)
    await Promise.all([...listeners, publisher].map((client) => client.close()))
    await Promise.all(nodes.map((node) => node.stop({ drainMs: 0, delayMs: 0 })))
  }
}

async function startNode(port: number, options: ServerOptions): Promise<WebMQServer> {
  const node = createServer({ port, logLevel: 'silent', ...options })
  await node.start()
  return node
}

function connectionCountOf(node: WebMQServer): number {
  return node.address === undefined ? 0 : node.stats().connectionCount
}

/** A client, and when its connections were opened. */
class Client {
  readonly openedAtMs: number[] = []
  protected readonly client: WebMQClient

  constructor(url: string) {
    this.client = new WebMQClient({ url, WebSocket })
    this.client.on('connected', () => this.openedAtMs.push(performance.now()))
  }

  connect(): Promise<unknown> {
    return this.client.connect()
  }

  async close(): Promise<void> {
    await this.client.close({ flushMs: 0 })
  }
}

class Listener extends Client {
  readonly numbers: number[] = []
  readonly ready: Promise<unknown>
  gapCount = 0

  constructor(url: string) {
    super(url)
    this.client.on('gap', () => this.gapCount++)
    this.ready = this.client.listen('load.#', (number) => this.numbers.push(Number(number))).ready
  }
}

class Publisher extends Client {
  readonly #answers: Promise<unknown>[] = []
  #failedCount = 0
  #timer: NodeJS.Timeout | undefined

  start(perSecond: number): void {
    this.#timer = setInterval(() => {
      const answer = this.client.publish('load.numbers', this.#answers.length)
      this.#answers.push(
        answer.catch(() => {
          this.#failedCount++
        }),
      )
    }, 1_000 / perSecond)
  }

  /** Resolves when all publishes are answered. */
  async stop(): Promise<{ publishedCount: number; failedCount: number }> {
    clearInterval(this.#timer)
    await Promise.all(this.#answers)
    return { publishedCount: this.#answers.length, failedCount: this.#failedCount }
  }
}

function misplacedIn(numbers: readonly number[]): number {
  return numbers.filter((number, index) => index > 0 && number <= (numbers[index - 1] ?? -1)).length
}

function mostWithin(times: readonly number[], windowMs: number): number {
  const sorted = [...times].sort((one, other) => one - other)
  return Math.max(0, ...sorted.map((from) => sorted.filter((at) => at >= from && at < from + windowMs).length))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
