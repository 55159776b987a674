import type { Accepted, Broker, OutboundMessage } from '../ports/broker.js'
import { isPromise, type MaybePromise } from '../ports/maybe-promise.js'
import { isReserved } from '../ports/reserved-keys.js'
import type { QueueGroups } from './queue-groups.js'

/**
 * The same broker, whose publishes also hand each message to one member of each queue group. A publish is accepted once
 * the broker has accepted it and a member of each group has it.
 * Cost while no queue group matches: one look-up per publish, and nothing while there is none.
 */
export function handingOver(broker: Broker, groups: () => Pick<QueueGroups, 'match' | 'handOver'>): Broker {
  const publish = (message: OutboundMessage): Accepted | Promise<Accepted> => {
    const accepted = broker.publish(message)
    const handed = handedOver(message)
    return handed === undefined ? accepted : Promise.all([accepted, handed]).then(([answer]) => answer)
  }
  /** `undefined` when nobody has to be waited for. */
  const handedOver = (message: OutboundMessage): Promise<unknown> | undefined => {
    if (isReserved(message.key)) return undefined
    const slots = groups().match(message.key)
    if (slots.length === 0) return undefined
    const waiting: MaybePromise<unknown>[] = slots.map((slot) => attempt(() => groups().handOver(slot, message)))
    return waiting.some(isPromise) ? Promise.all(waiting) : undefined
  }
  const { publishBatch } = broker
  return {
    name: broker.name,
    get capabilities() {
      return broker.capabilities
    },
    start: (sink) => broker.start(sink),
    bind: (pattern) => broker.bind(pattern),
    unbind: (pattern) => broker.unbind(pattern),
    publish,
    ...(publishBatch === undefined
      ? undefined
      : {
          publishBatch: (messages) => {
            const accepted = publishBatch.call(broker, messages)
            const handed = messages.map(handedOver).filter((each) => each !== undefined)
            return handed.length === 0 ? accepted : Promise.all([accepted, ...handed]).then(([answers]) => answers)
          },
        }),
    read: (range, patterns, reader) => broker.read(range, patterns, reader),
    position: () => broker.position(),
    setAddress: (address) => broker.setAddress?.(address),
    stats: () => broker.stats(),
    stop: (limitMs) => broker.stop(limitMs),
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
