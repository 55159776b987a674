import { isPromise, type MaybePromise } from '../../kernel/base/maybe-promise.js'
import type { Accepted, Broker, OutboundMessage } from '../../kernel/ports/broker.js'
import { BrokerFilter } from '../../kernel/ports/broker-filter.js'
import { isReserved } from '../../kernel/ports/reserved-keys.js'
import type { QueueGroups } from './queue-groups.js'

/**
 * The same broker, whose publishes also hand each message to one member of each queue group. A publish is accepted once
 * the broker has accepted it and a member of each group has it.
 * Cost while no queue group matches: one look-up per publish, and nothing while there is none.
 */
export class GroupedBroker extends BrokerFilter {
  readonly #groups: QueueGroups

  constructor(broker: Broker, groups: QueueGroups) {
    super(broker)
    this.#groups = groups
    const { publishBatch } = this
    if (publishBatch === undefined) return
    this.publishBatch = (messages) => {
      const accepted = publishBatch(messages)
      const handed = messages.map((message) => this.#handedOver(message)).filter((each) => each !== undefined)
      return handed.length === 0 ? accepted : Promise.all([accepted, ...handed]).then(([answers]) => answers)
    }
  }

  override publish(message: OutboundMessage): MaybePromise<Accepted> {
    const accepted = super.publish(message)
    const handed = this.#handedOver(message)
    return handed === undefined ? accepted : Promise.all([accepted, handed]).then(([answer]) => answer)
  }

  /** `undefined` when nobody has to be waited for. */
  #handedOver(message: OutboundMessage): Promise<unknown> | undefined {
    if (isReserved(message.key)) return undefined
    if (this.#groups.isKnown) return this.#toGroups(message)
    return this.#groups.handOvers.hold(message, (held) => this.#toGroups(held))
  }

  #toGroups(message: OutboundMessage): Promise<unknown> | undefined {
    const { known, handOvers, early } = this.#groups
    const matching = known.match('listen', message.key)
    early.add(message, matching)
    if (matching.length === 0) return undefined
    const waiting: MaybePromise<unknown>[] = matching.map((group) => attempt(() => handOvers.handOver(group, message)))
    return waiting.some(isPromise) ? Promise.all(waiting) : undefined
  }
}

/** One group that cannot be handed over to must not keep the others from it. */
function attempt(handOver: () => MaybePromise<unknown>): MaybePromise<unknown> {
  try {
    return handOver()
  } catch (error) {
    return Promise.reject(error)
  }
}
