import { matches } from '../judging/keys.js'
import type { RunRecord } from '../judging/record.js'

/** A listener that has not got what it must have by now. */
export interface Missing {
  readonly owner: string
  readonly text: string
}

/**
 * Of every publisher and key, each listener that listens to the key has to get one message that was published after a
 * time. Returns whoever has not.
 */
export function whatIsMissing({ publishers, listeners }: RunRecord, sinceMs: number): Missing[] {
  const sources = new Map<string, { readonly name: string; readonly key: string }>()
  const published = new Map<string, { readonly key: string }>()
  for (const { name, messages } of publishers) {
    for (const { id, key, attempts } of messages) {
      const source = `${name} ${key}`
      sources.set(source, { name, key })
      if ((attempts[0]?.sentAtMs ?? 0) >= sinceMs) published.set(id, { key: source })
    }
  }
  return listeners.flatMap(({ name: owner, patterns, events }) => {
    const got = new Set<string>()
    for (let index = events.length - 1; index >= 0; index--) {
      const event = events[index]
      if (event === undefined || event.atMs < sinceMs) break
      if (event.what !== 'message') continue
      const source = published.get(event.id)
      if (source !== undefined) got.add(source.key)
    }
    return [...sources].flatMap(([source, { name, key }]) =>
      got.has(source) || !patterns.some((pattern) => matches(pattern, key))
        ? []
        : [{ owner, text: `gets nothing that ${name} publishes to ${key}` }],
    )
  })
}
