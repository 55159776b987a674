import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BrokerKind } from '../brokers/broker-choice.js'
import type { NodeBrokerOptions, RunningBroker } from '../brokers/running-broker.js'
import { processCpuSeconds } from '../measure/process-usage.js'
import { TargetProcess } from '../targets/target-process.js'
import { Trial, type TrialOptions, type UsageMark } from './trial.js'

/** One node publishes, the other has the connections. */
export const RELAY_NODE_COUNT = 2
const PUBLISHER = 0
const LISTENER = 1
/** A flood waits for a slow broker: its messages come late, but none is refused. */
const BROKER_TIMEOUT_MS = 30_000

/** What can carry messages from one node to another. */
export type RelayBrokerKind = Exclude<BrokerKind, 'memory'>

/** Two servers on one broker: `publisher` publishes, and `target` delivers to the generator's connections. */
export class Relay extends Trial {
  readonly publisher: TargetProcess
  override readonly failed: Promise<never>
  readonly #broker: RunningBroker
  readonly #deliveredCountFd: number
  #isOpen = true

  constructor(options: TrialOptions, broker: RunningBroker) {
    const fd = openUnnamedFile()
    const nodeOptions = (index: number) => ({ ...broker.nodeOptions(index), brokerTimeoutMs: BROKER_TIMEOUT_MS })
    super({
      ...options,
      deliveredCountFd: fd,
      settings: { ...options.settings, ...nodeOptions(LISTENER) },
    })
    const { toldPayloadBytes: _, ...settings } = options.settings
    const publisherSettings = { ...settings, ...nodeOptions(PUBLISHER) }
    this.publisher = new TargetProcess(options.choice, publisherSettings, options.program, fd)
    this.#broker = broker
    this.#deliveredCountFd = fd
    this.failed = Promise.race([this.target.failed, this.publisher.failed, this.loadgen.failed])
    this.failed.catch(() => undefined) // Whoever measures races against it; between two waits nobody does.
  }

  /** Options of one more node on the same broker. @param index From `RELAY_NODE_COUNT`; not for a mesh. */
  nodeOptions(index: number): NodeBrokerOptions {
    return this.#broker.nodeOptions(index)
  }

  override async ready(): Promise<void> {
    await Promise.all([super.ready(), this.publisher.ready()])
  }

  override async mark(): Promise<UsageMark> {
    const [mark, { cpuUserUs, cpuSystemUs, rssBytes }] = await Promise.all([super.mark(), this.publisher.sample()])
    const publisherCpuSeconds = (cpuUserUs + cpuSystemUs) / 1_000_000
    const brokerCpuSeconds = this.#broker.cpuSeconds()
    return { ...mark, relay: { publisherCpuSeconds, publisherRssBytes: rssBytes, brokerCpuSeconds } }
  }

  override serverCpuSeconds(): number | null {
    const [listener, publisher] = [super.serverCpuSeconds(), processCpuSeconds(this.publisher.pid)]
    return listener === null || publisher === null ? null : listener + publisher
  }

  override async stop(): Promise<void> {
    await Promise.all([super.stop(), this.publisher.stop()])
    if (this.#isOpen) closeSync(this.#deliveredCountFd)
    this.#isOpen = false
  }
}

/** An unnamed file that only inheriting processes have; it disappears with the last of them. */
function openUnnamedFile(): number {
  const folder = mkdtempSync(join(tmpdir(), 'webmq-bench-'))
  try {
    return openSync(join(folder, 'delivered-count'), 'w+')
  } finally {
    rmSync(folder, { recursive: true })
  }
}
