'use client'
import { useEffect, useInsertionEffect, useMemo, useRef } from 'react'
import { type TopicOptions, topic } from '../stores/topic.js'
import type { KnownTopic, Payload, Topics } from '../topics.js'
import type { MessageHandler } from '../types.js'
import { useGivenClient } from './client.js'

/**
 * Calls `handler` with every message of `pattern` while the component is mounted; with none if it is `null`. The
 * handler may be another function at every render: always the last one is called.
 */
export function useTopic<const K extends string>(
  pattern: KnownTopic<Topics, K> | null,
  handler: MessageHandler<Payload<Topics, K>>,
  options?: TopicOptions<Payload<Topics, K>>,
): void {
  const client = useGivenClient()
  const last = useRef(handler)
  useInsertionEffect(() => {
    last.current = handler
  })
  // It survives what StrictMode does to effects.
  const owner = useMemo(() => ({ client }), [client])
  // biome-ignore lint/correctness/useExhaustiveDependencies: options are compared by what they say
  useEffect(
    () =>
      pattern === null
        ? undefined
        : topic(
            owner,
            owner.client,
            pattern,
            (payload, message) => last.current(payload as Payload<Topics, K>, message as never),
            options as TopicOptions | undefined,
          ),
    [owner, pattern, JSON.stringify(options)],
  )
}
