import { WebMQError } from 'webmq-client/protocol'
import type { Broker } from '../ports/broker.js'
import { brokerNameOf } from '../ports/broker-address.js'

interface RetainingOptions {
  readonly broker: string | Broker
  readonly retain: readonly string[]
  readonly retainMaxKeys: number
  readonly retainMaxBytes: number
  readonly historyMaxMessages: number
  readonly historyMaxBytes: number
}

/**
 * The log of a broker between machines carries the retained messages again and again, before it drops them. More of them
 * would fill it with nothing else.
 */
const MAX_RETAINED_SHARE = 1 / 4

/** @throws {WebMQError} `E_OPTION_INVALID` */
export function assertRetain(options: RetainingOptions): void {
  if (options.retain.length === 0) return
  const { broker, historyMaxMessages, historyMaxBytes, retainMaxKeys, retainMaxBytes } = options
  const name = typeof broker === 'string' ? brokerNameOf(broker) : undefined
  if (name === 'mesh')
    throw new WebMQError('E_OPTION_INVALID', {
      detail: 'retain: each node of a mesh has a log of its own; use another broker',
    })
  if (historyMaxMessages === 0 || historyMaxBytes === 0)
    throw new WebMQError('E_OPTION_INVALID', { detail: 'retain: needs a log (historyMaxMessages, historyMaxBytes)' })
  if (name === undefined || name === 'memory') return
  const maxKeys = Math.floor(historyMaxMessages * MAX_RETAINED_SHARE)
  const maxBytes = Math.floor(historyMaxBytes * MAX_RETAINED_SHARE)
  if (retainMaxKeys > maxKeys)
    throw new WebMQError('E_OPTION_INVALID', {
      detail: `retainMaxKeys: ${retainMaxKeys} is more than a quarter of historyMaxMessages, ${maxKeys}`,
    })
  if (retainMaxBytes > maxBytes)
    throw new WebMQError('E_OPTION_INVALID', {
      detail: `retainMaxBytes: ${retainMaxBytes} is more than a quarter of historyMaxBytes, ${maxBytes}`,
    })
}
