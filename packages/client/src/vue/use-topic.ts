import { type MaybeRefOrGetter, toValue } from 'vue'
import { type TopicOptions, topic } from '../stores/topic.js'
import type { KnownTopic, Payload, Topics } from '../topics.js'
import type { MessageHandler } from '../types.js'
import { useGivenClient } from './client.js'
import { whileMounted } from './use-snapshot.js'

/** Calls `handler` with every message of `pattern` while the component is mounted; with none while it is `null`. */
export function useTopic<const K extends string>(
  pattern: MaybeRefOrGetter<KnownTopic<Topics, K> | null>,
  handler: MessageHandler<Payload<Topics, K>>,
  options?: TopicOptions<Payload<Topics, K>>,
): void {
  const client = useGivenClient()
  whileMounted(
    () => toValue(pattern),
    (pattern) =>
      pattern === null
        ? undefined
        : topic({}, client, pattern, handler as MessageHandler<unknown>, options as TopicOptions),
  )
}
