import { addAbortListener } from 'node:events'
import { WebMQError } from 'webmq-client/protocol'
import {
  capabilitiesOf,
  type Link,
  type LinkContext,
  type LinkDriver,
  type LinkEvents,
  limitedSignal,
  type RemoteBrokerOptions,
  readTlsFiles,
  reasonOf,
} from 'webmq-server/brokers'
import type { BrokerCapabilities } from 'webmq-server/ports'
import { type NatsAddress, type NatsHost, parseNatsAddress, textOf } from './address.js'
import type { NatsCore, NatsJetStream } from './connect.js'
import { connectTo, type OpenedConnection, readCredentials } from './connect.js'
import { LastSeen } from './generation-guard.js'
import { NatsLink } from './link.js'
import type { LogStreamOptions } from './log-stream.js'
import { ENVELOPE_BYTES } from './sender.js'

/** Time limit per host; a single one has at least two heartbeats. A host that takes connections may answer none of them. */
const HOST_TIMEOUT_MS = 3_000
/** Time limit for JetStream's answers: if the asked server of a cluster is gone, nobody reports it. */
const REQUEST_TIMEOUT_MS = 3_000

export class NatsDriver implements LinkDriver {
  readonly linkVersion = 1
  readonly name = 'nats'
  readonly takesBundles = true
  readonly capabilities: BrokerCapabilities
  readonly address: string
  readonly #options: LogStreamOptions
  readonly #core: NatsCore
  /** Absent without history. */
  readonly #jetStream: NatsJetStream | undefined
  #address: NatsAddress
  readonly #lastSeen = new LastSeen()
  #linkCount = 0

  constructor(
    address: NatsAddress,
    options: RemoteBrokerOptions,
    core: NatsCore,
    jetStream: NatsJetStream | undefined,
  ) {
    this.address = address.text
    this.#options = { ...options, replicaCount: address.replicaCount }
    this.#core = core
    this.#jetStream = jetStream
    this.#address = address
    // Core NATS keeps no common order between servers; only the log does.
    this.capabilities = capabilitiesOf(options, jetStream !== undefined && options.history.covers('#'))
  }

  setAddress(address: string): void {
    this.#address = parseNatsAddress(address)
  }

  async connect(context: LinkContext, events: LinkEvents, signal: AbortSignal): Promise<Link> {
    // One per link, so that late answers for a lost link are dropped.
    const inbox = `_INBOX.${context.node}${++this.#linkCount}`
    const opened = await this.#open(context, inbox, signal)
    const { connection } = opened
    const jetStream = this.#jetStream
    const log = jetStream && {
      core: this.#core,
      jetStream,
      manager: await jetStream.jetstreamManager(connection, { checkAPI: false, timeout: REQUEST_TIMEOUT_MS }),
      options: this.#options,
      lastSeen: this.#lastSeen,
      inbox,
    }
    const link = new NatsLink(opened, context, events, log)
    using _listener = addAbortListener(signal, () => link.lose(new Error('no answer in time')))
    try {
      this.#checkLimit(connection.info?.max_payload ?? 0)
      await link.probe()
      return link
    } catch (cause) {
      link.destroy()
      throw cause
    }
  }

  /** Tries all hosts, beginning with a random one, so that nodes spread over a cluster. */
  async #open(
    { node, namespace, heartbeatMs }: LinkContext,
    inbox: string,
    signal: AbortSignal,
  ): Promise<OpenedConnection> {
    const core = this.#core
    const address = this.#address
    const files = await readTlsFiles(address.tlsFiles)
    const options = {
      name: `webmq ${namespace} ${node}`,
      authenticator: await readCredentials(address.identity, core),
      tls: address.needsTls ? textsOf(files) : undefined,
      inboxPrefix: inbox,
    }
    const causes: string[] = []
    const isSingle = address.hosts.length === 1
    for (const host of rotated(address.hosts)) {
      using limited = limitedSignal(signal, isSingle ? Math.max(HOST_TIMEOUT_MS, 2 * heartbeatMs) : HOST_TIMEOUT_MS)
      try {
        return await connectTo(core, host, options, limited.signal)
      } catch (cause) {
        const isRefused = cause instanceof WebMQError && cause.code === 'E_BROKER_REFUSED'
        if (isSingle || signal.aborted || isRefused) throw cause
        causes.push(`${textOf(host)}: ${reasonOf(cause)}`)
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

function textsOf(files: Readonly<Record<string, Buffer>>): Record<string, string> {
  return Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, bytes.toString()]))
}

function rotated(hosts: readonly NatsHost[]): readonly NatsHost[] {
  const first = Math.floor(Math.random() * hosts.length)
  return [...hosts.slice(first), ...hosts.slice(0, first)]
}
