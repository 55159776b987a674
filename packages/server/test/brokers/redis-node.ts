import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, vi } from 'vitest'
import { createRedisBroker } from 'webmq-broker-redis'
import { historyOf } from 'webmq-conformance'
import type { AddressedBrokerOptions } from '../../src/adapters/brokers/remote/options.js'
import type {
  BrokerSink,
  BrokerStatus,
  OutboundMessage,
  Position,
  RefusedMessage,
} from '../../src/kernel/ports/broker.js'

/** Options of a node besides address and namespace. */
export const OPTIONS: Omit<AddressedBrokerOptions, 'broker' | 'brokerNamespace'> = {
  brokerTimeoutMs: 5_000,
  brokerStartTimeoutMs: 5_000,
  brokerHeartbeatMs: 1_000,
  brokerMaxPendingBytes: 64 * 1_048_576,
  dedupeWindowMs: 60_000,
  dedupeMaxIds: 1_000,
  maxPayloadBytes: 1_048_576,
  ...historyOf(),
}

export function freshNamespace(): string {
  return `test-${randomBytes(6).toString('hex')}`
}

/** A sink that records its calls. */
export interface RecordingSink extends BrokerSink {
  /** Payloads of the messages, as text. */
  readonly messages: { key: string; text: string; isBinary: boolean; position: Position | undefined }[]
  readonly statuses: BrokerStatus[]
  /** Gaps that concern the pattern `#`. */
  readonly gaps: string[]
  readonly refusals: RefusedMessage[]
}

/** @param isListening Whether anyone on the node listens to a key. */
export function createSink(isListening: (key: string) => boolean = () => true): RecordingSink {
  const messages: RecordingSink['messages'] = []
  const statuses: BrokerStatus[] = []
  const gaps: string[] = []
  const refusals: RefusedMessage[] = []
  return {
    messages,
    statuses,
    gaps,
    refusals,
    deliver: ({ key, payload, isBinary, position }) =>
      isListening(key) && messages.push({ key, text: Buffer.from(payload).toString(), isBinary, position }) > 0,
    status: (status) => statuses.push(status),
    gap: (reason, isAffected = () => true) => {
      if (isAffected('#')) gaps.push(reason)
    },
    refused: (message) => refusals.push(message),
  }
}

/** A node that runs until the end of the test. */
export async function startNode(
  options: Partial<AddressedBrokerOptions> & Pick<AddressedBrokerOptions, 'broker'>,
  isListening?: (key: string) => boolean,
) {
  const broker = await createRedisBroker({ ...OPTIONS, brokerNamespace: freshNamespace(), ...options })
  const sink = createSink(isListening)
  onTestFinished(() => broker.stop())
  await broker.start(sink)
  return { broker, sink }
}

export function text(key: string, payload: string, more: Partial<OutboundMessage> = {}): OutboundMessage {
  return { key, payload: Buffer.from(payload), isBinary: false, ...more }
}

export const RECOVERY = { timeout: 20_000 }

export type Node = Awaited<ReturnType<typeof startNode>>

/** A node that logs every key. */
export async function startLogging(broker: string, options: Partial<AddressedBrokerOptions> = {}): Promise<Node> {
  const node = await startNode({ ...OPTIONS, ...historyOf('#=1000'), ...options, broker })
  await node.broker.bind('#')
  return node
}

/** Publishes numbers, and gives their positions. */
export async function publish({ broker }: Node, from: number, to: number): Promise<Position[]> {
  const positions: Position[] = []
  for (let number = from; number < to; number++)
    positions.push((await broker.publish(text('a', `${number}`))).position ?? NONE)
  return positions
}

const NONE: Position = { epoch: 'none', offset: 0, fingerprint: 0 }

export async function readTexts({ broker }: Node, since: Position | undefined = NONE) {
  const { messages, gap } = await broker.read({ since }, ['#'])
  return { texts: messages.map(({ payload }) => Buffer.from(payload).toString()), gap }
}

export function allAreUp(...nodes: readonly Node[]) {
  return vi.waitFor(
    () => expect(nodes.map(({ sink }) => sink.statuses.at(-1))).toEqual(nodes.map(() => 'up')),
    RECOVERY,
  )
}
