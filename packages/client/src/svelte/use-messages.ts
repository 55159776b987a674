import type { Readable } from 'svelte/store'
import { type Messages, type MessagesOptions, messagesStore } from '../stores/messages.js'
import type { KnownTopic, Payload, Topics } from '../topics.js'
import { type ClientOption, givenClient } from './client.js'
import { type MaybeReadable, readable } from './readable.js'

/**
 * The last messages of `pattern`, in their order and live; none while it is `null`. After a gap the list loads again.
 * Components with the same pattern and options share one list, which changes at most once per frame.
 */
export function useMessages<const K extends string>(
  pattern: MaybeReadable<KnownTopic<Topics, K> | null>,
  { client: given, ...options }: MessagesOptions<Payload<Topics, K>> & ClientOption = {},
): Readable<Messages<Payload<Topics, K>>> {
  const client = givenClient(given)
  const make = (value: string | null) => messagesStore(client, value, options as MessagesOptions)
  return readable(pattern, make) as Readable<Messages<Payload<Topics, K>>>
}
