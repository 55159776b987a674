import type { Receiving } from '../../core/listening/receiver.js'
import { clientOf, type GivenClient } from '../../core/of-client.js'
import type { ListenOptions, Message, MessageHandler } from '../../core/types.js'
import { acquire } from './shared.js'

/** Options of a listen that lasts as long as a component. */
export interface TopicOptions<P = unknown> extends Omit<ListenOptions, 'signal'> {
  /** Puts parts around the handler, once per listen: `(handler) => loaded(handler, load)`, `(handler) => latest(handler)`. */
  readonly receiver?: (handler: MessageHandler<P>) => Receiving<P>
  /** Time between the end of the component and that of the listen; default 1,000. */
  readonly graceMs?: number
}

/**
 * Listens for one component. Returns a function that ends it: no message is handled after the call.
 *
 * @param owner The component. If it begins again within `graceMs`, its listen goes on, and nothing is replayed again.
 */
export function topic(
  owner: object,
  client: GivenClient,
  pattern: string,
  handler: MessageHandler<unknown>,
  { graceMs, ...options }: TopicOptions = {},
): () => void {
  const name = `${pattern} ${JSON.stringify(options)}`
  const [shared, release] = acquire(owner, name, () => new Topic(client, pattern, options), graceMs)
  shared.handler = handler
  return () => {
    shared.handler = undefined
    release()
  }
}

class Topic {
  handler: MessageHandler<unknown> | undefined
  readonly #end: () => void

  constructor(client: GivenClient, pattern: string, { receiver, ...options }: TopicOptions) {
    const handle = (payload: unknown, message: Message<unknown>) => this.handler?.(payload, message)
    const subscription = clientOf(client).listen(pattern, receiver?.(handle) ?? handle, options)
    this.#end = () => void subscription.close()
  }

  close(): void {
    this.#end()
  }
}
