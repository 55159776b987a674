import { type GivenClient, scopeOf } from '../../core/of-client.js'
import { type StateOptions, type StateSnapshot, state } from '../../parts/state/index.js'
import { constantStore, type Store, sharedStore } from './store.js'

/** Options of a state that components share. */
export interface StateTopicOptions extends Omit<StateOptions, 'every'> {
  /** Time between the end of the last component with this state and that of its listen; default 1,000. */
  readonly graceMs?: number
}

const EMPTY: StateSnapshot<never> = { entries: new Map<string, never>(), isStale: true, error: undefined }

/** The store of the last message of each key of `pattern`, which the server retains; of none if it is `null`. */
export function stateStore(
  client: GivenClient,
  pattern: string | null,
  { graceMs, ...options }: StateTopicOptions = {},
): Store<StateSnapshot<unknown>> {
  if (pattern === null) return constantStore({ ...EMPTY, isStale: false })
  const open = (changed: () => void) => {
    const store = state(pattern, { ...options, client })
    store.subscribe(changed)
    return { close: () => store.close(), read: () => store.getSnapshot() }
  }
  const name = `state ${pattern} ${JSON.stringify(options)}`
  return sharedStore<StateSnapshot<unknown>>(scopeOf(client), name, EMPTY, open, graceMs)
}
