import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { onTestFinished } from 'vitest'
import { createNatsBroker } from 'webmq-broker-nats'
import { historyOf } from 'webmq-conformance'
import type { Service } from 'webmq-services'
import { startNats } from 'webmq-services'
import type { AddressedBrokerOptions } from '../../src/adapters/brokers/remote/options.js'
import type {
  Broker,
  BrokerSink,
  BrokerStatus,
  OutboundMessage,
  Position,
  RefusedMessage,
} from '../../src/kernel/ports/broker.js'

/** Options of a node besides address and namespace. */
const OPTIONS: Omit<AddressedBrokerOptions, 'broker' | 'brokerNamespace'> = {
  brokerTimeoutMs: 5_000,
  brokerStartTimeoutMs: 5_000,
  brokerHeartbeatMs: 400,
  brokerMaxPendingBytes: 64 * 1_048_576,
  dedupeWindowMs: 60_000,
  dedupeMaxIds: 1_000,
  maxPayloadBytes: 262_144,
  ...historyOf('#=1000'),
}

export function freshNamespace(): string {
  return `test-${randomBytes(6).toString('hex')}`
}

/** A folder that ends with the test. */
export async function ownFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'webmq-nats-log-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

/** A server that ends with the test. */
export async function privateNats(config: string): Promise<Service> {
  const server = await startNats({ config })
  onTestFinished(() => server.stop())
  return server
}

/** A sink that records its calls. */
class RecordingSink implements BrokerSink {
  readonly messages: { readonly key: string; readonly text: string; readonly isBinary: boolean }[] = []
  readonly positions: (Position | undefined)[] = []
  readonly statuses: BrokerStatus[] = []
  /** Gaps that concern the pattern `#`. */
  readonly gaps: string[] = []
  readonly refusals: RefusedMessage[] = []
  /** Whether anyone on the node listens. */
  isListening = true

  get texts(): string[] {
    return this.messages.map(({ text }) => text)
  }

  deliver({ key, payload, isBinary, position }: Parameters<BrokerSink['deliver']>[0]): boolean {
    if (!this.isListening) return false
    this.messages.push({ key, text: Buffer.from(payload).toString(), isBinary })
    this.positions.push(position)
    return true
  }

  status(status: BrokerStatus): void {
    this.statuses.push(status)
  }

  gap(reason: string, isAffected: (pattern: string) => boolean = () => true): void {
    if (isAffected('#')) this.gaps.push(reason)
  }

  refused(message: RefusedMessage): void {
    this.refusals.push(message)
  }
}

/** A node that runs until the end of the test. */
export async function startNode(options: Partial<AddressedBrokerOptions> & Pick<AddressedBrokerOptions, 'broker'>) {
  const broker = await createNatsBroker({ ...OPTIONS, brokerNamespace: freshNamespace(), ...options })
  const sink = new RecordingSink()
  onTestFinished(() => broker.stop())
  await broker.start(sink)
  return { broker, sink }
}

export function text(key: string, payload: string, more: Partial<OutboundMessage> = {}): OutboundMessage {
  return { key, payload: Buffer.from(payload), isBinary: false, ...more }
}

/** The messages of a node's log, as text. */
export async function logged(broker: Broker, pattern = '#'): Promise<string[]> {
  const { messages } = await broker.read({ last: 100_000 }, [pattern])
  return messages.map(({ payload }) => Buffer.from(payload).toString())
}

/** A connection of another program. */
export async function plainClient(service: { readonly url: string }): Promise<NatsConnection> {
  const client = await connect({ servers: service.url })
  onTestFinished(() => client.close())
  return client
}

/** Sends a request to JetStream; resolves to the answer. */
export async function askJetStream(
  service: { readonly url: string },
  name: string,
  body: object = {},
): Promise<StreamAnswer> {
  const client = await connect({ servers: service.url })
  const answer = await client.request(`$JS.API.${name}`, JSON.stringify(body))
  await client.close()
  return answer.json<StreamAnswer>()
}

/** The parts of an answer that tests look at. */
export interface StreamAnswer {
  readonly error?: { readonly description: string }
  readonly config?: Readonly<Record<string, unknown>>
  readonly state?: Readonly<Record<string, number>>
  readonly consumers?: readonly string[]
}
