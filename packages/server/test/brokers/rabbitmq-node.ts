import { onTestFinished } from 'vitest'
import { createRabbitmqBroker, type RabbitmqBrokerOptions } from 'webmq-broker-rabbitmq'
import { historyOf } from 'webmq-conformance'
import type { Broker } from '../../src/kernel/ports/broker.js'

let namespaceCount = 0

/** A namespace that no other test uses. */
export function newNamespace(): string {
  return `test-${process.pid}-${++namespaceCount}`
}

/** Options of a node on the RabbitMQ at `url`. */
export function nodeOptions(
  url: string,
  namespace: string,
  more: Partial<RabbitmqBrokerOptions> = {},
): RabbitmqBrokerOptions {
  return {
    broker: url,
    brokerNamespace: namespace,
    brokerTimeoutMs: 10_000,
    brokerStartTimeoutMs: 5_000,
    brokerHeartbeatMs: 5_000,
    brokerMaxPendingBytes: 67_108_864,
    dedupeWindowMs: 60_000,
    dedupeMaxIds: 1_000,
    maxPayloadBytes: 1_048_576,
    ...historyOf(),
    ...more,
  }
}

/** A received message. */
export interface Received {
  readonly key: string
  readonly text: string
  readonly isBinary: boolean
}

/** A node that runs until the test ends. */
export interface RabbitmqNode {
  readonly broker: Broker
  readonly received: Received[]
  /** Reports in their order: `up`, `down: why`, `gap why`. */
  readonly events: string[]
}

/** Starts a node and records its messages and events. @param isListening Whether anyone on the node listens to a key. */
export async function startNode(
  options: RabbitmqBrokerOptions,
  isListening: (key: string) => boolean = () => true,
): Promise<RabbitmqNode> {
  const broker = await createRabbitmqBroker(options)
  const received: Received[] = []
  const events: string[] = []
  onTestFinished(() => broker.stop())
  await broker.start({
    deliver: ({ key, payload, isBinary }) =>
      isListening(key) && received.push({ key, text: new TextDecoder().decode(payload), isBinary }) > 0,
    status: (status, cause) => events.push(cause === undefined ? status : `${status}: ${cause.message}`),
    gap: (reason) => events.push(`gap ${reason}`),
    refused: () => undefined,
  })
  return { broker, received, events }
}

/** Publishes a text message. */
export async function publishText(broker: Broker, key: string, text: string): Promise<void> {
  await broker.publish({ key, payload: new TextEncoder().encode(text), isBinary: false })
}
