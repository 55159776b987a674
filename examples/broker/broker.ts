import path from 'node:path'
import {
  capabilitiesOf,
  type Link,
  type LinkContext,
  type LinkDriver,
  type LinkEvents,
  RemoteBroker,
  type RemoteBrokerOptions,
} from 'webmq-server/brokers'
import type { Broker } from 'webmq-server/ports'
import { FileLink } from './link.js'

class FileDriver implements LinkDriver {
  readonly linkVersion = 1
  readonly name = 'file'
  readonly takesBundles = false
  readonly capabilities
  readonly address: string
  readonly #rules: string

  constructor(folder: string, options: RemoteBrokerOptions) {
    this.address = folder
    this.capabilities = capabilitiesOf(options, true)
    this.#rules = options.history.fingerprint
  }

  connect(context: LinkContext, events: LinkEvents): Promise<Link> {
    return FileLink.open(path.join(this.address, `${context.namespace}.log`), this.#rules, context, events)
  }
}

/**
 * Nodes of one machine that share a folder: with order, history, state, recovery and told gaps. The file grows until somebody
 * removes it while no node runs.
 */
export function createFileBroker(folder: string, options: RemoteBrokerOptions): Broker {
  return new RemoteBroker(new FileDriver(folder, options), options)
}
