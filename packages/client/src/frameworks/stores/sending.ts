import { clientOf, type GivenClient, scopeOf } from '../../core/of-client.js'
import { randomName } from '../../core/publishing/random-name.js'
import type { Message, PublishOptions, PublishResult } from '../../core/types.js'
import type { WebMQError } from '../../protocol/errors.js'

/** A message of this client that lists show before it comes back from the server. */
export interface Sending {
  /** The id with which it is published, also again. */
  readonly id: string
  /** `confirmed`: the broker has it. */
  readonly state: 'pending' | 'confirmed' | 'failed'
  /** Why it has failed. */
  readonly error?: WebMQError | undefined
  /** Publishes it again with the same id, so that nobody gets it twice. */
  readonly retry: () => void
  /** Removes a failed message from the lists. */
  readonly discard: () => void
}

/** A message of a list. */
export interface ListedMessage<P> extends Message<P> {
  /** Set for a message of this client until it comes back from the server. */
  readonly sending?: Sending
}

/** A message of this client in a list. */
export type SentMessage = ListedMessage<unknown> & { readonly sending: Sending }

/** Limit of the failed messages that wait for `retry` or `discard`; the oldest is discarded. */
const MAX_FAILED = 100

/** A list that shows messages before they come back. */
export interface Shower {
  /** `all` has changed. */
  changed(): void
  /** The broker has this message, which is no longer in `all`. */
  confirmed(message: SentMessage): void
}

/** The messages that a client sends and lists show. */
class Sendings {
  all: readonly SentMessage[] = []
  readonly showers = new Set<Shower>()

  /** Puts a message in the place of that with its id, or at the end. */
  put(message: SentMessage): void {
    const isSame = ({ sending }: SentMessage) => sending.id === message.sending.id
    this.all = this.all.some(isSame) ? this.all.map((one) => (isSame(one) ? message : one)) : [...this.all, message]
    const failed = this.all.filter(({ sending }) => sending.state === 'failed')
    if (failed.length > MAX_FAILED) failed[0]?.sending.discard()
    this.#changed()
  }

  remove(id: string): void {
    this.all = this.all.filter(({ sending }) => sending.id !== id)
    this.#changed()
  }

  confirm(message: SentMessage): void {
    this.remove(message.sending.id)
    for (const shower of this.showers) shower.confirmed(message)
  }

  #changed(): void {
    for (const shower of this.showers) shower.changed()
  }
}

const sendingsByScope = new WeakMap<object, Sendings>()

export function sendingsOf(client: GivenClient): Sendings {
  const scope = scopeOf(client)
  const sendings = sendingsByScope.get(scope) ?? new Sendings()
  sendingsByScope.set(scope, sendings)
  return sendings
}

/** Publishes a message that the lists of its key show at once. You may ignore the promise: the list shows a failure. */
export function publishShown(
  client: GivenClient,
  key: string,
  payload: unknown,
  { id = randomName(), ...options }: PublishOptions = {},
): Promise<PublishResult> {
  const sendings = sendingsOf(client)
  const message = (
    state: Sending['state'],
    rest: { readonly position?: string | undefined; readonly error?: WebMQError },
  ) => ({
    key,
    payload,
    position: rest.position,
    replayed: false,
    sending: { id, state, error: rest.error, retry: () => void publish(), discard: () => sendings.remove(id) },
  })
  const publish = () => {
    const published = clientOf(client).publish(key, payload, { ...options, id })
    sendings.put(message('pending', {}))
    published.then(
      ({ position, dropped }) => (dropped ? sendings.remove(id) : sendings.confirm(message('confirmed', { position }))),
      (error) => sendings.put(message('failed', { error })),
    )
    return published
  }
  return publish()
}
