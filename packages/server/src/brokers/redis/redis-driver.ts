import type { BrokerCapabilities } from '../../broker.js'
import { secretHider, withoutPasswords } from '../../broker-address.js'
import type { Link, LinkContext, LinkDriver, LinkEvents } from '../remote/link.js'
import { ClusterLink } from './cluster-link.js'
import { parseRedisAddress, type RedisAddress } from './redis-address.js'
import { RedisLink } from './redis-link.js'

/** Links to Redis: its publish and subscribe, which keeps nothing. */
export class RedisDriver implements LinkDriver {
  readonly name = 'redis'
  readonly takesBundles = true
  readonly capabilities: BrokerCapabilities = {
    history: false,
    // Of a cluster too: a key has one place there.
    ordered: true,
    confirms: true,
    queueGroups: false,
    durable: false,
    manyNodes: true,
  }
  readonly address: string
  readonly #address: RedisAddress
  readonly #hideSecrets: (text: string) => string

  constructor(address: string) {
    this.address = withoutPasswords(address)
    this.#address = parseRedisAddress(address)
    this.#hideSecrets = secretHider(address)
  }

  connect(context: LinkContext, events: LinkEvents, signal: AbortSignal): Promise<Link> {
    const options = { address: this.#address, context, hideSecrets: this.#hideSecrets }
    return this.#address.kind === 'cluster'
      ? ClusterLink.open(options, events, signal)
      : RedisLink.open(options, events, signal)
  }
}
