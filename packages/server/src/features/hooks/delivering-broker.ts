import { andThen, type MaybePromise } from '../../kernel/base/maybe-promise.js'
import type { HookPort } from '../../kernel/identity/hook-port.js'
import type { Broker, BrokerSink, InboundMessage, Reader, ReadRange, ReadResult } from '../../kernel/ports/broker.js'
import { BrokerFilter } from '../../kernel/ports/broker-filter.js'
import { isReserved } from '../../kernel/ports/reserved-keys.js'

/**
 * The same broker, whose messages pass the hook `deliver` on their way to this node: live ones and those of the log. A
 * message for which the hook fails is refused: its listeners are told of a gap.
 */
export class DeliveringBroker extends BrokerFilter {
  readonly #hooks: Pick<HookPort, 'deliver'>
  readonly #hasListeners: (key: string) => boolean

  /** @param hasListeners Whether anyone on this node listens to the key: the hook is not asked for nobody. */
  constructor(broker: Broker, hooks: Pick<HookPort, 'deliver'>, hasListeners: (key: string) => boolean) {
    super(broker)
    this.#hooks = hooks
    this.#hasListeners = hasListeners
  }

  override start(sink: BrokerSink): Promise<void> {
    return super.start({
      ...sink,
      deliver: (message) => {
        if (isReserved(message.key) || !this.#hasListeners(message.key)) return sink.deliver(message)
        let outcome: InboundMessage | undefined
        try {
          outcome = this.#hooks.deliver(message)
        } catch {
          // Logged by the hook.
          sink.refused({ reason: 'failed', pattern: message.key, detail: 'the hook deliver failed' })
          return true
        }
        return outcome === undefined ? true : sink.deliver(outcome)
      },
    })
  }

  override read(range: ReadRange, patterns: readonly string[], reader?: Reader): MaybePromise<ReadResult> {
    return andThen(super.read(range, patterns, reader), (result) => hookedResult(result, this.#hooks))
  }
}

function hookedResult(result: ReadResult, hooks: Pick<HookPort, 'deliver'>): ReadResult {
  const messages: InboundMessage[] = []
  let hasFailed = false
  for (const message of result.messages) {
    try {
      const outcome = hooks.deliver(message)
      if (outcome !== undefined) messages.push(outcome)
    } catch {
      // Logged by the hook.
      hasFailed = true
    }
  }
  return { ...result, messages, ...(hasFailed && result.gap === undefined ? { gap: 'refused' } : undefined) }
}
