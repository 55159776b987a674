import { WebMQError } from 'webmq-client/protocol'
import type { BrokerCapabilities } from '../../ports/broker.js'
import type { Link, LinkContext, LinkDriver, LinkEvents } from '../remote/link.js'
import { readTlsFiles } from '../remote/tls-files.js'
import { type NatsAddress, type NatsHost, textOf } from './address.js'
import { NatsConnection } from './connection.js'
import { type NatsModule, readCredentials } from './credentials.js'
import { LastSeen } from './last-seen.js'
import { NatsLink } from './link.js'
import type { LogStreamOptions } from './log-stream.js'
import { ENVELOPE_BYTES } from './outbox.js'

/** Options of a {@link NatsDriver}. */
export interface NatsDriverOptions {
  readonly address: NatsAddress
  /** Needed for some identities. */
  readonly module: NatsModule | undefined
  /** The server must take messages of this size. */
  readonly maxPayloadBytes: number
  /** Absent where nothing is to be logged. */
  readonly log: LogStreamOptions | undefined
}

/** For one host when there are others to be tried. */
const HOST_TIMEOUT_MS = 3_000

/** Connects to any of the servers of a NATS system. */
export class NatsDriver implements LinkDriver {
  readonly name = 'nats'
  readonly takesBundles = true
  readonly capabilities: BrokerCapabilities
  readonly address: string
  readonly #options: NatsDriverOptions
  readonly #lastSeen = new LastSeen()
  #linkCount = 0

  constructor(options: NatsDriverOptions) {
    this.address = options.address.text
    this.#options = options
    const { log } = options
    this.capabilities = {
      history: log !== undefined,
      // What is not logged goes from server to server as it comes.
      ordered: log?.history.covers('#') === true,
      sharedLog: log !== undefined,
      confirms: true,
      queueGroups: false,
      durable: log !== undefined,
      manyNodes: true,
    }
  }

  async connect(context: LinkContext, events: LinkEvents, signal: AbortSignal): Promise<Link> {
    const connection = await this.#open(context, signal)
    const abort = () => connection.destroy(new Error('no answer in time'))
    signal.addEventListener('abort', abort, { once: true })
    const { log } = this.#options
    const inbox = `_INBOX.${context.node}${++this.#linkCount}`
    const logContext = log === undefined ? undefined : { options: log, lastSeen: this.#lastSeen, inbox }
    const link = new NatsLink(connection, context, events, logContext)
    try {
      this.#checkLimit(connection.info.max_payload)
      await link.probe()
      return link
    } catch (cause) {
      await link.close()
      throw cause
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  /** Tries the hosts from a random one on, so that nodes spread over a cluster. */
  async #open({ node, namespace }: LinkContext, signal: AbortSignal): Promise<NatsConnection> {
    const { address, module, log } = this.#options
    const options = {
      name: `webmq ${namespace} ${node}`,
      credentials: await readCredentials(address.identity, module),
      needsTls: address.needsTls,
      hasHeaders: log !== undefined,
      tls: await readTlsFiles(address.tlsFiles),
    }
    const causes: string[] = []
    for (const host of rotated(address.hosts)) {
      const isOnly = address.hosts.length === 1
      try {
        return await NatsConnection.open(host, isOnly ? options : { ...options, timeoutMs: HOST_TIMEOUT_MS }, signal)
      } catch (cause) {
        if (isOnly || signal.aborted || (cause instanceof WebMQError && cause.code === 'E_BROKER_REFUSED')) throw cause
        causes.push(`${textOf(host)}: ${cause instanceof Error ? cause.message : String(cause)}`)
      }
    }
    throw new Error(causes.join('; '))
  }

  #checkLimit(maxBytes: number): void {
    const { maxPayloadBytes } = this.#options
    const wantedBytes = maxPayloadBytes + ENVELOPE_BYTES
    if (maxBytes >= wantedBytes) return
    throw new WebMQError('E_BROKER_REFUSED', {
      detail:
        `it takes messages of at most ${maxBytes} bytes, and maxPayloadBytes is ${maxPayloadBytes}; ` +
        `raise max_payload of the NATS server to at least ${wantedBytes}, or lower maxPayloadBytes (--max-payload)`,
    })
  }
}

function rotated(hosts: readonly NatsHost[]): readonly NatsHost[] {
  const first = Math.floor(Math.random() * hosts.length)
  return [...hosts.slice(first), ...hosts.slice(0, first)]
}
