import { Nodes } from '../src/features/nodes/index.js'
import { Occupancy, type OccupancyOptions } from '../src/features/presence/occupancy/occupancy.js'
import type { BrokerStatus, InboundMessage } from '../src/kernel/ports/broker.js'
import type { BrokerHub, HubBroker } from './broker-hub.js'
import { type LogLine, recordingLogger } from './fake-server.js'

export const TTL_MS = 3_000
export const GRACE_MS = 5_000

/** An event as the backend gets it. */
export interface OccupancyEvent {
  readonly event: 'occupied' | 'vacated' | 'vacated-all'
  readonly pattern?: string
  readonly generation: number
}

/** A backend that does what docs/hooks.md says: it drops what is not newer. */
export class OccupancyBackend {
  /** What it took, in order: `+pattern`, `-pattern`, `*` for all. */
  readonly taken: string[] = []
  /** All that came, also again. */
  readonly received: OccupancyEvent[] = []
  isDown = false
  /** It takes events, and its answer is lost. */
  isMute = false
  /** An answer takes so long. */
  answerMs = 0
  #allGeneration = 0
  readonly #generations = new Map<string, number>()
  readonly #occupied = new Set<string>()

  get occupied(): string[] {
    return [...this.#occupied].sort()
  }

  readonly tell = async (texts: readonly string[]): Promise<void> => {
    if (this.isDown) throw new Error('down')
    for (const text of texts) this.#take(JSON.parse(text) as OccupancyEvent)
    if (this.answerMs > 0)
      await new Promise((resolve) => {
        setTimeout(resolve, this.answerMs)
      })
    if (this.isMute) throw new Error('mute')
  }

  #take(event: OccupancyEvent): void {
    this.received.push(event)
    const { generation, pattern } = event
    if (pattern === undefined) {
      if (generation <= this.#allGeneration) return
      this.#allGeneration = generation
      for (const each of this.#occupied)
        if ((this.#generations.get(each) ?? 0) < generation) this.#occupied.delete(each)
      this.taken.push('*')
      return
    }
    if (generation <= Math.max(this.#generations.get(pattern) ?? 0, this.#allGeneration)) return
    this.#generations.set(pattern, generation)
    if (event.event === 'occupied') this.#occupied.add(pattern)
    else this.#occupied.delete(pattern)
    this.taken.push(`${event.event === 'occupied' ? '+' : '-'}${pattern}`)
  }
}

/** The occupancy of one node, without connections. */
export class OccupancyNode {
  readonly broker: HubBroker
  readonly nodes: Nodes
  readonly occupancy: Occupancy
  readonly #lines: readonly LogLine[]
  #isGone = false

  constructor(
    name: string,
    hub: BrokerHub,
    backend: OccupancyBackend,
    { patterns = ['chat.*'], graceMs = GRACE_MS, maxPatterns = 1_000 }: Partial<OccupancyOptions> = {},
  ) {
    this.broker = hub.createBroker()
    const { logger, lines } = recordingLogger()
    this.#lines = lines
    this.nodes = new Nodes({
      node: name,
      version: '1',
      fingerprint: '',
      broker: this.broker,
      maxPayloadBytes: 4_096,
      ttlMs: TTL_MS,
      logger,
      now: Date.now,
    })
    this.occupancy = new Occupancy({
      node: name,
      nodes: this.nodes,
      patterns,
      graceMs,
      maxPatterns,
      maxPayloadBytes: 4_096,
      tell: async (events) => {
        // A crashed process sends nothing.
        if (this.#isGone) return new Promise<never>(() => undefined)
        return await backend.tell(events)
      },
      logger,
      now: Date.now,
    })
    const sink = {
      deliver: (message: InboundMessage) => this.nodes.channel.receive(message),
      gap: () => this.nodes.gap(),
      refused: () => undefined,
      status: (status: BrokerStatus) => this.nodes.status(status),
    }
    void this.broker.start(sink).then(() => this.nodes.begin())
  }

  get warningCount(): number {
    return this.#lines.filter(({ level }) => level === 'warn').length
  }

  listen(pattern: string): void {
    this.occupancy.listened(pattern)
  }

  unlisten(pattern: string): void {
    this.occupancy.unlistened(pattern)
  }

  /** The process ends in order: its connections are closed by then. */
  stop(): void {
    this.occupancy.stop()
    this.nodes.stop()
    this.#isGone = true
  }

  /** The process is killed. */
  kill(): void {
    this.#isGone = true
    this.broker.crash()
    this.occupancy.stop()
    this.nodes.deadlines.stop()
  }
}
