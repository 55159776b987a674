import { type GivenClient, scopeOf } from '../../core/of-client.js'
import type { ListenOptions, Message } from '../../core/types.js'
import type { WebMQError } from '../../protocol/errors.js'
import { Following } from './follow.js'
import { constantStore, type Store, sharedStore } from './store.js'

/** Options of the newest messages by key. */
export interface LatestOptions extends Pick<ListenOptions, 'last' | 'rewind'> {
  /** Limit of the keys; default 1,000. The key that has been quiet for longest is forgotten. */
  readonly maxKeys?: number
  /** Time between the end of the last component with this store and that of its listen; default 1,000. */
  readonly graceMs?: number
}

/** The newest message of each key of a pattern. */
export interface Latest<P> {
  readonly latest: ReadonlyMap<string, Message<P>>
  /** Whether messages may be missing: until the listen is live, and after a gap until it is closed. */
  readonly isStale: boolean
  /** Why the server has refused the listen. */
  readonly error: WebMQError | undefined
}

const MAX_KEYS = 1_000

const EMPTY: Latest<never> = { latest: new Map(), isStale: true, error: undefined }
const IDLE = { ...EMPTY, isStale: false }

/** The store of the newest message of each key of `pattern`; of none if it is `null`. */
export function latestStore(
  client: GivenClient,
  pattern: string | null,
  { graceMs, ...options }: LatestOptions = {},
): Store<Latest<unknown>> {
  if (pattern === null) return constantStore(IDLE)
  const { maxKeys = MAX_KEYS, ...start } = options
  const name = `latest ${pattern} ${JSON.stringify(options)}`
  const open = (changed: () => void) => {
    const latest = new Map<string, Message<unknown>>()
    /** The keys of {@link latest}, the quietest first. A map that is shown keeps its order, so that rows stay in their places. */
    const recent = new Set<string>()
    const following = new Following(
      client,
      pattern,
      { overflow: 'latest', ...start },
      {
        changed,
        deliver(message) {
          latest.set(message.key, message)
          recent.delete(message.key)
          recent.add(message.key)
          const [quietest = ''] = latest.size > maxKeys ? recent : []
          if (latest.size > maxKeys && recent.delete(quietest)) latest.delete(quietest)
        },
      },
    )
    return {
      close: () => following.close(),
      read: () => ({ latest: new Map(latest), isStale: following.isStale, error: following.error }),
    }
  }
  return sharedStore<Latest<unknown>>(scopeOf(client), name, EMPTY, open, graceMs)
}
