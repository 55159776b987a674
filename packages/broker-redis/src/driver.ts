import {
  capabilitiesOf,
  type Link,
  type LinkContext,
  type LinkDriver,
  type LinkEvents,
  type RemoteBrokerOptions,
  secretHider,
  withoutPasswords,
} from 'webmq-server/brokers'
import type { BrokerCapabilities } from 'webmq-server/ports'
import { parseRedisAddress, type RedisAddress } from './address.js'
import { ClusterLink } from './cluster-link.js'
import { RedisLink } from './link.js'
import { RedisLog } from './log.js'

/** Makes links to Redis. They use publish and subscribe, which stores nothing, and a stream for the log. */
export class RedisDriver implements LinkDriver {
  readonly linkVersion = 1
  readonly name = 'redis'
  readonly takesBundles = true
  readonly capabilities: BrokerCapabilities
  readonly address: string
  #address: RedisAddress
  readonly #log: RedisLog
  #hideSecrets: (text: string) => string

  constructor(address: string, options: RemoteBrokerOptions) {
    this.address = withoutPasswords(address)
    this.#address = parseRedisAddress(address)
    this.#log = new RedisLog(options, this.#address.kind === 'cluster')
    this.#hideSecrets = secretHider(address)
    // Also in a cluster: a key belongs to one master.
    this.capabilities = capabilitiesOf(options, true)
  }

  setAddress(address: string): void {
    this.#address = parseRedisAddress(address)
    this.#hideSecrets = secretHider(address)
  }

  connect(context: LinkContext, events: LinkEvents, signal: AbortSignal): Promise<Link> {
    const options = { address: this.#address, context, log: this.#log, hideSecrets: this.#hideSecrets }
    return this.#address.kind === 'cluster'
      ? ClusterLink.open(options, events, signal)
      : RedisLink.open(options, events, signal)
  }
}
