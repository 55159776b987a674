import { WebMQError } from 'webmq-client/protocol'
import type { Broker } from '../ports/broker.js'
import { brokerNameOf } from '../ports/broker-address.js'

interface PartitioningOptions {
  readonly broker: string | Broker
  readonly history: readonly string[]
  readonly retain: readonly string[]
  readonly historyMaxMessages: number
  readonly historyMaxBytes: number
  readonly historyPartitions: number
}

/** @throws {WebMQError} `E_OPTION_INVALID` */
export function assertPartitions(options: PartitioningOptions): void {
  const { broker, history, retain, historyMaxMessages, historyMaxBytes, historyPartitions } = options
  if (historyPartitions === 1) return
  const name = typeof broker === 'string' ? brokerNameOf(broker) : undefined
  if (name === undefined || name === 'memory' || name === 'mesh')
    throw invalid('each node has a log of its own with this broker; use Redis, NATS or RabbitMQ')
  if (history.length + retain.length === 0) throw invalid('needs a log (history, --history)')
  if (historyMaxMessages === 0 || historyMaxBytes === 0)
    throw invalid('needs a log (historyMaxMessages, historyMaxBytes)')
}

function invalid(detail: string): WebMQError {
  return new WebMQError('E_OPTION_INVALID', { detail: `historyPartitions: ${detail}` })
}
