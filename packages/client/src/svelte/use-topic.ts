import { onMount } from 'svelte'
import { type TopicOptions, topic } from '../stores/topic.js'
import type { KnownTopic, Payload, Topics } from '../topics.js'
import type { MessageHandler } from '../types.js'
import { type ClientOption, givenClient } from './client.js'
import { type MaybeReadable, whileValue } from './readable.js'

/** Calls `handler` with every message of `pattern` while the component is mounted; with none while it is `null`. */
export function useTopic<const K extends string>(
  pattern: MaybeReadable<KnownTopic<Topics, K> | null>,
  handler: MessageHandler<Payload<Topics, K>>,
  { client: given, ...options }: TopicOptions<Payload<Topics, K>> & ClientOption = {},
): void {
  const client = givenClient(given)
  onMount(() =>
    whileValue(pattern, (value) =>
      value === null
        ? undefined
        : topic({}, client, value, handler as MessageHandler<unknown>, options as TopicOptions),
    ),
  )
}
