import { type MaybeRefOrGetter, type ToRefs, toValue } from 'vue'
import { type Messages, type MessagesOptions, messagesStore } from '../stores/messages.js'
import type { KnownTopic, Payload, Topics } from '../topics.js'
import { useGivenClient } from './client.js'
import { useSnapshot } from './use-snapshot.js'

/** What {@link useMessages} returns: refs, and a function. */
export type UsedMessages<P> = Omit<ToRefs<Messages<P>>, 'loadOlder'> & Pick<Messages<P>, 'loadOlder'>

/**
 * The last messages of `pattern`, in their order and live; none while it is `null`. After a gap the list loads again.
 * Components with the same pattern and options share one list, which changes at most once per frame.
 */
export function useMessages<const K extends string>(
  pattern: MaybeRefOrGetter<KnownTopic<Topics, K> | null>,
  options?: MessagesOptions<Payload<Topics, K>>,
): UsedMessages<Payload<Topics, K>> {
  const client = useGivenClient()
  const { loadOlder, ...refs } = useSnapshot(() =>
    messagesStore(client, toValue(pattern), options as MessagesOptions | undefined),
  )
  return { ...refs, loadOlder: () => loadOlder.value() } as UsedMessages<Payload<Topics, K>>
}
